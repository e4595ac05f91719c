"""Supervision of worker processes: hiring them, handing tasks to them, hearing what they say, noticing when they die.

The local engine, the service and the runner of experiments each decide what is done, in which order, and what a death
means; that workers exist, are fresh processes and never outlive their supervisor is decided here.

    with Supervisor(life, arguments, most=2) as crew:
        crew.hand_out(7, task)                      life(connection, *arguments) runs in a process and gets `task`
        for event in crew.events(timeout=None):
            ...                                     WorkerReport(key=7, ...) or WorkerDeath(keys=(7,), ...)
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Generic, Self, TypeVar

from tacit.engines import processes

Key = TypeVar("Key", bound=Hashable)


@dataclass(eq=False)
class SupervisedWorker(Generic[Key]):
    """A process, our end of its connection, and the tasks it has in hand, the oldest first."""

    process: BaseProcess
    connection: Connection
    in_hand: deque[Key] = field(default_factory=deque)
    is_reachable: bool = True


@dataclass(frozen=True)
class WorkerReport(Generic[Key]):
    """A message of a worker; `key` is the oldest of the tasks it has in hand."""

    worker: SupervisedWorker[Key]
    key: Key
    message: object


@dataclass(frozen=True)
class WorkerDeath(Generic[Key]):
    """A worker that ended with tasks in hand.

    keys        its tasks; it was working on the first of them
    times       how many workers have died on that task so far
    signal      the name of the signal that ended it; None if it ended by itself
    exit_code   with which it ended by itself
    """

    keys: tuple[Key, ...]
    times: int
    signal: str | None
    exit_code: int

    @property
    def ending(self) -> str:
        return self.signal or f"exit code {self.exit_code}"


class Supervisor(Generic[Key]):
    """At most `most` worker processes, each with at most `in_hand` tasks at a time.

    Workers are daemons with one thread for linear algebra, because processes are the parallelism; an `independent` one
    has the threads of this process and may have workers of its own.
    """

    def __init__(
        self,
        life: Callable[..., None],
        arguments: tuple[object, ...] = (),
        *,
        most: int,
        in_hand: int = 1,
        independent: bool = False,
    ) -> None:
        self._life, self._arguments = life, arguments
        self._most, self._in_hand = most, in_hand
        self._start = processes.start_independent if independent else processes.start
        self._deaths: Counter[Key] = Counter()
        self.workers: list[SupervisedWorker[Key]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def hire(self, count: int) -> None:
        """Have at least `count` workers, as far as they are allowed."""
        while len(self.workers) < min(count, self._most):
            self.workers.append(SupervisedWorker(*self._start(self._life, *self._arguments)))

    def free_worker(self) -> SupervisedWorker[Key] | None:
        """The worker with the fewest tasks that takes one more: an idle one, a new one, or one that is busy."""
        self._forget_idle_dead()
        chosen = min(self.workers, key=lambda worker: len(worker.in_hand), default=None)
        if (chosen is None or chosen.in_hand) and len(self.workers) < self._most:
            self.hire(len(self.workers) + 1)
            chosen = self.workers[-1]
        return chosen if chosen is not None and len(chosen.in_hand) < self._in_hand else None

    def hand_out(self, key: Key, task: object, worker: SupervisedWorker[Key] | None = None) -> None:
        """Give a task to a worker. A worker that cannot be reached is reported by `events`, as any other death."""
        chosen = worker or self.free_worker()
        assert chosen is not None, "ask for a free worker first"
        chosen.in_hand.append(key)
        try:
            chosen.connection.send(task)
        except OSError:
            chosen.is_reachable = False

    def finish(self, report: WorkerReport[Key]) -> None:
        """The task of a report is done: its worker goes on with the next one."""
        self._deaths.pop(report.key, None)
        report.worker.in_hand.popleft()

    def events(self, timeout: float | None) -> Iterator[WorkerReport[Key] | WorkerDeath[Key]]:
        """All new events; waits for the first for so many seconds (None: without limit)."""
        lost = [worker for worker in self.workers if not worker.is_reachable]
        listening = {worker.connection: worker for worker in self.workers if worker.is_reachable and worker.in_hand}
        for worker in lost:
            yield self._death(worker)
        for connection in wait(list(listening), 0 if lost else timeout):
            assert isinstance(connection, Connection)
            worker = listening[connection]
            try:
                message = connection.recv()
            except (EOFError, OSError):
                yield self._death(worker)
            else:
                yield WorkerReport(worker, worker.in_hand[0], message)

    def stop(self) -> None:
        """End all workers now, whatever they are at."""
        for worker in self.workers:
            worker.process.kill()
        for worker in self.workers:
            worker.process.join(timeout=processes.END_SECONDS)
            worker.connection.close()
        self.workers.clear()

    def _forget_idle_dead(self) -> None:
        """Workers that ended without a task in hand took nothing with them: they are only not there any more."""
        for worker in [worker for worker in self.workers if not worker.in_hand and not worker.process.is_alive()]:
            self.workers.remove(worker)
            processes.bury(worker.process, worker.connection)

    def _death(self, worker: SupervisedWorker[Key]) -> WorkerDeath[Key]:
        self.workers.remove(worker)
        processes.bury(worker.process, worker.connection)
        key = worker.in_hand[0]
        self._deaths[key] += 1
        exit_code = worker.process.exitcode or 0
        return WorkerDeath(tuple(worker.in_hand), self._deaths[key], processes.signal_of(worker.process), exit_code)
