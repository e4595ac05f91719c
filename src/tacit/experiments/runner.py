"""Runs the cells of a plan that are not in the cache, with several processes.

A run may be killed at any moment, itself or one of its processes: what is marked as finished (`execution`) stays as it
is, and the rest is run again from its beginning, with the noise it had before (`steps.rewrite`). A process ends with
the one that started it, so that an orphan never writes beside its successor. A step that fails is recorded and tried
again by the next run; steps that need it are left out, all others go on.

The cache holds the originals: it is as private as the data, and only its owner may read it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from tacit.engines import processes
from tacit.engines.supervisor import SupervisedWorker, Supervisor, WorkerDeath
from tacit.errors import BadParameterError
from tacit.experiments.execution import FAILURE, StepTask, destroy_key, folder_of, is_finished, outcome
from tacit.experiments.expansion import Step
from tacit.experiments.plan import Plan
from tacit.experiments.raw import write_json

MOST_DEATHS: Final = 2
SECONDS_BETWEEN_NEWS: Final = 0.25
SHORT_CHAIN: Final = 2
"""A release and what is measured on it: such steps come in the order in which a process has most to use again."""


@dataclass
class Status:
    """How far a run is. `progress` holds, by key, how much of a running step is done."""

    plan: Plan
    steps: dict[str, Step]
    cached: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    progress: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def ready(self) -> set[str]:
        return self.cached | self.finished

    def blocked(self, step: Step) -> bool:
        return any(cell.key in self.failed or self.blocked(cell) for cell in step.inputs.values())

    @property
    def settled(self) -> bool:
        return all(key in self.ready or key in self.failed or self.blocked(s) for key, s in self.steps.items())


Watch = Callable[[Status], None]


def run_plan(
    plan: Plan, cache: Path, *, workers: int = 1, only: set[str] | None = None, watch: Watch | None = None
) -> Status:
    """Run what is missing. `only` names steps; what they need is run as well."""
    if workers < 1:
        raise BadParameterError(
            "too-few-workers", "{option.workers} must be at least 1, not {workers}", workers=workers
        )
    wanted = {step.key: step for step in plan.steps if only is None or step.name in only}
    for step in list(wanted.values()):
        wanted |= {cell.key: cell for cell in step.ancestors()}
    ordered = {step.key: wanted[step.key] for step in plan.steps if step.key in wanted}
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = Status(plan, ordered)
    for key, step in ordered.items():
        folder = folder_of(cache, step)
        if is_finished(folder):
            destroy_key(folder)
            status.cached.add(key)
    with Supervisor[str](_work, most=workers) as supervisor:
        StepQueue(status, cache, supervisor).run(watch or (lambda _: None))
    return status


# The processes ----------------------------------------------------------------------------------------------------


class StepQueue:
    """Hands out steps whose inputs are ready, and notes what becomes of them."""

    def __init__(self, status: Status, cache: Path, supervisor: Supervisor[str]) -> None:
        self._status, self._cache, self._supervisor = status, cache, supervisor
        self._chains = chains_of(status.steps)
        self._last: dict[SupervisedWorker[str], Step] = {}

    def run(self, watch: Watch) -> None:
        watch(self._status)
        while not self._status.settled:
            self._hand_out()
            self._listen()
            watch(self._status)

    def _waiting(self) -> Iterator[Step]:
        status = self._status
        for key, step in status.steps.items():
            begun = key in status.ready or key in status.failed or key in status.running
            if not begun and all(cell.key in status.ready for cell in step.inputs.values()):
                yield step

    def _hand_out(self) -> None:
        waiting = list(self._waiting())
        while waiting and (worker := self._supervisor.free_worker()) is not None:
            busy = [self._last[other] for other in self._supervisor.workers if other.in_hand]
            others = {cell.key for step in busy for cell in step.inputs.values()}
            step = next_for(self._last.get(worker), waiting, self._chains, others)
            waiting.remove(step)
            inputs = {name: folder_of(self._cache, cell).absolute() for name, cell in step.inputs.items()}
            folder = folder_of(self._cache, step).absolute()
            task = StepTask(step.kind, step.parameters.model_dump(), inputs, folder)
            self._supervisor.hand_out(step.key, task, worker)
            self._last[worker] = step
            self._status.running[step.key] = time.monotonic()

    def _listen(self) -> None:
        for event in self._supervisor.events(SECONDS_BETWEEN_NEWS):
            if isinstance(event, WorkerDeath):
                self._note_death(event)
                continue
            if isinstance(event.message, tuple):
                self._status.progress[event.key] = event.message
                continue
            if isinstance(event.message, str):
                self._status.failed[event.key] = event.message
            else:
                self._status.finished.add(event.key)
            self._supervisor.finish(event)
            self._settle(event.key)

    def _settle(self, key: str) -> None:
        self._status.running.pop(key, None)
        self._status.progress.pop(key, None)

    def _note_death(self, death: WorkerDeath[str]) -> None:
        """A process that died takes its step with it once; the second time, the step counts as failed."""
        key = death.keys[0]
        if death.times >= MOST_DEATHS:
            reason = f"its process died twice ({death.ending}), most likely for want of memory"
            self._status.failed[key] = reason
            with contextlib.suppress(OSError):
                write_json(folder_of(self._cache, self._status.steps[key]) / FAILURE, {"error": reason})
        self._settle(key)


def next_for(
    last: Step | None, waiting: Sequence[Step], chains: Mapping[str, int], others: Set[str] = frozenset()
) -> Step:
    """The step that a process goes on with. Which process runs a step changes nothing but the time it takes.

    What a long chain of other steps waits for comes first (a model that is trained on before texts go through it):
    otherwise one process would be busy with it at the end, and the others idle. Then the step that has most inputs in
    common with the last one of the process, or is made from it: what the process has loaded and computed of them
    (models, vectors, features of frozen layers) is used again. Then one whose inputs no other process works with: they
    are computed once. Of equals, one that does the same, then the first in the plan.
    """
    known = set() if last is None else {last.key, *(cell.key for cell in last.inputs.values())}

    def rank(step: Step) -> tuple[int, int, int, bool]:
        inputs = [cell.key for cell in step.inputs.values()]
        alike = last is not None and step.name == last.name
        mine, theirs = sum(key in known for key in inputs), sum(key in others for key in inputs)
        return max(SHORT_CHAIN, chains.get(step.key, 0)), mine, -theirs, alike

    return max(waiting, key=rank)


def chains_of(steps: Mapping[str, Step]) -> dict[str, int]:
    """How many steps, one after the other, begin with each: 1 for a step that nothing waits for."""
    lengths = dict.fromkeys(steps, 1)
    for key, step in reversed(list(steps.items())):
        for cell in step.inputs.values():
            if cell.key in lengths:
                lengths[cell.key] = max(lengths[cell.key], lengths[key] + 1)
    return lengths


def _work(connection: Connection) -> None:
    """The life of a worker: run what comes until the runner closes the pipe."""
    inbox = processes.inbox_of(connection)
    last_news = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal last_news
        if time.monotonic() - last_news > SECONDS_BETWEEN_NEWS:
            last_news = time.monotonic()
            connection.send((int(done), int(total)))

    while True:
        task = inbox.get()
        assert isinstance(task, StepTask)
        connection.send(outcome(task, progress))
