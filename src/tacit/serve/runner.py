"""The thread that works on jobs, one after the other, with the same engine as `tacit rewrite`.

Before any noise is drawn, the whole job is reserved in the ledger (`reserve_job`), so a job that is over budget fails
with nothing released. A job that was stopped by a crash goes on as `tacit rewrite --resume` does, with the noise it
had: no row gets a second draw, and its reservation is found again by its token and counted once.
"""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from tacit.account.ledger import BudgetExceededError, Reservation, Subject
from tacit.card import Card, ReleaseFacts, for_file
from tacit.engines.local import AlreadyCompleteError, Progress, RewriteJob, check_users, rewrite_file
from tacit.engines.users import UserRule
from tacit.errors import BadInputError, TacitError, place_of
from tacit.serve.budget import DATASET, LOCAL, Accounts, command_of
from tacit.serve.errors import as_service_error
from tacit.serve.jobs import Job, JobStore
from tacit.serve.keys import Keys
from tacit.serve.messages import JobSettings
from tacit.serve.metrics import Metrics
from tacit.serve.rewriting import Pool, Prepared
from tacit.text.files import OutputError, choose_columns, open_table, text_value, write_whole

log = logging.getLogger("tacit.serve")

BLOCK_CHARACTERS: Final = 100_000
"""Small blocks, so that progress moves and a canceled job stops soon."""
RESERVED_ROWS: Final = 20_000
"""Rows whose documents are charged in one transaction."""
SWEEP_SECONDS: Final = 20.0


class _StopError(TacitError):
    """The job must not go on now: the service ends, the job was canceled, or its key was revoked."""


class Runner:
    def __init__(
        self, store: JobStore, pool: Pool, accounts: Accounts, keys: Keys, metrics: Metrics, workers: int
    ) -> None:
        self._store = store
        self._pool = pool
        self._accounts = accounts
        self._keys = keys
        self._metrics = metrics
        self._workers = workers
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tacit-jobs", daemon=True)

    def start(self) -> None:
        """Go on with what an earlier service left."""
        for job in self._store.open_jobs():
            self._queue.put(job.id)
        self._count()
        self._thread.start()

    def stop(self) -> None:
        """Stop at the next block; the job goes on when a service starts again."""
        self._ending.set()
        self._queue.put(None)
        self._thread.join(timeout=30)

    def put(self, job: Job) -> None:
        self._queue.put(job.id)
        self._count()

    def _count(self) -> None:
        for state, number in self._store.counts().items():
            self._metrics.jobs.labels(state).set(number)

    def _run(self) -> None:
        while not self._ending.is_set():
            with contextlib.suppress(queue.Empty):
                id = self._queue.get(timeout=SWEEP_SECONDS)
                job = None if id is None else self._store.current(id)
                if job is not None and job.is_open:
                    self._work(job)
            try:
                self._store.sweep()
                self._count()
            except Exception as error:  # the thread must live: other jobs wait for it
                log.error("unexpected %s", place_of(error))

    def _work(self, job: Job) -> None:
        """One job, to whatever end; only the sentence for its owner is kept of an error."""
        try:
            self._store.update(job.id, state="running", error=None, resumable=False)
            rows, units = self._rewrite(job)
            self._store.update(job.id, state="done", rows=rows, units=units, bytes_done=job.total_bytes)
            self._store.input(job).unlink(missing_ok=True)
        except _StopError as stop:
            if not self._ending.is_set():
                self._give_up(job, str(stop))
        except OutputError as error:
            log.error("a job failed: the state folder cannot be written")
            full = "the disk is full" in str(error)
            reason = "its disk is full" if full else "it cannot write to its disk"
            self._fail(job, f"the service could not go on, {reason}: ask its operator, then resume the job", True)
        except BudgetExceededError as error:
            self._metrics.refusals.inc()
            self._fail(job, as_service_error(error).message, False)
        except Exception as error:
            refusal = as_service_error(error)
            if refusal.status >= 500:
                log.error("a job failed: %s", refusal.message if refusal.code == "internal" else refusal.code)
            self._fail(job, for_http(refusal.message), refusal.status >= 500)

    def _fail(self, job: Job, reason: str, resumable: bool) -> None:
        with contextlib.suppress(OSError):  # on a full disk the state stays 'running', and a restart goes on
            if resumable:
                self._store.update(job.id, state="failed", error=reason, resumable=True)
            else:
                self._give_up(job, reason)

    def _give_up(self, job: Job, reason: str) -> None:
        current = self._store.current(job.id)
        if current is not None and current.is_open:
            self._store.end(job.id, "failed", reason)
        elif current is not None:
            self._store.end(job.id, current.state, current.error)  # what the engine wrote after it was canceled

    # One job --------------------------------------------------------------------------------------------------

    def _rewrite(self, job: Job) -> tuple[int, int]:
        asked = JobSettings.model_validate(job.settings)
        users = user_rule(asked)
        epsilon = asked.epsilon if users is None else users.epsilon_of_document(asked.epsilon)
        mechanism = self._pool.built(asked.mechanism, epsilon, asked.options)
        mechanism.__dict__["block_characters"] = BLOCK_CHARACTERS
        work = RewriteJob(
            mechanism=mechanism,
            input=str(self._store.input(job)),
            output=str(self._store.output(job)),
            columns=tuple(asked.columns),
            keep=tuple(asked.keep),
            workers=self._workers,
            resume=True,
            command=f"tacit serve, job of {mechanism.name} with epsilon {asked.epsilon:g}",
            users=users,
        )
        promised = work.promise()

        def write_cards(facts: ReleaseFacts) -> None:
            card = Card(for_file(promised, facts.kept_columns), facts)
            for kind, text in (("json", card.to_json()), ("md", card.to_markdown()), ("html", card.to_html())):
                write_whole(self._store.card(job, kind), text)

        def progress(now: Progress) -> None:
            self._check_going(job)
            self._store.update(job.id, durable=False, rows=now.rows, units=now.units, bytes_done=now.bytes_done)

        self._check_going(job)
        reservations = self._reserved(job, asked, Prepared(mechanism, None), work)
        try:
            facts = rewrite_file(work, progress=progress, before_release=write_cards)
            rows, units = facts.rows, facts.units
            self._metrics.units.labels(mechanism.name).inc(units)
        except AlreadyCompleteError:  # stopped between the last step of the engine and the one of the service
            release = json.loads(self._store.card(job, "json").read_bytes())["release"]
            rows, units = int(release["rows"]), int(release["units"])
        with contextlib.suppress(TacitError):  # what is not committed stays reserved, which counts as spent
            for reservation in reservations:
                reservation.commit()
        return rows, units

    def _check_going(self, job: Job) -> None:
        current = self._store.current(job.id)
        if self._ending.is_set() or current is None or not current.is_open:
            raise _StopError("stopped")
        if job.owner is not None and not self._keys.is_active(job.owner):
            raise _StopError("the key of this job was revoked: nothing of it can be fetched")

    def _reserved(self, job: Job, asked: JobSettings, prepared: Prepared, work: RewriteJob) -> list[Reservation]:
        """Budget for all rows, in parts that are found again after a crash; all of it, or nothing."""
        done: list[Reservation] = []
        try:
            for number, subjects in enumerate(self._charged(job, asked, prepared, work)):
                done.append(
                    self._accounts.ledger.reserve(
                        prepared.unit_guarantee,
                        dataset=asked.dataset or DATASET,
                        subjects=subjects,
                        token=f"job {job.id} part {number}",
                        command=command_of(job.owner),
                        job=job.id,
                    )
                )
                self._check_going(job)
        except BudgetExceededError:
            for reservation in done:
                if reservation.state == "reserved":
                    reservation.cancel()  # no noise was drawn for any of it
            raise
        return done

    def _charged(self, job: Job, asked: JobSettings, prepared: Prepared, work: RewriteJob) -> Iterator[list[Subject]]:
        """Whom the job is about, some rows at a time."""
        by_document = asked.dataset is not None or self._accounts.count_documents()
        key, dataset = job.owner or LOCAL, asked.dataset or DATASET
        everything, longest, subjects = 0, 0, []
        for number, (identity, user, units) in enumerate(charged_rows(work, prepared), start=1):
            everything += units
            longest = max(longest, units)
            if user is not None:
                subjects.append(Subject("user", user, units))
            elif by_document:
                subjects.append(Subject("document", identity, units))
            if number % RESERVED_ROWS == 0:
                yield [Subject("key", key, everything), Subject("dataset", dataset, longest), *subjects]
                everything, longest, subjects = 0, 0, []
        if everything:
            yield [Subject("key", key, everything), Subject("dataset", dataset, longest), *subjects]


