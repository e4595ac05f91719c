"""Which job is worked on when: a few at the same time, so that the jobs of one key never hold up those of all others.

A key has at most all places but one. A job whose worker died is started again, and goes on with the noise it had; one
whose worker dies twice without having finished another block in between is failed, because it would go on so for ever.
The count is on the disk before the work begins, so it also holds for a job that takes the whole service with it.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import Final

from tacit.engines.job import RewriteProgress
from tacit.serve.errors import as_service_error, note
from tacit.serve.jobs import SYNTHESIZE, Job, JobStore
from tacit.serve.keys import Keys
from tacit.serve.metrics import Metrics
from tacit.serve.runner import JobOutcome, JobTask, StopError
from tacit.serve.settings import ServiceSettings
from tacit.serve.workplace import JobProcessDiedError
from tacit.text.files import partial_path

log = logging.getLogger("tacit.serve")

MOST_ATTEMPTS: Final = 2
SWEEP_SECONDS: Final = 20.0
STOP_SECONDS: Final = 10.0
DIED: Final = (
    "the worker of this job died twice at the same place, most likely for want of memory: send the file in smaller "
    "parts, or ask the operator of the service, then resume the job"
)

Work = Callable[[JobTask, Callable[[RewriteProgress], None], Callable[[], None]], JobOutcome]


class Schedule:
    """The jobs of a store, worked on in their order. `work` is how and where one of them is done."""

    def __init__(self, store: JobStore, keys: Keys, metrics: Metrics, work: Work, settings: ServiceSettings) -> None:
        self._store = store
        self._keys = keys
        self._metrics = metrics
        self._work = work
        self._settings = settings
        self._waiting: list[str] = []
        self._running: Counter[str | None] = Counter()
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, name=f"tacit-job-{number}", daemon=True)
            for number in range(settings.jobs)
        ]
        # Beside the jobs, because a job may take longer than files are kept.
        self._sweeper = threading.Thread(target=self._sweep, name="tacit-sweep", daemon=True)

    def start(self) -> None:
        """Go on with what an earlier service left."""
        self._waiting += [job.id for job in self._store.open_jobs()]
        self._count()
        for thread in (*self._threads, self._sweeper):
            thread.start()

    def stop(self) -> None:
        """Stop running jobs; they resume when a service starts again."""
        self._ending.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(timeout=STOP_SECONDS)
        self._sweeper.join(timeout=5)

    def put(self, job: Job) -> None:
        with self._changed:
            self._waiting.append(job.id)
            self._changed.notify_all()
        self._count()

    # The threads ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while (job := self._next()) is not None:
            try:
                self._carry_out(job)
                self._count()
            except Exception as error:  # the thread must live: other jobs wait for it
                note(error)
            finally:
                with self._changed:
                    self._running[job.owner] -= 1
                    self._changed.notify_all()

    def _next(self) -> Job | None:
        """The oldest job whose owner has a place left; None when the service ends."""
        most = max(1, self._settings.jobs - 1)
        with self._changed:
            while not self._ending.is_set():
                for id in list(self._waiting):
                    job = self._store.current(id)
                    if job is None or not job.is_open:
                        self._waiting.remove(id)
                    elif self._running[job.owner] < most:
                        self._waiting.remove(id)
                        self._running[job.owner] += 1
                        return job
                self._changed.wait()
        return None

    def _sweep(self) -> None:
        while not self._ending.wait(SWEEP_SECONDS):
            try:
                self._store.sweep()
                self._store.flush()
                self._count()
            except Exception as error:
                note(error)

    def _count(self) -> None:
        for state, number in self._store.counts().items():
            self._metrics.jobs.labels(state).set(number)

    # One job --------------------------------------------------------------------------------------------------

    def _carry_out(self, waiting: Job) -> None:
        """One job, to whatever end."""
        job = self._begin(waiting)
        if job is None:
            return
        files = self._store.files(job)
        task = JobTask(
            job.id,
            job.owner,
            job.name,
            job.settings,
            files,
            self._settings.job_workers,
            self._settings.unpacked,
            self._settings.refuse_nominal,
        )

        def tell(now: RewriteProgress) -> None:
            self._store.update(job.id, durable=False, rows=now.rows, units=now.units, bytes_done=now.bytes_done)

        try:
            outcome = self._work(task, tell, lambda: self._check_going(job))
        except StopError as stop:
            if self._ending.is_set():
                self._store.update(job.id, attempts=job.attempts - 1)  # asked to stop: that is no failed attempt
            else:
                self._give_up(job, str(stop))
        except JobProcessDiedError as death:
            log.error("the worker of a job died (%s)", death)
            if not self._ending.is_set():
                self.put(job)
        except Exception as error:
            note(error)
            self._fail(job, as_service_error(error).message, resumable=True)
        else:
            self._end(job, outcome)

    def _begin(self, job: Job) -> Job | None:
        """Count the attempt before it is made; None if there were enough."""
        mark = self._written(job)
        attempts = job.attempts if mark <= job.mark else 0
        if attempts >= MOST_ATTEMPTS:
            log.error("a job failed: its worker died %d times at the same place", attempts)
            self._fail(job, DIED, resumable=True)
            return None
        return self._store.update(
            job.id, state="running", error=None, resumable=False, attempts=attempts + 1, mark=max(mark, job.mark)
        )

    def _written(self, job: Job) -> int:
        """How much of the output is finished; of a corpus, its sketch."""
        files = self._store.files(job)
        begun = files.sketch if job.kind == SYNTHESIZE else partial_path(files.output)
        try:
            return begun.stat().st_size
        except OSError:
            return 0

    def _check_going(self, job: Job) -> None:
        current = self._store.current(job.id)
        if self._ending.is_set() or current is None or not current.is_open:
            raise StopError("stopped", "stopped")
        if job.owner is not None and not self._keys.is_active(job.owner):
            raise StopError("key-revoked", "the key of this job was revoked: nothing of it can be fetched")

    def _end(self, job: Job, outcome: JobOutcome) -> None:
        if outcome.over_budget:
            self._metrics.refusals.inc()
        if outcome.error is not None:
            self._fail(job, outcome.error, outcome.resumable)
            return
        self._metrics.units.labels(outcome.mechanism).inc(outcome.units)
        finished = self._store.update(
            job.id, state="done", rows=outcome.rows, units=outcome.units, bytes_done=job.total_bytes, attempts=0
        )
        if finished is None:
            self._give_up(job, "stopped")  # it was canceled, or its time was over, at the very end

    def _fail(self, job: Job, reason: str, resumable: bool) -> None:
        kept = (
            self._store.update(job.id, state="failed", error=reason, resumable=True, attempts=0) if resumable else None
        )
        if kept is None:
            self._give_up(job, reason)

    def _give_up(self, job: Job, reason: str) -> None:
        current = self._store.current(job.id)
        if current is not None and current.is_open:
            self._store.end(job.id, "failed", reason)
        elif current is not None:
            self._store.end(job.id, current.state, current.error)  # what the engine wrote after it was canceled
