"""Long computations on public data: one at a time, and callers take turns, so that the many questions of one key do not
hold up the few of another."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final, Generic, TypeVar

from tacit.serve.errors import service_busy

R = TypeVar("R")
CALLERS: Final = 8
"""So many callers may have all their places taken at the same time."""


class Question(Generic[R]):
    """Work that waits for its turn, and the place of its result."""

    def __init__(self, work: Callable[[], R]) -> None:
        self._work = work
        self.answer: Future[R] = Future()

    def run(self, before_answer: Callable[[], None]) -> None:
        """Do the work, unless nobody waits for it any more; `before_answer` is called when it is over."""
        if not self.answer.set_running_or_notify_cancel():
            before_answer()
            return
        try:
            result = self._work()
        except BaseException as error:
            before_answer()
            self.answer.set_exception(error)
        else:
            before_answer()
            self.answer.set_result(result)


class Aside:
    """One thread, and a limit on how many questions of each caller wait for it."""

    def __init__(self, most: int) -> None:
        self.executor = ThreadPoolExecutor(1, "tacit-public")
        self._most = most
        self._places: Counter[str | None] = Counter()
        self._lock = threading.Lock()
        self._waiting: OrderedDict[str | None, deque[Question[Any]]] = OrderedDict()

    def check_room(self, caller: str | None) -> None:
        """A caller has `most` places: one who fills them takes none of another's."""
        if self._places[caller] >= self._most or self._places.total() >= CALLERS * self._most:
            raise service_busy(retry_after=5)

    async def run(self, caller: str | None, work: Callable[[], R]) -> R:
        """The result. The place is taken until the work is done, also if nobody waits for it any more."""
        self.check_room(caller)
        question = Question(work)
        with self._lock:
            self._places[caller] += 1
            self._waiting.setdefault(caller, deque()).append(question)
        self.executor.submit(self._turn)
        return await asyncio.wrap_future(question.answer)

    def _turn(self) -> None:
        """One question of the caller who has waited longest since his last."""
        with self._lock:
            caller, questions = self._waiting.popitem(last=False)
            question = questions.popleft()
            if questions:
                self._waiting[caller] = questions
        # The place is freed before the answer is set, so that a client with an answer can send the next request.
        question.run(partial(self._leave, caller))

    def _leave(self, caller: str | None) -> None:
        with self._lock:
            self._places[caller] -= 1
            if not self._places[caller]:
                del self._places[caller]


def ended(executors: Sequence[ThreadPoolExecutor], seconds: float) -> bool:
    """Whether all threads came to an end in this time; what they had not begun is given up."""

    def wait() -> None:
        for executor in executors:
            executor.shutdown(wait=True)

    for executor in executors:
        executor.shutdown(wait=False, cancel_futures=True)
    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(timeout=seconds)
    return not waiting.is_alive()
