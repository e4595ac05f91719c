"""Runs the cells of a plan that are not in the cache, with several processes.

    CACHE/KIND/KEY/   parameters.json, the raw files of the step, costs.json, and last finished.json
    CACHE/KIND/KEY/scores/CODE.json   the scores that this code derived from the raw files; scores.json is the newest

`finished.json` appears by a rename when everything else is on the disk. So a run may be killed at any moment, itself or
one of its processes: what is marked stays as it is, and the rest is run again from its beginning, with the noise it had
before (`steps.rewrite`). Each folder is locked while a process works in it, and a process ends with the one that
started it, so that an orphan never writes beside its successor. A step that fails is recorded and tried again by the
next run; steps that need it are left out, all others go on.

The cache holds the originals: it is as private as the data, and only its owner may read it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tacit.atomic import sync
from tacit.engines import processes
from tacit.errors import BadParameterError, TacitError, place_of
from tacit.experiments.plan import Plan, Step
from tacit.experiments.raw import read_json, write_json
from tacit.experiments.sources import scoring_digest
from tacit.experiments.steps import KEY_FILE, RUN_FOLDER, kinds
from tacit.noise.kept_key import erase

MARKER = "finished.json"
FAILURE = "failed.json"
LOCK = "lock"
SCORES = "scores"
MOST_DEATHS = 2
SECONDS_BETWEEN_NEWS = 0.25


def folder_of(cache: Path, step: Step) -> Path:
    return cache / step.kind / step.key


def is_finished(folder: Path) -> bool:
    return (folder / MARKER).is_file()


@dataclass(frozen=True)
class Task:
    """All a worker needs to know of a step."""

    kind: str
    parameters: dict[str, Any]
    inputs: dict[str, Path]
    folder: Path


SHORT_CHAIN = 2
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
        raise BadParameterError(f"--workers must be at least 1, not {workers}")
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
    crew = Crew(status, cache, workers, watch)
    try:
        crew.run()
    finally:
        crew.stop()
    return status


def destroy_key(folder: Path) -> None:
    """What was released is on the disk: nobody needs the key any more, and whoever has it can undo the noise."""
    erase(folder / KEY_FILE)
    shutil.rmtree(folder / RUN_FOLDER, ignore_errors=True)


# The processes ----------------------------------------------------------------------------------------------------


@dataclass
class Worker:
    process: BaseProcess
    connection: Connection
    key: str | None = None
    last: Step | None = None


class Crew:
    """Hands out steps whose inputs are ready, and notes what becomes of them."""

    def __init__(self, status: Status, cache: Path, count: int, watch: Watch | None) -> None:
        self._status, self._cache, self._count = status, cache, count
        self._watch = watch or (lambda _: None)
        self._workers: list[Worker] = []
        self._deaths: dict[str, int] = {}
        self._chains = chains_of(status.steps)

    def run(self) -> None:
        self._watch(self._status)
        while not self._status.settled:
            self._hand_out()
            self._listen()
            self._watch(self._status)

    def stop(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.connection.close()
        self._workers.clear()

    def _waiting(self) -> Iterator[Step]:
        status = self._status
        for key, step in status.steps.items():
            begun = key in status.ready or key in status.failed or key in status.running
            if not begun and all(cell.key in status.ready for cell in step.inputs.values()):
                yield step

    def _hand_out(self) -> None:
        waiting = list(self._waiting())
        while waiting:
            worker = next((one for one in self._workers if one.key is None), None)
            if worker is None:
                if len(self._workers) >= self._count:
                    return
                worker = self._hire()
            others = {
                cell.key
                for one in self._workers
                if one.key is not None and one.last is not None
                for cell in one.last.inputs.values()
            }
            step = next_for(worker.last, waiting, self._chains, others)
            waiting.remove(step)
            inputs = {name: folder_of(self._cache, cell).absolute() for name, cell in step.inputs.items()}
            folder = folder_of(self._cache, step).absolute()
            with contextlib.suppress(OSError):  # a dead worker is found when it is listened to
                worker.connection.send(Task(step.kind, step.parameters.model_dump(), inputs, folder))
            worker.key, worker.last = step.key, step
            self._status.running[step.key] = time.monotonic()

    def _listen(self) -> None:
        by_connection = {worker.connection: worker for worker in self._workers if worker.key is not None}
        for ready in wait(list(by_connection), SECONDS_BETWEEN_NEWS):
            worker = by_connection[ready]  # type: ignore[index]
            assert worker.key is not None
            try:
                news = worker.connection.recv()
            except (EOFError, OSError):
                self._bury(worker)
                continue
            if isinstance(news, tuple):
                self._status.progress[worker.key] = news
                continue
            if isinstance(news, str):
                self._status.failed[worker.key] = news
            else:
                self._status.finished.add(worker.key)
            self._settle(worker)

    def _settle(self, worker: Worker) -> None:
        assert worker.key is not None
        self._status.running.pop(worker.key, None)
        self._status.progress.pop(worker.key, None)
        worker.key = None

    def _bury(self, worker: Worker) -> None:
        """A process that died takes its step with it once; the second time, the step counts as failed."""
        self._workers.remove(worker)
        processes.bury(worker.process, worker.connection)
        key = worker.key
        assert key is not None
        self._deaths[key] = self._deaths.get(key, 0) + 1
        if self._deaths[key] >= MOST_DEATHS:
            reason = f"its process died twice ({_ending(worker.process)}), most likely for want of memory"
            self._status.failed[key] = reason
            with contextlib.suppress(OSError):
                write_json(folder_of(self._cache, self._status.steps[key]) / FAILURE, {"error": reason})
        self._settle(worker)

    def _hire(self) -> Worker:
        self._workers.append(Worker(*processes.start(_work)))
        return self._workers[-1]


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
    found = dict.fromkeys(steps, 1)
    for key, step in reversed(list(steps.items())):
        for cell in step.inputs.values():
            if cell.key in found:
                found[cell.key] = max(found[cell.key], found[key] + 1)
    return found


def _ending(process: BaseProcess) -> str:
    return processes.signal_of(process) or f"exit code {process.exitcode or 0}"


def _work(connection: Connection) -> None:
    """The life of a worker: run what comes until the runner closes the pipe."""
    inbox = processes.inbox_of(connection)
    told = [0.0]

    def progress(done: int, total: int) -> None:
        if time.monotonic() - told[0] > SECONDS_BETWEEN_NEWS:
            told[0] = time.monotonic()
            connection.send((int(done), int(total)))

    while True:
        task = inbox.get()
        assert isinstance(task, Task)
        connection.send(outcome(task, progress))


# One step ---------------------------------------------------------------------------------------------------------


def outcome(task: Task, progress: Callable[[int, int], None]) -> str | None:
    """Run a step; what went wrong is returned, and kept in its folder, without any text of the data."""
    try:
        execute(task, progress)
    except TacitError as error:
        reason = str(error)
    except MemoryError:
        reason = "it ran out of memory: use fewer --workers, or a smaller size"
    except Exception as error:
        if os.environ.get("TACIT_DEBUG"):
            raise
        # The message of an unexpected error can quote the data.
        reason = f"unexpected {place_of(error)}"
    else:
        return None
    with contextlib.suppress(OSError):
        write_json(task.folder / FAILURE, {"error": reason})
    return reason


def execute(task: Task, progress: Callable[[int, int], None]) -> None:
    """Run a step in its folder from the beginning, and mark it finished."""
    kind = kinds()[task.kind]
    task.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked(task.folder):
        if is_finished(task.folder):  # by another run, while this one waited for the lock
            return
        for path in task.folder.iterdir():
            if path.name not in (KEY_FILE, RUN_FOLDER, LOCK):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        write_json(task.folder / "parameters.json", task.parameters)
        forget_peak()
        processor, clock = time.process_time(), time.monotonic()
        kind.run(kind.parameters.model_validate(task.parameters), task.inputs, task.folder, progress)
        costs = {"cpu_seconds": time.process_time() - processor, "seconds": time.monotonic() - clock,
                 "peak_megabytes": peak_megabytes()}  # fmt: skip
        _derive(kind.name, task.folder)
        write_json(task.folder / "costs.json", costs)
        put_on_disk(task.folder)
        write_json(task.folder / MARKER, {"kind": kind.name, "version": kind.version})
        # Without its key a step that lost its marker would draw new noise, so the marker comes first here as well.
        sync_folder(task.folder)
        destroy_key(task.folder)


def put_on_disk(folder: Path) -> None:
    """Write through what the system still holds back: steps and libraries (arrays, models) leave that to it. What is
    on the disk already costs next to nothing."""
    for place, folders, files in os.walk(folder):
        # Checkpoints, key and lock are gone or meaningless once the step is finished.
        folders[:] = [name for name in folders if (Path(place) / name) != folder / RUN_FOLDER]
        for name in files:
            if name not in (KEY_FILE, LOCK):
                sync(Path(place) / name)
        sync_folder(Path(place))
    for above in (folder.parent, folder.parent.parent):  # CACHE/KIND and CACHE, which may be new
        sync_folder(above)


def sync_folder(folder: Path) -> None:
    """Names live in folders. Some systems cannot open one, and need not."""
    with contextlib.suppress(OSError):
        sync(folder)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # a system without this kind of lock
        yield
        return
    with (folder / LOCK).open("a") as file:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield


def forget_peak() -> None:
    """Let the peak memory of this process start anew (Linux; elsewhere it is that of its whole life)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_megabytes() -> float:
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def failure_of(folder: Path) -> str | None:
    path = folder / FAILURE
    return str(read_json(path)["error"]) if path.is_file() else None


def scores_in(kind: str, folder: Path) -> dict[str, float]:
    """The scores of a finished step, derived again from its raw files where other code made those that are there."""
    path = _scores_file(kind, folder)
    found = read_json(path) if path.is_file() else _derive_alone(kind, folder)
    return {name: float(value) for name, value in found.items()}


def rescore(step: Step, cache: Path) -> Mapping[str, float]:
    """The scores of a finished step, derived again from its raw files in any case."""
    return _derive_alone(step.kind, folder_of(cache, step))


def _scores_file(kind: str, folder: Path) -> Path:
    return folder / SCORES / f"{scoring_digest(kind)}.json"


def _derive_alone(kind: str, folder: Path) -> Mapping[str, float]:
    with locked(folder):
        return _derive(kind, folder)


def _derive(kind: str, folder: Path) -> Mapping[str, float]:
    found = kinds()[kind].score(folder)
    path = _scores_file(kind, folder)
    path.parent.mkdir(exist_ok=True)
    write_json(folder / "scores.json", found)  # for steps that go on from the scores of another
    write_json(path, found)
    return found
