"""Long computations on public data: one at a time, and callers take turns, so that the many questions of one key do not
hold up the few of another."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from tacit.serve.errors import ServiceError

R = TypeVar("R")
CALLERS: Final = 8
"""So many callers may have all their places taken at the same time."""
Question = tuple["Future[Any]", Callable[[], Any]]


class Aside:
    """One thread, and a limit on how many questions of each caller wait for it."""

    def __init__(self, most: int) -> None:
        self.executor = ThreadPoolExecutor(1, "tacit-public")
        self._most = most
        self._places: Counter[str | None] = Counter()
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str | None, deque[Question]] = OrderedDict()

    def check_room(self, caller: str | None) -> None:
        """A caller has `most` places: one who fills them takes none of another's."""
        if self._places[caller] >= self._most or self._places.total() >= CALLERS * self._most:
            raise ServiceError(503, "the service is busy: try again in a moment", "busy", retry_after=5)

    async def run(self, caller: str | None, function: Callable[..., R], *arguments: Any) -> R:
        """The result. The place is taken until the work is done, also if nobody waits for it any more."""
        self.check_room(caller)
        answer: Future[R] = Future()
        with self._lock:
            self._places[caller] += 1
            self._waiting.setdefault(caller, deque()).append((answer, partial(function, *arguments)))
        self.executor.submit(self._turn)
        return await asyncio.wrap_future(answer)

    def _turn(self) -> None:
        """One question of the caller who has waited longest since his last."""
        with self._lock:
            caller, questions = self._waiting.popitem(last=False)
            answer, work = questions.popleft()
            if questions:
                self._waiting[caller] = questions
        if not answer.set_running_or_notify_cancel():
            self._leave(caller)
            return
        try:
            value = work()
        except BaseException as error:
            self._leave(caller)
            answer.set_exception(error)
        else:
            self._leave(caller)  # first, so that whoever has an answer has room for the next question
            answer.set_result(value)

    def _leave(self, caller: str | None) -> None:
        with self._lock:
            self._places[caller] -= 1
            if not self._places[caller]:
                del self._places[caller]
