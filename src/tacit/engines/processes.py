"""Worker processes: each a fresh one (never a fork, which would copy random state), deaf to Ctrl-C, and gone with the
process that started it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

END_SECONDS: Final = 5.0
"""How long the system may take to clear away a process that was killed."""
THREAD_VARIABLES: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


OOM_SCORE: Final = 800
"""What the kernel takes first when memory is short, from -1000 to 1000."""


def start(work: Callable[..., None], *arguments: object) -> tuple[BaseProcess, Connection]:
    """A process that runs `work(connection, *arguments)`, with one thread for linear algebra, and our end of the
    connection."""
    with one_thread():
        return _started(work, arguments, daemon=True)


def start_independent(work: Callable[..., None], *arguments: object) -> tuple[BaseProcess, Connection]:
    """The same, with as many threads as this process has, and allowed to have worker processes of its own."""
    return _started(work, arguments, daemon=False)


def _started(
    work: Callable[..., None], arguments: tuple[object, ...], *, daemon: bool
) -> tuple[BaseProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, *arguments), daemon=daemon)
    resource_tracker.ensure_running()  # or it would unblock the interrupt in between
    with _no_interrupt():
        process.start()
    theirs.close()
    return process, ours


def limit_memory(most_bytes: int) -> None:
    """Limit the memory of this worker process: more fails with a MemoryError in it, and if the machine itself has too
    little, this process goes first. Where the system knows no such limit (Windows), nothing happens."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = most_bytes if hard == resource.RLIM_INFINITY else min(most_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))


def bury(process: BaseProcess, connection: Connection) -> None:
    """Make sure that a process is gone whose connection broke."""
    process.join(timeout=1)  # so that its own ending is known, not the one given here
    process.kill()
    process.join()
    connection.close()


def signal_of(process: BaseProcess) -> str | None:
    """The signal that ended a process; None if it ended by itself."""
    code = process.exitcode or 0
    return next((known.name for known in signal.Signals if known == -code), f"signal {-code}") if code < 0 else None


def inbox_of(connection: Connection) -> queue.SimpleQueue[object]:
    """The messages that reach this worker process while it works. When the connection breaks, the process ends, also in
    the middle of something, so that an orphan never works beside its successor."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, inbox), daemon=True).start()
    return inbox


def _receive(connection: Connection, inbox: queue.SimpleQueue[object]) -> None:
    try:
        while True:
            inbox.put(connection.recv())
    except (EOFError, OSError):
        os._exit(1)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Processes are the parallelism: more threads inside each would fight over the same cores."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Ctrl-C goes to all processes of a terminal; the workers inherit that it is blocked, this process handles it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
