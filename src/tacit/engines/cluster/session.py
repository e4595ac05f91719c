"""Ray itself: a small one on this machine, or one that is there already.

On this machine Ray is started without a dashboard, without its messages about usage and what else a single command does
not need (`lean`), with its files (logs, and what its object store spills) in a folder that only the owner may enter and
that is deleted at the end.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tacit.engines.cluster.lean import (
    COUNTING,
    GROWING,
    LOOKING,
    PROCESSES,
    SYSTEM_SETTINGS,
    TRACKING,
    WEB_SERVER,
    without,
)
from tacit.engines.processes import one_thread
from tacit.errors import BadInputError, BadParameterError, TacitError, require

PURPOSE: Final = "--engine ray"
STORE_BYTES_PER_WORKER: Final = 150_000_000
START_CHANCES: Final = 3
QUIET: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""Settings that keep Ray from telephoning home, and from a warning about graphics cards."""


@dataclass(frozen=True)
class Cluster:
    """Ray, and how many workers to use."""

    ray: Any
    workers: int


@contextlib.contextmanager
def cluster(address: str | None = None, workers: int = 1) -> Iterator[Cluster]:
    """Ray for the length of a job. One that this process has started already is used as it is and left running."""
    if workers < 1:
        raise BadParameterError(f"--workers must be at least 1, not {workers}")
    ray = _library()
    if ray.is_initialized():
        _load_data()
        yield Cluster(ray, workers)
        return
    with _joined(ray, address) if address else _started(ray, workers):
        if address:
            _check_size(ray, address, workers)
        yield Cluster(ray, workers)


@contextlib.contextmanager
def starting(address: str | None = None, workers: int = 1) -> Iterator[Callable[[], Cluster]]:
    """The same, entered in a thread: Ray takes seconds to start, mostly waiting, and a command has something to do in
    the meantime. Calling what is given waits for it."""
    with contextlib.ExitStack() as entered, ThreadPoolExecutor(1, "tacit-ray") as thread:
        ready = thread.submit(entered.enter_context, cluster(address, workers))
        try:
            yield ready.result
        finally:
            wait([ready])  # only what has been entered can be left


def _library() -> Any:
    os.environ.update({name: value for name, value in QUIET.items() if name not in os.environ})
    ray: Any = require("ray", extra="ray", purpose=PURPOSE)
    logging.getLogger("ray").setLevel(logging.ERROR)
    return ray


def _load_data() -> None:
    """Ray Data, with pandas and more behind it: imported while Ray and its first workers start."""
    require("ray.data", extra="ray", purpose=PURPOSE)
    logging.getLogger("ray.data").setLevel(logging.ERROR)


@contextlib.contextmanager
def _started(ray: Any, workers: int) -> Iterator[None]:
    with _private_folder() as folder, _own_messages_only(folder / "messages.log"):
        try:
            # Ray waits for its processes while it starts: time enough for the imports.
            loading = threading.Thread(target=_load_data, daemon=True)
            loading.start()
            with without(PROCESSES, WEB_SERVER, LOOKING):
                _start(ray, workers, folder)
            loading.join()
            _load_data()
            with without(COUNTING, GROWING, TRACKING):
                yield
        finally:
            ray.shutdown()


def _start(ray: Any, workers: int, folder: Path) -> None:
    """Ray gives itself 30 seconds to start. A busy machine can need more the first time, so it gets further chances."""
    for chance in range(1, START_CHANCES + 1):
        try:
            with one_thread():
                ray.init(
                    address="local",
                    # One more than there are workers: somebody reads the files.
                    num_cpus=workers + 1,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    object_store_memory=STORE_BYTES_PER_WORKER * (workers + 1),
                    _temp_dir=str(folder),
                    _system_config=SYSTEM_SETTINGS,
                )
            return
        except Exception as error:
            ray.shutdown()
            if chance == START_CHANCES:
                raise TacitError(
                    f"Ray could not be started on this machine ({type(error).__name__}): close other programs, or use "
                    "--engine local"
                ) from error


@contextlib.contextmanager
def _joined(ray: Any, address: str) -> Iterator[None]:
    if address.startswith("ray://"):
        raise BadInputError(
            "--engine ray does not use the Ray client (ray://): start the command on a machine of the cluster with "
            "--address auto, for example with 'ray job submit', or give --address HOST:PORT from inside its network"
        )
    with _own_messages_only(Path(os.devnull)):
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:
            raise BadInputError(
                f"no Ray cluster answers at '{address}' ({type(error).__name__}): check the address, or leave out "
                "--address to start one here"
            ) from error
        try:
            _load_data()
            yield
        finally:
            ray.shutdown()


def _check_size(ray: Any, address: str, workers: int) -> None:
    cores = int(ray.cluster_resources().get("CPU", 0))
    if workers > cores:
        raise BadParameterError(
            f"the cluster at '{address}' has {cores} CPUs, too few for --workers {workers}: give at most {cores}"
        )


@contextlib.contextmanager
def _private_folder() -> Iterator[Path]:
    """Ray's files. Folders of runs that were killed are deleted by the next run."""
    home = Path(tempfile.gettempdir())
    for old in home.glob("tacit-ray-*-*"):
        owner = old.name.split("-")[2]
        if owner.isdigit() and not _is_running(int(owner)):
            shutil.rmtree(old, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"tacit-ray-{os.getpid()}-", dir=home))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _own_messages_only(log: Path) -> Iterator[None]:
    """What the inner parts of Ray write to standard error goes to a file: the command's own words stand alone."""
    if sys.stderr is None or not _is_standard_error(sys.stderr):
        yield
        return
    before, saved = sys.stderr, os.dup(2)
    with log.open("wb") as file, os.fdopen(saved, "w", encoding=before.encoding, buffering=1) as terminal:
        sys.stderr = terminal
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            sys.stderr = before


def _is_standard_error(stream: Any) -> bool:
    try:
        return bool(stream.fileno() == 2)
    except (OSError, ValueError, AttributeError):  # replaced by something that is no file
        return False


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@contextlib.contextmanager
def streaming(ray: Any) -> Iterator[None]:
    """Settings of Ray Data for our rows, which are few and large: each is a block of its own, handed on at once."""
    context = ray.data.DataContext.get_current()
    wanted = {
        "target_max_block_size": 1,
        "enable_progress_bars": False,
        "print_on_execution_start": False,
        "log_internal_stack_trace": False,
        "enable_auto_log_stats": False,
    }
    before = {name: getattr(context, name) for name in wanted if hasattr(context, name)}
    for name in before:
        setattr(context, name, wanted[name])
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(context, name, value)
