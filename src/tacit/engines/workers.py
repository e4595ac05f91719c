"""Blocks rewritten by several processes, in order, with bounded memory, surviving the death of any of them.

Each worker builds the mechanism once, and derives the noise of a block from the job's key. A worker that is killed is
replaced and its blocks are repeated with exactly the same noise.
"""

from __future__ import annotations

import pickle
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Final

from tacit.engines import processes
from tacit.engines.blocks import Block, rewrite_block
from tacit.engines.supervisor import Supervisor, WorkerDeath
from tacit.errors import TacitError, TacitWarning, place_of
from tacit.mechanism import Mechanism, Rewritten
from tacit.noise.source import StreamKey

MOST_DEATHS: Final = 3
BLOCKS_PER_WORKER: Final = 2

Results = Generator[tuple[Block, Rewritten], None, None]


class WorkerDiedError(TacitError):
    """The error for a block at which several workers died."""


@dataclass(frozen=True)
class Assignment:
    """All a worker needs to know of the job: how its mechanism is made, and the key of all noise."""

    mechanism: Callable[..., Mechanism]
    parameters: Mapping[str, object]
    key: StreamKey


@dataclass(frozen=True)
class BlockTask:
    """The data of a block for a worker."""

    index: int
    content: bytes
    texts: list[str]
    labels: list[str] | None = None


def rewrite_here(mechanism: Mechanism, key: StreamKey, blocks: Iterator[Block]) -> Results:
    """The blocks one after the other in this process."""
    mechanism.prepare()
    for block in blocks:
        yield block, rewrite_block(mechanism, key, block.index, block.content, block.texts, block.labels)


def rewrite_with_workers(assignment: Assignment, blocks: Iterator[Block], count: int) -> Results:
    """The blocks in their order, rewritten by up to `count` processes. Close the iterator to stop them."""
    with Supervisor[int](_work, (assignment,), most=count, in_hand=BLOCKS_PER_WORKER) as supervisor:
        yield from BlockQueue(supervisor, count).run(blocks)


class BlockQueue:
    """The blocks between the reader and the writer: waiting, with a worker, or finished before their turn."""

    def __init__(self, supervisor: Supervisor[int], count: int) -> None:
        self._supervisor = supervisor
        self._count = count
        self._open: dict[int, Block] = {}
        self._waiting: deque[int] = deque()
        self._results: dict[int, Rewritten] = {}

    def run(self, blocks: Iterator[Block]) -> Results:
        """Reads ahead while the workers work; never holds more than two blocks per worker.

        When the input breaks, the blocks before the break are finished first.
        """
        more, broken = True, None
        while more or self._open:
            if more and len(self._open) < BLOCKS_PER_WORKER * self._count:
                try:
                    block = next(blocks, None)
                except TacitError as error:
                    block, broken = None, error
                if block is None:
                    more = False
                else:
                    self._open[block.index] = block
                    self._waiting.append(block.index)
                if self._supervisor.workers or len(self._open) >= self._count:
                    self._hand_out()
                    self._collect(timeout=0)
            else:
                self._hand_out()
                self._collect(timeout=None)
            yield from self._finished_in_order()
        if broken is not None:
            raise broken

    def _finished_in_order(self) -> Results:
        while self._open and (index := next(iter(self._open))) in self._results:
            yield self._open.pop(index), self._results.pop(index)

    def _hand_out(self) -> None:
        # As many workers as there is work for, all started before the first of them is waited for.
        self._supervisor.hire(len(self._open) - len(self._results) if self._waiting else 0)
        while self._waiting and (worker := self._supervisor.free_worker()) is not None:
            block = self._open[self._waiting.popleft()]
            task = BlockTask(block.index, block.content, block.texts, block.labels)
            self._supervisor.hand_out(block.index, task, worker)

    def _collect(self, timeout: float | None) -> None:
        for event in self._supervisor.events(timeout):
            if isinstance(event, WorkerDeath):
                self._take_back(event)
            elif isinstance(event.message, TacitError):
                raise event.message
            else:
                assert isinstance(event.message, Rewritten)
                self._results[event.key] = event.message
                self._supervisor.finish(event)

    def _take_back(self, death: WorkerDeath[int]) -> None:
        """The blocks of a dead worker wait again; the first of them is the one it was working on."""
        self._waiting.extendleft(reversed(death.keys))
        if death.times >= MOST_DEATHS:
            span = self._open[death.keys[0]].span()
            raise WorkerDiedError(
                "workers-died",
                "{times} worker processes died one after the other on {span}, " + _ending(death),
                times=death.times,
                span=span,
                signal=death.signal,
                exit_code=death.exit_code,
            )


def _ending(death: WorkerDeath[int]) -> str:
    if death.signal is not None:
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
            task = inbox.get()
            assert isinstance(task, BlockTask)
            result = rewrite_block(mechanism, assignment.key, task.index, task.content, task.texts, task.labels)
            units = [int(unit) for unit in result.units]
            connection.send(Rewritten(list(result.texts), units, result.labels, result.vectors))
    except MemoryError:
        connection.send(
            TacitError(
                "out-of-memory", "a worker ran out of memory: use fewer {option.workers}, or close other programs"
            )
        )
    except TacitError as error:
        connection.send(portable(error))
    except Exception as error:
        connection.send(worker_error(error))


def worker_error(error: Exception) -> TacitError:
    """The error of a worker that failed without a sentence of its own; it quotes nothing of what was worked on."""
    return TacitError("worker-failed", "a worker failed: {place}. Please report this", place=place_of(error))


def portable(error: TacitError) -> TacitError:
    """An error that survives the way to another process: itself, or its sentence where a field of it does not."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever a field raises when it is pickled
        copy = TacitError.of(error)
        copy.exit_code = error.exit_code
        return copy
    return error
