"""Work where nothing is released, for codebooks and evaluation; and putting finished parts together.

    streamed     the files of a data set, read and worked on over Ray Data, as a stream of results
    handed_out   pieces of work for a few actors with models
    done_apart   work without a model, for whoever is idle

An actor builds its model once. Whoever is killed is started again and the work repeated, up to three times (Ray Data
sets no limit). What goes wrong comes back as a sentence without any text in it, because what Ray sees of an error it
writes into its logs.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Final, Generic, Protocol, TypedDict, TypeVar, cast, overload

from tacit.engines.cluster.dataset import SourceFile
from tacit.engines.cluster.session import Cluster, streaming
from tacit.engines.workers import portable, worker_error
from tacit.errors import TacitError

MOST_RETRIES: Final = 3
WORKERS_PER_READER: Final = 4
MOST_INPUT_BLOCKS: Final = 4_096

Result = TypeVar("Result")
Piece = TypeVar("Piece")
Item = tuple[object, ...]
"""What a piece of work is called with, after the memory of its actor."""


@dataclass(frozen=True)
class WorkOutcome(Generic[Result]):
    """The outcome of the work at one place: its result, or the error for the user."""

    place: int
    result: Result | None = None
    error: TacitError | None = None

    def unpacked(self) -> tuple[int, Result]:
        """The place and the result; raises the error."""
        if self.error is not None:
            raise self.error
        return self.place, cast(Result, self.result)


class _Actor:
    """Works on what it is given; `memory` is a dictionary that the work may use from one piece to the next."""

    def __init__(self) -> None:
        self._memory: dict[str, object] = {}

    def do(self, place: int, work: Callable[..., Result], *arguments: object) -> WorkOutcome[Result]:
        return _done(place, work, self._memory, *arguments)


def _done(place: int, work: Callable[..., Result], *arguments: object) -> WorkOutcome[Result]:
    try:
        return WorkOutcome(place, work(*arguments))
    except TacitError as error:
        return WorkOutcome(place, error=portable(error))
    except MemoryError:
        sentence = "a worker ran out of memory: use fewer {option.workers}, or machines with more memory"
        return WorkOutcome(place, error=TacitError("out-of-memory", sentence))
    except Exception as error:
        failure = worker_error(error)
        failure.exit_code = 1
        return WorkOutcome(place, error=failure)


# Over Ray Data ----------------------------------------------------------------------------------------------------


@overload
def streamed(
    cluster: Cluster, files: Sequence[SourceFile], read: Callable[..., Iterable[Piece]], arguments: Item
) -> Iterator[tuple[int, int, Piece]]: ...


@overload
def streamed(
    cluster: Cluster,
    files: Sequence[SourceFile],
    read: Callable[..., Iterable[Piece]],
    arguments: Item,
    work: Callable[..., Result],
) -> Iterator[tuple[int, int, Result]]: ...


def streamed(
    cluster: Cluster,
    files: Sequence[SourceFile],
    read: Callable[..., Iterable[object]],
    arguments: Item,
    work: Callable[..., object] | None = None,
) -> Iterator[tuple[int, int, object]]:
    """(file, number, result) for each piece of each file, as they are finished: read by tasks, then worked on by
    `cluster.workers` actors. Ray Data hands the pieces on and holds the readers back when the actors, or whoever takes
    the results, fall behind."""
    ray, workers = cluster.ray, cluster.workers
    items = [{"place": place, "url": file.url, "size": file.size} for place, file in enumerate(files)]
    readers = min(len(items), 1 + workers // WORKERS_PER_READER if work else workers)
    with streaming(ray):
        rows = ray.data.from_items(items, override_num_blocks=min(len(items), MOST_INPUT_BLOCKS))
        cores = 0 if work else 1  # readers that feed actors wait most of the time
        rows = rows.map_batches(_pieces, batch_size=1, fn_args=(read, arguments), num_cpus=cores, concurrency=readers)
        if work is not None:
            pool = ray.data.ActorPoolStrategy(size=workers, max_tasks_in_flight_per_actor=2)
            rows = rows.map_batches(_Worked, batch_size=1, fn_constructor_args=(work,), num_cpus=1, compute=pool)
        for row in _rows(ray, rows):
            outcome: WorkOutcome[object] = pickle.loads(row["outcome"])
            yield row["place"], row["number"], outcome.unpacked()[1]


class _PieceRow(TypedDict):
    place: int
    number: int
    outcome: bytes


class _PieceBatch(TypedDict):
    """Pieces of files as Ray Data hands them on, column by column."""

    place: Sequence[int]
    number: Sequence[int]
    outcome: Sequence[bytes]


class _FileBatch(TypedDict):
    place: Sequence[int]
    url: Sequence[str]
    size: Sequence[int]


class _Rows(Protocol):
    """A data set of Ray Data, as far as it is used here."""

    def iter_rows(self) -> Iterable[_PieceRow]: ...


def _rows(ray: ModuleType, data: _Rows) -> Iterator[_PieceRow]:
    try:
        yield from data.iter_rows()
    except ray.exceptions.RayError as error:
        raise _lost(ray, error) from None


def _pieces(batch: _FileBatch, read: Callable[..., Iterable[object]], arguments: Item) -> Iterator[_PieceBatch]:
    for place, url, size in zip(batch["place"], batch["url"], batch["size"], strict=True):
        pieces = iter(read(SourceFile(str(url), int(size)), *arguments))
        number, going = 0, True
        while going:
            outcome = _done(number, next, pieces, None)
            going = outcome.result is not None
            if going or outcome.error is not None:
                yield {"place": [place], "number": [number], "outcome": [pickle.dumps(outcome)]}
            number += 1


class _Worked:
    """An actor for Ray Data that does one piece of work after another."""

    def __init__(self, work: Callable[..., object]) -> None:
        self._work = work
        self._memory: dict[str, object] = {}

    def __call__(self, batch: _PieceBatch) -> _PieceBatch:
        outcomes = [self._outcome(outcome) for outcome in batch["outcome"]]
        return {"place": batch["place"], "number": batch["number"], "outcome": outcomes}

    def _outcome(self, data: bytes) -> bytes:
        read: WorkOutcome[object] = pickle.loads(data)
        if read.error is not None:
            return data
        return pickle.dumps(_done(read.place, self._work, self._memory, read.result))


# By hand ----------------------------------------------------------------------------------------------------------


def done_apart(cluster: Cluster, work: Callable[..., object], items: Sequence[Item]) -> None:
    """Work without a model, in whatever process is idle: starting an actor for it would take longer than most of it."""
    ray = cluster.ray
    task = ray.remote(num_cpus=1, max_retries=MOST_RETRIES)(_done)
    waiting = list(enumerate(items))[::-1]
    started: list[object] = []
    while waiting or started:
        while waiting and len(started) < 2 * cluster.workers:
            place, arguments = waiting.pop()
            started.append(task.remote(place, work, *arguments))
        (ready,), started = ray.wait(started, num_returns=1)
        _outcome(ray, ready).unpacked()


def handed_out(cluster: Cluster, work: Callable[..., Result], items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
    """(place, result) for each item, as they are finished, by at most `cluster.workers` actors."""
    ray = cluster.ray
    kind = ray.remote(num_cpus=1, max_restarts=MOST_RETRIES, max_task_retries=MOST_RETRIES)(_Actor)
    idle = [kind.remote() for _ in range(min(cluster.workers, len(items)))]
    busy: dict[object, object] = {}
    waiting = list(enumerate(items))[::-1]
    try:
        while waiting or busy:
            while waiting and idle:
                place, arguments = waiting.pop()
                actor = idle.pop()
                busy[actor.do.remote(place, work, *arguments)] = actor
            (ready,), _ = ray.wait(list(busy), num_returns=1)
            idle.append(busy.pop(ready))
            outcome: WorkOutcome[Result] = _outcome(ray, ready)
            yield outcome.unpacked()
    finally:
        for actor in (*idle, *busy.values()):
            ray.kill(actor)


def _outcome(ray: ModuleType, ready: object) -> WorkOutcome[Result]:
    try:
        outcome: WorkOutcome[Result] = ray.get(ready)
    except ray.exceptions.RayError as error:
        raise _lost(ray, error) from None
    return outcome


def _lost(ray: ModuleType, error: Exception) -> TacitError:
    if isinstance(error, (ray.exceptions.RayActorError, ray.exceptions.WorkerCrashedError)):
        return TacitError(
            "workers-died",
            "workers died one after the other on the same piece of work, most likely for want of memory: use fewer "
            "{option.workers}, or machines with more memory",
        )
    return TacitError(
        "worker-of-another-version",
        "a worker did not understand its work ({error}): install the same Tacit on all machines",
        error=type(error).__name__,
    )
