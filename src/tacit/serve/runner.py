"""The thread that works on jobs, one after the other, with the same engine as `tacit rewrite`.

Before any noise is drawn, the whole job is reserved in the ledger (`reserve_job`), so a job that is over budget fails
with nothing released. A job that was stopped by a crash goes on as `tacit rewrite --resume` does, with the noise it
had: no row gets a second draw, and its reservation is found again by its token and counted once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import queue
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from tacit.account.ledger import BudgetExceededError, LedgerError, Reservation, Subject, TokenUsedError
from tacit.card import Card, ReleaseFacts, for_file
from tacit.catalog import shortened
from tacit.engines.blocks import Block, cut_blocks
from tacit.engines.charging import subjects_of
from tacit.engines.job import AlreadyCompleteError, Progress, RewriteJob, check_users, is_unfinished
from tacit.engines.local import rewrite_file
from tacit.engines.nominal import refuse_nominal_file
from tacit.engines.users import UserRule
from tacit.errors import BadInputError, TacitError
from tacit.serve.budget import DATASET, LOCAL, Accounts, command_of
from tacit.serve.errors import ServiceError, as_service_error, note
from tacit.serve.jobs import Job, JobStore
from tacit.serve.keys import Keys
from tacit.serve.messages import JobSettings
from tacit.serve.metrics import Metrics
from tacit.serve.rewriting import Pool, Prepared
from tacit.text.files import OutputError, choose_columns, open_table, write_whole

log = logging.getLogger("tacit.serve")

BLOCK_CHARACTERS: Final = 100_000
"""Small blocks, so that progress moves and a canceled job stops soon."""
RESERVED_ROWS: Final = 20_000
"""Rows whose documents are charged in one transaction."""
RESERVED_CHARACTERS: Final = 4_000_000
"""The most text that is in memory while it is charged."""
SWEEP_SECONDS: Final = 20.0


class _StopError(TacitError):
    """The job must not go on now: the service ends, the job was canceled, or its key was revoked."""


class Runner:
    def __init__(
        self,
        store: JobStore,
        pool: Pool,
        accounts: Accounts,
        keys: Keys,
        metrics: Metrics,
        workers: int,
        *,
        refuse_nominal: bool = False,
    ) -> None:
        self._store = store
        self._pool = pool
        self._accounts = accounts
        self._keys = keys
        self._metrics = metrics
        self._workers = workers
        self._refuse_nominal = refuse_nominal
        self._queue: queue.Queue[str | None] = queue.Queue()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tacit-jobs", daemon=True)
        # Beside the jobs, because a job may take longer than files are kept.
        self._sweeper = threading.Thread(target=self._sweep, name="tacit-sweep", daemon=True)

    def start(self) -> None:
        """Go on with what an earlier service left."""
        for job in self._store.open_jobs():
            self._queue.put(job.id)
        self._count()
        self._thread.start()
        self._sweeper.start()

    def stop(self) -> None:
        """Stop at the next block; the job goes on when a service starts again."""
        self._ending.set()
        self._queue.put(None)
        self._thread.join(timeout=30)
        self._sweeper.join(timeout=5)

    def put(self, job: Job) -> None:
        self._queue.put(job.id)
        self._count()

    def _count(self) -> None:
        for state, number in self._store.counts().items():
            self._metrics.jobs.labels(state).set(number)

    def _run(self) -> None:
        while not self._ending.is_set():
            id = self._queue.get()
            try:
                job = None if id is None else self._store.current(id)
                if job is not None and job.is_open:
                    self._work(job)
                self._count()
            except Exception as error:  # the thread must live: other jobs wait for it
                note(error)

    def _sweep(self) -> None:
        while not self._ending.wait(SWEEP_SECONDS):
            try:
                self._store.sweep()
                self._count()
            except Exception as error:
                note(error)

    def _work(self, job: Job) -> None:
        """One job, to whatever end; only the sentence for its owner is kept of an error."""
        try:
            self._store.update(job.id, state="running", error=None, resumable=False)
            rows, units = self._rewrite(job)
            if self._store.update(job.id, state="done", rows=rows, units=units, bytes_done=job.total_bytes) is None:
                self._give_up(job, "stopped")  # it was canceled, or its time was over, at the very end
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
            self._fail(job, as_service_error(error).message, self._has_begun(job))
        except Exception as error:
            refusal = as_service_error(error)
            if refusal.status >= 500:
                log.error("a job failed: %s", refusal.message if refusal.code == "internal" else refusal.code)
                note(error)
            if isinstance(error, LedgerError):
                self._accounts.close()  # it may be whole again next time
            # What has begun is never deleted: an upgrade, a lost key or a limit is no fault of the file.
            reason = for_http(self._without_paths(job, refusal.message))
            self._fail(job, reason, refusal.status >= 500 or self._has_begun(job))

    def _fail(self, job: Job, reason: str, resumable: bool) -> None:
        with contextlib.suppress(OSError):  # on a full disk the state stays 'running', and a restart goes on
            if resumable and self._store.update(job.id, state="failed", error=reason, resumable=True) is not None:
                return
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
            refuse_nominal=self._refuse_nominal or self._keys.refuses_nominal(job.owner),
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
        if work.refuse_nominal and not self._has_begun(job):
            refuse_nominal_file(work)  # before any budget is reserved
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
            for number, subjects in enumerate(charged(work, job.owner, asked.dataset or DATASET)):
                done.append(self._reserve_part(job, asked, prepared, number, subjects))
                self._check_going(job)
        except BudgetExceededError:
            if not self._has_begun(job):  # no noise was drawn for any of it
                for reservation in done:
                    if reservation.state == "reserved":
                        reservation.cancel()
            raise
        return done

    def _reserve_part(
        self, job: Job, asked: JobSettings, prepared: Prepared, number: int, subjects: list[Subject]
    ) -> Reservation:
        ledger, token = self._accounts.ledger, f"job {job.id} part {number}"

        def reserve(token: str) -> Reservation:
            return ledger.reserve(
                prepared.unit_guarantee,
                dataset=asked.dataset or DATASET,
                subjects=subjects,
                token=token,
                command=command_of(ledger, job.owner),
                job=job.id,
            )

        try:
            return reserve(token)
        except TokenUsedError:
            # An earlier version of the service charged this part to others, or promised it in other words. Noise may
            # have been drawn under that promise, so both count: too much, never too little.
            facts = repr((prepared.unit_guarantee.to_dict(), subjects))
            return reserve(f"{token}, {hashlib.sha256(facts.encode('utf-8', 'surrogatepass')).hexdigest()}")

    def _without_paths(self, job: Job, message: str) -> str:
        """The file as its owner calls it, in place of where it lies here."""
        message = message.replace(f"{self._store.folder(job.id)}{os.sep}", "")
        return message.replace(self._store.input(job).name, job.name)

    def _has_begun(self, job: Job) -> bool:
        """Whether there is an unfinished output, which can go on with the noise it has."""
        try:
            return is_unfinished(self._store.output(job))
        except OSError:
            return True  # nothing is given up because a disk could not be read


def charged(work: RewriteJob, owner: str | None, dataset: str) -> Iterator[list[Subject]]:
    """Whom a job is charged to, some rows at a time: documents and users as `tacit rewrite` charges them, and the
    key."""
    for block, width in charged_blocks(work):
        units = work.mechanism.count_units(block.texts)
        if any(units):
            yield [Subject("key", owner or LOCAL, sum(units)), *subjects_of(block, units, width, dataset)]


def charged_blocks(work: RewriteJob) -> Iterator[tuple[Block, int]]:
    """The rows that will be released, read as the engine reads them, and how many texts each of them has."""
    with open_table(work.input) as table:
        selection = choose_columns(table.columns, work.columns, work.keep)
        check_users(work.users, table, selection)
        width = len(selection.texts)
        texts_only = replace(selection, kept=())
        for block in cut_blocks(table, texts_only, RESERVED_CHARACTERS, b"", work.users):
            for first in range(0, block.rows, RESERVED_ROWS):
                yield rows_of(block, first, first + RESERVED_ROWS, width), width


def rows_of(block: Block, first: int, last: int, width: int) -> Block:
    """Some rows of a block."""
    return Block(
        index=block.index,
        first_row=block.first_row + first,
        texts=block.texts[first * width : last * width],
        kept=block.kept[first:last],
        users=block.users[first:last],
    )


def user_rule(asked: JobSettings) -> UserRule | None:
    if asked.user_column is None:
        return None
    return UserRule(asked.user_column, asked.user_mode, asked.documents_per_user)


OTHER_COMMAND: Final = "this is not the command that was stopped"
"""How the engine begins to say that an unfinished output is not of this version or configuration."""
_OPTIONS: Final = {
    "--column": "'columns'",
    "--keep": "'keep'",
    "--user-mode": "'user_mode'",
    "add --force to start over": "delete the job and send the file again",
}


def for_http(message: str) -> str:
    """The sentence of the engine for somebody without a command line; the list of columns is left out, because the
    first line of a file without a header is a text."""
    if message.startswith(OTHER_COMMAND):
        return (
            "this job was begun by another version of the service, and cannot go on here with the noise it has: ask "
            "the operator to finish it with that version, or delete it"
        )
    kept = message.partition(": this file has ")[0]
    if kept != message:
        kept += ": name columns of the file, as its first line calls them"
    for option, field in _OPTIONS.items():
        kept = kept.replace(option, field)
    return kept


def check_columns(path: Path, asked: JobSettings) -> None:
    """Column names that do not fit the first line of a file are said at once; whatever else is wrong with the file is
    said when it is read."""
    with contextlib.ExitStack() as stack:
        try:
            table = stack.enter_context(open_table(str(path)))
        except TacitError:
            return
        for column in (*asked.columns, *asked.keep, *([] if asked.user_column is None else [asked.user_column])):
            if column not in table.columns:
                # No close match: the first line of a file without a header is a text.
                raise ServiceError(
                    422,
                    f"there is no column '{shortened(column)}': name columns of the file, as its first line calls them",
                )
        try:
            check_users(user_rule(asked), table, choose_columns(table.columns, asked.columns, asked.keep))
        except TacitError as error:
            raise ServiceError(422, for_http(str(error))) from None


def check_job(pool: Pool, asked: JobSettings) -> None:
    """What can be said at once, before the job waits for its turn."""
    rule: Any = user_rule(asked)
    mechanism = pool.built(asked.mechanism, asked.epsilon, asked.options)
    if rule is not None and mechanism.level == "word":
        raise BadInputError("'user_column' needs a mechanism that protects whole documents, such as 'codebook'")
