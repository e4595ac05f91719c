"""Runs one step in its folder of the cache, and keeps its scores.

    CACHE/KIND/KEY/   parameters.json, the raw files of the step, costs.json, and last finished.json
    CACHE/KIND/KEY/scores/VERSION.json   the scores that this version of the kind derived from the raw files;
                                         scores.json is the newest

`finished.json` appears by a rename when everything else is on the disk. Each folder is locked while a process works in
it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tacit.atomic import sync, sync_folder
from tacit.errors import TacitError, place_of
from tacit.experiments.expansion import Step
from tacit.experiments.raw import read_json, write_json
from tacit.experiments.steps import KEY_FILE, RUN_FOLDER, AnyKind, kinds
from tacit.noise.kept_key import erase

MARKER: Final = "finished.json"
FAILURE: Final = "failed.json"
LOCK: Final = "lock"
SCORES: Final = "scores"


def folder_of(cache: Path, step: Step) -> Path:
    """Where the cache keeps a cell."""
    return cache / step.kind / step.key


def is_finished(folder: Path) -> bool:
    return (folder / MARKER).is_file()


@dataclass(frozen=True)
class StepTask:
    """All a worker needs to know of a step."""

    kind: str
    parameters: dict[str, Any]
    inputs: dict[str, Path]
    folder: Path


def destroy_key(folder: Path) -> None:
    """Erase the key of a finished release: nobody needs it any more, and whoever has it can undo the noise."""
    erase(folder / KEY_FILE)
    shutil.rmtree(folder / RUN_FOLDER, ignore_errors=True)


def outcome(task: StepTask, progress: Callable[[int, int], None]) -> str | None:
    """Run a step; what went wrong is returned, and kept in its folder, without any text of the data."""
    try:
        execute(task, progress)
    except TacitError as error:
        reason = str(error)
    except MemoryError:
        reason = "it ran out of memory: use fewer workers, or a smaller size"
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


def execute(task: StepTask, progress: Callable[[int, int], None]) -> None:
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
        _derive(kind, task.folder)
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
    """The scores of a finished step, derived again from its raw files where another version made them."""
    path = _scores_file(kinds()[kind], folder)
    scores = read_json(path) if path.is_file() else _derive_alone(kinds()[kind], folder)
    return {name: float(value) for name, value in scores.items()}


def rescore(step: Step, cache: Path) -> Mapping[str, float]:
    """The scores of a finished step, derived again from its raw files in any case."""
    return _derive_alone(kinds()[step.kind], folder_of(cache, step))


def _scores_file(kind: AnyKind, folder: Path) -> Path:
    return folder / SCORES / f"{kind.version}.{kind.scoring}.json"


def _derive_alone(kind: AnyKind, folder: Path) -> Mapping[str, float]:
    with locked(folder):
        return _derive(kind, folder)


def _derive(kind: AnyKind, folder: Path) -> Mapping[str, float]:
    scores = kind.score(folder)
    path = _scores_file(kind, folder)
    path.parent.mkdir(exist_ok=True)
    write_json(folder / "scores.json", scores)  # for steps that go on from the scores of another
    write_json(path, scores)
    return scores
