"""Blocks rewritten by several processes, in order, with bounded memory, surviving the death of any of them.

Each worker is a fresh process (never a fork, which would copy random state), builds the mechanism once, and derives
the noise of a block from the job's key. A worker that is killed is replaced and its blocks are repeated with exactly
the same noise.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final

from tacit.engines import processes
from tacit.engines.blocks import Block, rewrite_block
from tacit.errors import TacitError, TacitWarning, place_of
from tacit.mechanism import Mechanism, Rewritten
from tacit.noise.source import StreamKey

MOST_DEATHS: Final = 3
BLOCKS_PER_WORKER: Final = 2

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
        self._workers.append(Worker(*processes.start(_work, self._assignment)))

    def _bury(self, worker: Worker) -> None:
        """Take back the blocks of a dead worker; the first of them is the one it was working on."""
        self._workers.remove(worker)
        processes.bury(worker.process, worker.connection)
        self._waiting.extendleft(reversed(worker.blocks))
        if not worker.blocks:
            return
        block = worker.blocks[0]
        deaths = self._deaths[block.index] = self._deaths.get(block.index, 0) + 1
        if deaths >= MOST_DEATHS:
            raise WorkerDiedError(
                "workers-died",
                "{deaths} worker processes died one after the other on {span}, " + _ending(worker.process),
                deaths=deaths,
                span=block.span(),
                signal=processes.signal_of(worker.process),
                exit_code=worker.process.exitcode or 0,
            )


def _ending(process: BaseProcess) -> str:
    if processes.signal_of(process):
        return "ended by {signal}, most likely for want of memory: use fewer {option.workers}, or close other programs"
    return "with exit code {exit_code}: run once with {option.workers[1]} to see why"


def _work(connection: Connection, assignment: Assignment) -> None:
    """The life of a worker: build the mechanism, then rewrite what comes until the job's process closes the pipe."""
    inbox = processes.inbox_of(connection)
    warnings.simplefilter("ignore", TacitWarning)  # said by the process of the job, once
    try:
        mechanism = assignment.mechanism(**assignment.parameters)
        mechanism.prepare()
        while True:
            index, content, texts = inbox.get()
            result = rewrite_block(mechanism, assignment.key, index, content, texts)
            connection.send((index, list(result.texts), [int(unit) for unit in result.units]))
    except MemoryError:
        connection.send(
            TacitError(
                "out-of-memory", "a worker ran out of memory: use fewer {option.workers}, or close other programs"
            )
        )
    except TacitError as error:
        connection.send(portable(error))
    except Exception as error:
        connection.send(
            TacitError("worker-failed", "a worker failed: {place}. Please report this", place=place_of(error))
        )


def portable(error: TacitError) -> TacitError:
    """An error that survives the way to the parent, whatever its constructor looks like."""
    copy = TacitError.of(error)
    copy.exit_code = error.exit_code
    return copy
