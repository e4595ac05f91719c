"""Ray itself: a small one on this machine, or a cluster that is already running.

On this machine Ray is started without a dashboard, metrics and messages about usage, with its files (logs, and what its
object store spills) in a folder that only the owner may enter and that is deleted at the end. Whoever may talk to a Ray
can run code in it and read its objects, which are private texts. So ours listens on the loopback address only, and asks
for a token that is drawn anew for every process of ours; versions of Ray that cannot do so are refused. A cluster that
is joined is as safe as its operators made it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import secrets
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final, TextIO

from tacit.engines.processes import one_thread
from tacit.errors import BadInputError, BadParameterError, MissingExtraError, TacitError, install_line, require

PURPOSE: Final = "the engine 'ray'"
LOOPBACK: Final = "127.0.0.1"
NO_NETWORK: Final = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Ray's setting for a Ray of one machine, on every system: all its processes then listen on the loopback address, which
they otherwise never do, whatever address they are given. Read when Ray is imported."""
LEAST_VERSION: Final = (2, 59)
"""The first Ray that asks for a token by itself where it is started with `ray.init`."""
MODE, TOKEN, TOKEN_FILE = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
OUR_TOKEN: Final = secrets.token_hex(32)
"""One token for the life of this process, because Ray reads it once. Its processes find it in their environment, which
other users cannot read; nothing is written to the user's home, where Ray itself would put one."""
STORE_BYTES_PER_WORKER: Final = 150_000_000
START_CHANCES: Final = 3
SYSTEM_SETTINGS: Final = {"enable_metrics_collection": False, "task_events_report_interval_ms": 0}
"""No metrics and no history of tasks: nobody is there to collect them."""
QUIET: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""Settings that keep Ray from telephoning home, and from a warning about graphics cards."""


@dataclass(frozen=True)
class Cluster:
    """Ray, and how many workers to use."""

    ray: ModuleType
    workers: int


@contextlib.contextmanager
def cluster(address: str | None = None, workers: int = 1) -> Iterator[Cluster]:
    """Ray for the length of a job. One that this process has started already is used as it is and left running."""
    if workers < 1:
        raise BadParameterError("bad-option", "{option.workers} must be at least 1, not {workers}", workers=workers)
    ray = _library(NO_NETWORK if address is None else {})
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


def _library(settings: Mapping[str, str]) -> ModuleType:
    os.environ.update({name: value for name, value in QUIET.items() if name not in os.environ})
    with _environment(**settings):
        ray = require("ray", extra="ray", purpose=PURPOSE)
    _check_version(str(ray.__version__))
    logging.getLogger("ray").setLevel(logging.ERROR)
    return ray


def _check_version(version: str) -> None:
    """Older versions of Ray run the code of anybody who reaches their ports."""
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < LEAST_VERSION:
        least = ".".join(str(part) for part in LEAST_VERSION)
        raise MissingExtraError(
            "library-too-old",
            "{purpose} needs Ray {least} or newer, which lets nobody in without a token, and {version} is "
            "installed: {install}",
            purpose=PURPOSE,
            least=least,
            version=version,
            install=install_line("ray"),
        )


def _load_data() -> None:
    """Ray Data, with pandas and more behind it: imported while Ray and its first workers start."""
    require("ray.data", extra="ray", purpose=PURPOSE)
    logging.getLogger("ray.data").setLevel(logging.ERROR)


@contextlib.contextmanager
def _started(ray: ModuleType, workers: int) -> Iterator[None]:
    with _private_folder() as folder, _own_messages_only(folder / "messages.log"):
        try:
            # Ray waits for its processes while it starts: time enough for the imports.
            loading = threading.Thread(target=_load_data, daemon=True)
            loading.start()
            # The mode is left open: Ray then chooses tokens by itself, also where it was imported before. Variables of
            # the user that would switch them off, or name another token, are not seen. Workers stay here as well.
            closed = {MODE: None, TOKEN: OUR_TOKEN, TOKEN_FILE: None, **NO_NETWORK}
            with _environment(**closed):
                _start(ray, workers, folder)
            loading.join()
            _load_data()
            yield
        finally:
            ray.shutdown()


def _start(ray: ModuleType, workers: int, folder: Path) -> None:
    """Ray gives itself 30 seconds to start. A busy machine can need more the first time, so it gets further chances."""
    for chance in range(1, START_CHANCES + 1):
        try:
            with one_thread():
                ray.init(
                    address="local",
                    _node_ip_address=LOOPBACK,
                    # One more than there are workers: somebody reads the files.
                    num_cpus=workers + 1,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    object_store_memory=STORE_BYTES_PER_WORKER * (workers + 1),
                    _temp_dir=str(folder),
                    _system_config=SYSTEM_SETTINGS,
                )
            _check_closed(ray)
            return
        except TacitError:
            raise
        except Exception as error:
            ray.shutdown()
            if chance == START_CHANCES:
                raise TacitError(
                    "cluster-not-started",
                    "Ray could not be started on this machine ({error}): close other programs, or use "
                    "{option.engine[local]}",
                    error=type(error).__name__,
                ) from error


def _check_closed(ray: ModuleType) -> None:
    """Private texts go into a Ray that we started only if nobody else can reach it."""
    if os.environ.get(MODE) != "token":
        raise TacitError(
            "cluster-without-token",
            "this Ray lets anybody in without a token: install a newer one, or use {option.engine[local]}",
        )
    if ray.util.get_node_ip_address() != LOOPBACK:
        name, value = next(iter(NO_NETWORK.items()))
        raise TacitError(
            "cluster-listens-on-network",
            "Ray was imported before Tacit could tell it to stay on this machine, so it would listen on the "
            "network: set {variable}={value} before the program starts, or start Ray yourself and give its address",
            variable=name,
            value=value,
        )


@contextlib.contextmanager
def _environment(**settings: str | None) -> Iterator[None]:
    """Variables of the environment for a while; None: not set."""
    before = {name: os.environ.pop(name, None) for name in settings}
    os.environ.update({name: value for name, value in settings.items() if value is not None})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def _joined(ray: ModuleType, address: str) -> Iterator[None]:
    if address.startswith("ray://"):
        raise BadInputError(
            "cluster-client-address",
            "{option.engine[ray]} does not use the Ray client (ray://): start the command on a machine of the "
            "cluster with {option.address[auto]}, for example with 'ray job submit', or give "
            "{option.address[HOST:PORT]} from inside its network",
        )
    with _own_messages_only(Path(os.devnull)):
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except Exception as error:
            raise BadInputError(
                "cluster-not-reached",
                "no Ray cluster answers at '{address}' ({error}): check the address, or leave out {option.address} "
                "to start one here",
                address=address,
                error=type(error).__name__,
            ) from error
        try:
            _load_data()
            yield
        finally:
            ray.shutdown()


def _check_size(ray: ModuleType, address: str, workers: int) -> None:
    cores = int(ray.cluster_resources().get("CPU", 0))
    if workers > cores:
        raise BadParameterError(
            "cluster-too-small",
            "the cluster at '{address}' has {cores} CPUs, too few for {option.workers} {workers}: give at most {cores}",
            address=address,
            cores=cores,
            workers=workers,
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
    """Send to a file whatever the inner parts of Ray write to standard error, so that only the command's own messages
    are shown."""
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


def _is_standard_error(stream: TextIO) -> bool:
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
def streaming(ray: ModuleType) -> Iterator[None]:
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
