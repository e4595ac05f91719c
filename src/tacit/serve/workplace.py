"""Where jobs are worked on: each in a process of its own, with a limit on its memory.

A file of a stranger may unpack to anything, and a computation may take any time. In a process of its own a job can
neither take the memory of the service nor hold up its shutdown: it is ended at once when it is canceled, when its key
is revoked or when the service stops. That may happen at any moment, because a job that is ended goes on with the noise
it had, and its budget was written down before.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from tacit.engines import processes
from tacit.engines.job import RewriteProgress
from tacit.engines.supervisor import Supervisor, WorkerDeath
from tacit.errors import TacitError, TacitWarning
from tacit.serve.budget import Accounts
from tacit.serve.keys import Keys
from tacit.serve.lock import lock_job
from tacit.serve.metrics import Metrics
from tacit.serve.pool import Pool
from tacit.serve.runner import JobOutcome, JobTask, JobWork
from tacit.serve.settings import ServiceSettings

POLL_SECONDS: Final = 0.2
"""How soon a job ends that was canceled."""


class JobProcessDiedError(TacitError):
    """The process of a job ended without a word."""


class JobProcesses:
    """Works on a job in a fresh process."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings

    def __call__(self, task: JobTask, tell: Callable[[RewriteProgress], None], check: Callable[[], None]) -> JobOutcome:
        settings = self._settings
        arguments = (settings.state, settings.ledger_place, settings.allowed, settings.job_memory)
        check()
        with Supervisor[str](work_apart, arguments, most=1, independent=True) as supervisor:
            supervisor.hand_out(task.id, task)
            while True:
                for event in supervisor.events(POLL_SECONDS):
                    if isinstance(event, WorkerDeath):
                        raise JobProcessDiedError("workers-died", "{ending}", ending=event.ending)
                    if isinstance(event.message, JobOutcome):
                        return event.message
                    assert isinstance(event.message, RewriteProgress)
                    tell(event.message)
                check()


def work_apart(
    connection: Connection,
    state: Path,
    ledger: str,
    allowed: Sequence[tuple[str, str]],
    most_bytes: int,
) -> None:
    """The life of the process of a job."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the service, which hears it too, ends this process
    os.umask(0o077)
    inbox = processes.inbox_of(connection)  # ends this process with the service
    processes.limit_memory(most_bytes)
    warnings.simplefilter("ignore", TacitWarning)
    accounts = Accounts(ledger, Metrics(), Keys(state))
    try:
        task = inbox.get()
        assert isinstance(task, JobTask)
        lock = lock_job(task.files.path)
        outcome = JobWork(task, Pool(1, allowed), accounts, connection.send, lambda: None).outcome()
        accounts.close()
        lock.release()
        connection.send(outcome)
    except BaseException:  # its message could quote a text, and the service learns enough from the ending
        os._exit(1)
