"""Long computations on public data: one at a time, and callers take turns, so that the many questions of one key do not
hold up the few of another."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from tacit.serve.errors import ServiceError

R = TypeVar("R")
Question = tuple["Future[Any]", Callable[[], Any]]


class Aside:
    """One thread, and a limit on how many questions wait for it."""

    def __init__(self, most: int) -> None:
        self.executor = ThreadPoolExecutor(1, "tacit-public")
        self._most = most
        self._count = 0
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str | None, deque[Question]] = OrderedDict()

    def check_room(self) -> None:
        if self._count >= self._most:
            raise ServiceError(503, "the service is busy: try again in a moment", "busy", retry_after=5)

    async def run(self, caller: str | None, function: Callable[..., R], *arguments: Any) -> R:
        """The result. The place is taken until the work is done, also if nobody waits for it any more."""
        self.check_room()
        answer: Future[R] = Future()
        with self._lock:
            self._count += 1
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
        try:
            if answer.set_running_or_notify_cancel():
                answer.set_result(work())
        except BaseException as error:
            answer.set_exception(error)
        finally:
            with self._lock:
                self._count -= 1
