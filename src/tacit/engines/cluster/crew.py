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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tacit.engines.cluster.dataset import SourceFile
from tacit.engines.cluster.session import Cluster, streaming
from tacit.engines.workers import portable
from tacit.errors import TacitError, place_of

MOST_RETRIES: Final = 3
WORKERS_PER_READER: Final = 4
MOST_INPUT_BLOCKS: Final = 4_096

Reader = Callable[..., Iterable[Any]]
"""A function of a module, called in a worker with (file, *arguments): what is in a file, in pieces of work."""

Work = Callable[..., Any]
"""A function of a module, called in an actor with (memory, *arguments); `memory` is a dictionary the actor keeps."""


class _Actor:
    def __init__(self) -> None:
        self._memory: dict[str, Any] = {}

    def do(self, place: int, work: Work, *arguments: Any) -> tuple[int, Any, TacitError | None]:
        return _done(place, work, self._memory, *arguments)


def _done(place: int, work: Callable[..., Any], *arguments: Any) -> tuple[int, Any, TacitError | None]:
    try:
        return place, work(*arguments), None
    except TacitError as error:
        return place, None, portable(error)
    except MemoryError:
        return (
            place,
            None,
            TacitError(
                "out-of-memory", "a worker ran out of memory: use fewer {option.workers}, or machines with more memory"
            ),
        )
    except Exception as error:
        failure = TacitError("worker-failed", "a worker failed: {place}. Please report this", place=place_of(error))
        failure.exit_code = 1
        return place, None, failure


# Over Ray Data ----------------------------------------------------------------------------------------------------


def streamed(
    cluster: Cluster, files: Sequence[SourceFile], read: Reader, arguments: tuple[Any, ...], work: Work | None = None
) -> Iterator[tuple[int, int, Any]]:
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
            _, result = _unpacked(pickle.loads(row["outcome"]))
            yield int(row["place"]), int(row["number"]), result


def _rows(ray: Any, data: Any) -> Iterator[Any]:
    try:
        yield from data.iter_rows()
    except ray.exceptions.RayError as error:
        raise _lost(ray, error) from None


def _pieces(batch: Mapping[str, Sequence[Any]], read: Reader, arguments: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    for place, url, size in zip(*(batch[name] for name in ("place", "url", "size")), strict=True):
        pieces = iter(read(SourceFile(str(url), int(size)), *arguments))
        number, going = 0, True
        while going:
            outcome = _done(number, next, pieces, None)
            going = outcome[1] is not None
            if going or outcome[2] is not None:
                yield {"place": [place], "number": [number], "outcome": [pickle.dumps(outcome)]}
            number += 1


class _Worked:
    """For Ray Data: one actor."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._memory: dict[str, Any] = {}

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        return {**batch, "outcome": [self._outcome(outcome) for outcome in batch["outcome"]]}

    def _outcome(self, read: bytes) -> bytes:
        number, piece, problem = pickle.loads(read)
        return read if problem is not None else pickle.dumps(_done(number, self._work, self._memory, piece))


# By hand ----------------------------------------------------------------------------------------------------------


def done_apart(cluster: Cluster, work: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> None:
    """Work without a model, in whatever process is idle: starting an actor for it would take longer than most of it."""
    ray = cluster.ray
    task = ray.remote(num_cpus=1, max_retries=MOST_RETRIES)(_done)
    waiting = list(enumerate(items))[::-1]
    started: list[Any] = []
    while waiting or started:
        while waiting and len(started) < 2 * cluster.workers:
            place, arguments = waiting.pop()
            started.append(task.remote(place, work, *arguments))
        (ready,), started = ray.wait(started, num_returns=1)
        _result(ray, ready)


def handed_out(cluster: Cluster, work: Work, items: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
    """(place, result) for each item, as they are finished, by at most `cluster.workers` actors."""
    ray = cluster.ray
    kind = ray.remote(num_cpus=1, max_restarts=MOST_RETRIES, max_task_retries=MOST_RETRIES)(_Actor)
    idle = [kind.remote() for _ in range(min(cluster.workers, len(items)))]
    busy: dict[Any, Any] = {}
    waiting = list(enumerate(items))[::-1]
    try:
        while waiting or busy:
            while waiting and idle:
                place, arguments = waiting.pop()
                actor = idle.pop()
                busy[actor.do.remote(place, work, *arguments)] = actor
            (ready,), _ = ray.wait(list(busy), num_returns=1)
            idle.append(busy.pop(ready))
            yield _result(ray, ready)
    finally:
        for actor in (*idle, *busy.values()):
            ray.kill(actor)


def _result(ray: Any, ready: Any) -> tuple[int, Any]:
    try:
        return _unpacked(ray.get(ready))
    except ray.exceptions.RayError as error:
        raise _lost(ray, error) from None


def _unpacked(outcome: tuple[int, Any, TacitError | None]) -> tuple[int, Any]:
    place, result, problem = outcome
    if problem is not None:
        raise problem
    return place, result


def _lost(ray: Any, error: Exception) -> TacitError:
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
