"""Work handed out to a few actors with models, for codebooks and evaluation, where nothing is released; and to any idle
worker, for putting finished parts together.

An actor builds its model once. Whoever is killed is started again and the work repeated, up to three times. What goes
wrong comes back as a sentence without any text in it, because what Ray sees of an error it writes into its logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tacit.engines.cluster.session import Cluster
from tacit.errors import TacitError, place_of

MOST_RETRIES: Final = 3

Work = Callable[..., Any]
"""A function of a module, called in an actor with (memory, *arguments); `memory` is a dictionary the actor keeps."""


class _Actor:
    def __init__(self) -> None:
        self._memory: dict[str, Any] = {}

    def do(self, place: int, work: Work, *arguments: Any) -> tuple[int, Any, tuple[str, int] | None]:
        return _done(place, work, self._memory, *arguments)


def _done(place: int, work: Callable[..., Any], *arguments: Any) -> tuple[int, Any, tuple[str, int] | None]:
    try:
        return place, work(*arguments), None
    except TacitError as error:
        return place, None, (str(error), error.exit_code)
    except MemoryError:
        return place, None, ("a worker ran out of memory: use fewer --workers, or machines with more memory", 2)
    except Exception as error:
        return place, None, (f"a worker failed: {place_of(error)}. Please report this", 1)


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
    place, result, problem = _got(ray, ready)
    if problem is not None:
        error = TacitError(problem[0])
        error.exit_code = problem[1]
        raise error
    return place, result


def _got(ray: Any, ready: Any) -> Any:
    try:
        return ray.get(ready)
    except (ray.exceptions.RayActorError, ray.exceptions.WorkerCrashedError):
        raise TacitError(
            "workers died one after the other on the same piece of work, most likely for want of memory: use fewer "
            "--workers, or machines with more memory"
        ) from None
    except ray.exceptions.RayError as error:
        raise TacitError(
            f"a worker did not understand its work ({type(error).__name__}): install the same Tacit on all machines"
        ) from None
