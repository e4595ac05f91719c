"""Blocks rewritten by several processes, in order, with bounded memory, surviving the death of any of them.

Each worker is a fresh process (never a fork, which would copy random state), builds the mechanism once, and derives
the noise of a block from the job's key. A worker that is killed is replaced and its blocks are repeated with exactly
the same noise.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

from tacit.engines.blocks import Block, rewrite_block
from tacit.errors import TacitError, place_of
from tacit.mechanism import Mechanism, Rewritten
from tacit.noise.source import StreamKey

MOST_DEATHS: Final = 3
BLOCKS_PER_WORKER: Final = 2
THREAD_VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


Task = tuple[int, bytes, list[str]]
Results = Generator[tuple[Block, Rewritten], None, None]


class WorkerDiedError(TacitError):
    """The same block took several workers with it."""


@dataclass(frozen=True)
class Assignment:
    """All a worker needs to know of the job."""

    mechanism: type[Mechanism]
    parameters: dict[str, Any]
    key: StreamKey


@dataclass
class Worker:
    process: BaseProcess
    connection: Connection
    blocks: deque[Block] = field(default_factory=deque)


def rewrite_here(mechanism: Mechanism, key: StreamKey, blocks: Iterator[Block]) -> Results:
    """The blocks one after the other in this process."""
    mechanism.prepare()
    for block in blocks:
        yield block, rewrite_block(mechanism, key, block.index, block.content, block.texts)


def rewrite_with_workers(assignment: Assignment, blocks: Iterator[Block], count: int) -> Results:
    """The blocks in their order, rewritten by up to `count` processes. Close the iterator to stop them."""
    crew = Crew(assignment, count)
    try:
        yield from crew.run(blocks)
    finally:
        crew.stop()


class Crew:
    def __init__(self, assignment: Assignment, count: int) -> None:
        self._assignment = assignment
        self._count = count
        self._workers: list[Worker] = []
        self._waiting: deque[Block] = deque()
        self._results: dict[int, Rewritten] = {}
        self._deaths: dict[int, int] = {}

    def run(self, blocks: Iterator[Block]) -> Results:
        """Reads ahead while the workers work; never holds more than two blocks per worker.

        When the input breaks, the blocks before the break are finished first.
        """
        in_flight: deque[Block] = deque()
        more, broken = True, None
        while more or in_flight:
            if more and len(in_flight) < BLOCKS_PER_WORKER * self._count:
                try:
                    block = next(blocks, None)
                except TacitError as error:
                    block, broken = None, error
                if block is None:
                    more = False
                else:
                    in_flight.append(block)
                    self._waiting.append(block)
                if self._workers or len(in_flight) >= self._count:
                    self._hand_out()
                    self._collect(timeout=0)
            else:
                self._hand_out()
                self._collect(timeout=None)
            while in_flight and in_flight[0].index in self._results:
                block = in_flight.popleft()
                yield block, self._results.pop(block.index)
        if broken is not None:
            raise broken

    def stop(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()
        self._workers.clear()

    def _hand_out(self) -> None:
        while self._waiting:
            self._hire_enough()
            worker = min(self._workers, key=lambda one: len(one.blocks))
            if len(worker.blocks) >= BLOCKS_PER_WORKER:
                return
            block = self._waiting.popleft()
            worker.blocks.append(block)
            try:
                worker.connection.send((block.index, block.content, block.texts))
            except OSError:
                self._bury(worker)

    def _collect(self, timeout: float | None) -> None:
        by_connection = {worker.connection: worker for worker in self._workers}
        for ready in wait(list(by_connection), timeout):
            worker = by_connection[ready]  # type: ignore[index]
            try:
                outcome = worker.connection.recv()
            except (EOFError, OSError):
                self._bury(worker)
                continue
            if isinstance(outcome, TacitError):
                raise outcome
            index, texts, units = outcome
            worker.blocks.popleft()
            self._deaths.pop(index, None)
            self._results[index] = Rewritten(texts, units)

    def _hire_enough(self) -> None:
        """As many workers as there is work for, all started before the first of them is waited for."""
        unfinished = len(self._waiting) + sum(len(worker.blocks) for worker in self._workers)
        while len(self._workers) < min(self._count, unfinished):
            self._hire()

    def _hire(self) -> None:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, self._assignment), daemon=True)
        resource_tracker.ensure_running()  # or it would unblock the interrupt in between
        with one_thread(), _no_interrupt():
            process.start()
        theirs.close()
        self._workers.append(Worker(process, ours))

    def _bury(self, worker: Worker) -> None:
        """Take back the blocks of a dead worker; the first of them is the one it was working on."""
        self._workers.remove(worker)
        worker.process.join(timeout=1)  # so that its own ending is known, not the one given here
        worker.process.kill()
        worker.process.join()
        worker.connection.close()
        self._waiting.extendleft(reversed(worker.blocks))
        if not worker.blocks:
            return
        block = worker.blocks[0]
        deaths = self._deaths[block.index] = self._deaths.get(block.index, 0) + 1
        if deaths >= MOST_DEATHS:
            raise WorkerDiedError(
                f"{deaths} worker processes died one after the other on {block.span()}, {_ending(worker.process)}"
            )


def _ending(process: BaseProcess) -> str:
    code = process.exitcode or 0
    if code < 0:
        name = next((one.name for one in signal.Signals if one == -code), f"signal {-code}")
        return f"ended by {name}, most likely for want of memory: use fewer --workers, or close other programs"
    return f"with exit code {code}: run once with --workers 1 to see why"


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Workers are the parallelism: more threads inside each would fight over the same cores."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Ctrl-C goes to all processes of a terminal; the workers inherit that it is blocked, this process handles it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(connection: Connection, assignment: Assignment) -> None:
    """The life of a worker: build the mechanism, then rewrite what comes until the job's process closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inbox: queue.SimpleQueue[Task] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, inbox), daemon=True).start()
    try:
        mechanism = assignment.mechanism(**assignment.parameters)
        mechanism.prepare()
        while True:
            index, content, texts = inbox.get()
            result = rewrite_block(mechanism, assignment.key, index, content, texts)
            connection.send((index, list(result.texts), [int(unit) for unit in result.units]))
    except MemoryError:
        connection.send(TacitError("a worker ran out of memory: use fewer --workers, or close other programs"))
    except TacitError as error:
        connection.send(_portable(error))
    except Exception as error:
        connection.send(TacitError(f"a worker failed: {place_of(error)}. Please report this"))


def _receive(connection: Connection, inbox: queue.SimpleQueue[Task]) -> None:
    """Takes the next block while the current one is in work, and ends the process with the one that started it."""
    try:
        while True:
            inbox.put(connection.recv())
    except (EOFError, OSError):
        os._exit(1)


def _portable(error: TacitError) -> TacitError:
    """An error that survives the way to the parent, whatever its constructor looks like."""
    copy = TacitError(str(error))
    copy.exit_code = error.exit_code
    return copy