def user_rule(asked: JobSettings) -> UserRule | None:
    if asked.user_column is None:
        return None
    return UserRule(asked.user_column, asked.user_mode, asked.documents_per_user)


def charged_rows(work: RewriteJob, prepared: Prepared) -> Iterator[tuple[str, str | None, int]]:
    """Each row that will be released: its text, its user if there is a user column, and its units."""
    seen: Counter[str] = Counter()
    with open_table(work.input) as table:
        selection = choose_columns(table.columns, work.columns, work.keep)
        check_users(work.users, table, selection)
        user_column = () if work.users is None else (work.users.column,)
        table.select((*selection.texts, *user_column))
        for row, values in table.rows():
            texts = [text_value(value, row, column) for value, column in zip(values, selection.texts, strict=False)]
            units = sum(prepared.units(text) for text in texts)
            if work.users is None:
                yield "\n".join(texts), None, units
                continue
            user = str(values[-1])
            seen[user] += 1
            if seen[user] <= (1 if work.users.mode == "concatenate" else work.users.documents):
                yield "", user, units


_OPTIONS: Final = {"--column": "'columns'", "--keep": "'keep'", "--user-mode": "'user_mode'"}


def for_http(message: str) -> str:
    """The sentence of the engine for somebody without a command line; the list of columns is left out, because the
    first line of a file without a header is a text."""
    kept = message.partition(": this file has ")[0]
    if kept != message:
        kept += ": name columns of the file, as its first line calls them"
    for option, field in _OPTIONS.items():
        kept = kept.replace(option, field)
    return kept


def check_job(pool: Pool, asked: JobSettings) -> None:
    """What can be said at once, before the job waits for its turn."""
    rule: Any = user_rule(asked)
    mechanism = pool.built(asked.mechanism, asked.epsilon, asked.options)
    if rule is not None and mechanism.level == "word":
        raise BadInputError("'user_column' needs a mechanism that protects whole documents, such as 'codebook'")
