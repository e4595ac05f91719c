"""The work on one job, with the same engine as `tacit rewrite`; `tacit.serve.schedule` decides when, and
`tacit.serve.workplace` where. What is particular to a corpus in place of the rows is in `tacit.serve.synthesis`.

Before any noise is drawn, the whole job is reserved in the ledger (`reserve_job`), so a job that is over budget fails
with nothing released. A job that was stopped by a crash goes on as a rewriting with `resume` does, with the noise it
had: no row gets a second draw, and its reservation is found again by its token and counted once.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tacit.account.ledger import BudgetExceededError, LedgerError, Reservation, Subject, TokenUsedError
from tacit.catalog import shortened
from tacit.engines.blocks import Block, cut_blocks, weight
from tacit.engines.charging import subjects_of
from tacit.engines.job import CARD_KINDS, RewriteJob, RewriteProgress, check_users, is_unfinished
from tacit.engines.local import rewrite_file
from tacit.engines.nominal import refuse_nominal_file
from tacit.engines.output_errors import AlreadyCompleteError
from tacit.errors import BadInputError, TacitError
from tacit.guarantee import Guarantee
from tacit.jobs.rewrite import rewrite_job
from tacit.rounding import exact
from tacit.serve.answers import JsonObject
from tacit.serve.binding import LOCAL
from tacit.serve.budget import DATASET, Accounts, command_of
from tacit.serve.errors import (
    HTTP,
    RequestError,
    ServiceError,
    WrongLedgerError,
    as_service_error,
    note,
    unpacks_too_large,
)
from tacit.serve.jobs import SYNTHESIZE, JobFolder
from tacit.serve.messages import JobSettings, SynthesisSettings
from tacit.serve.pool import Pool
from tacit.text.files import OutputError, choose_columns, open_table

log = logging.getLogger("tacit.serve")

BLOCK_CHARACTERS: Final = 100_000
"""Small blocks, so that progress moves and a canceled job stops soon."""
RESERVED_ROWS: Final = 20_000
"""Rows whose documents are charged in one transaction."""
RESERVED_CHARACTERS: Final = 4_000_000
"""The most text that is in memory while it is charged."""
CHECKED_ROWS: Final = 1_000
LOOK_BYTES: Final = 1_000_000
"""How far the service itself looks into an upload, for the names of its columns; the rest is for a worker process,
whose memory is limited."""
TOO_MUCH_MEMORY: Final = (
    "this job needs more memory than a job of this service may use: send the file in smaller parts, or ask its operator"
)


class StopError(TacitError):
    """The job must not go on now: the service ends, the job was canceled, or its key was revoked."""


@dataclass(frozen=True)
class JobTask:
    """A job as its worker gets it; it can be sent to another process.

    workers     processes that rewrite; 1 is the one that does everything else
    unpacked    most characters of text, unpacked, that the file may hold
    refuse_nominal   whether the service refuses nominal releases to everybody
    """

    id: str
    owner: str | None
    name: str
    settings: JsonObject
    files: JobFolder
    workers: int
    unpacked: int
    refuse_nominal: bool = False


@dataclass(frozen=True)
class JobOutcome:
    """How the work on a job ended: well if there is no error."""

    rows: int = 0
    units: int = 0
    mechanism: str = ""
    error: str | None = None
    resumable: bool = False
    over_budget: bool = False


class JobWork:
    """The work on one job. `tell` is called with the progress; `check` raises a `StopError` when the work must stop."""

    def __init__(
        self,
        task: JobTask,
        pool: Pool,
        accounts: Accounts,
        tell: Callable[[RewriteProgress], None],
        check: Callable[[], None],
    ) -> None:
        self._task = task
        self._files = task.files
        self._pool = pool
        self._accounts = accounts
        self._tell = tell
        self._check = check
        self._has_reserved = False

    def outcome(self) -> JobOutcome:
        """The job, worked on to whatever end; only the sentence for its owner is kept of an error."""
        try:
            # What was reserved before a change of the ledger's key is found again by its token.
            work = self._synthesize if self._files.kind == SYNTHESIZE else self._rewrite
            return self._accounts.under_the_key_of_now(work)
        except StopError:
            raise
        except OutputError as error:
            log.error("a job failed: the state folder cannot be written")
            cause = error.__cause__
            full = isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)
            reason = "its disk is full" if full else "it cannot write to its disk"
            sentence = f"the service could not go on, {reason}: ask its operator, then resume the job"
            return JobOutcome(error=sentence, resumable=True)
        except BudgetExceededError as error:
            return JobOutcome(error=as_service_error(error).message, resumable=self._has_begun(), over_budget=True)
        except Exception as error:
            if isinstance(error, MemoryError) or isinstance(error.__context__, MemoryError):
                log.error("a job failed: it needs more memory than it may use")
                return JobOutcome(error=TOO_MUCH_MEMORY, resumable=True)
            refusal = as_service_error(error)
            if refusal.status >= 500:
                log.error("a job failed: %s", refusal.message if refusal.code == "internal" else refusal.code)
                note(error)
            if isinstance(error, LedgerError | WrongLedgerError):
                self._accounts.close()  # it may be whole again next time
            # What has begun is never deleted: an upgrade, a lost key or a limit is no fault of the file.
            other = for_owner(error)
            reason = self._without_paths(refusal.message if other is None else other.rendered(HTTP))
            return JobOutcome(error=reason, resumable=refusal.status >= 500 or self._has_begun())

    def _rewrite(self) -> JobOutcome:
        task = self._task
        settings = JobSettings.model_validate(task.settings)
        config = settings.config(self._files.input, self._files.output)
        mechanism = self._pool.built(settings.mechanism, config.of_mechanism()["epsilon"], settings.options)
        work = replace(
            rewrite_job(config, mechanism),
            block_characters=BLOCK_CHARACTERS,
            workers=task.workers,
            resume=True,
            command=f"tacit serve, job of {mechanism.name} with epsilon {exact(settings.epsilon)}",
            card_kinds=CARD_KINDS,
            refuse_nominal=task.refuse_nominal or self._accounts.options_of(task.owner).refuse_nominal,
        )

        def progress(now: RewriteProgress) -> None:
            self._check()
            self._tell(now)

        self._check()
        if not self._has_begun() and not self._files.output.exists():
            self._check_size(work)
            if work.refuse_nominal:
                refuse_nominal_file(work)  # before any budget is reserved
        reservations = self._reserved(settings, work)
        try:
            facts = rewrite_file(work, progress=progress).facts
            rows, units = facts.rows, facts.units
        except AlreadyCompleteError:  # stopped between the last step of the engine and the one of the service
            release = json.loads(self._files.card("json").read_bytes())["release"]
            rows, units = int(release["rows"]), int(release["units"])
        with contextlib.suppress(TacitError):  # what is not committed stays reserved, which counts as spent
            for reservation in reservations:
                reservation.commit()
        return JobOutcome(rows, units, mechanism.name)

    def _synthesize(self) -> JobOutcome:
        # In the process of the job: the service itself starts without what draws reports.
        from tacit.serve.synthesis import SynthesisTask, synthesize_file

        settings = SynthesisSettings.model_validate(self._task.settings)
        refused = self._task.refuse_nominal or self._accounts.options_of(self._task.owner).refuse_nominal
        dataset = settings.dataset or DATASET
        task = SynthesisTask(
            self._files, settings, self._task.owner, dataset, self._task.unpacked, refuse_nominal=refused
        )

        def reserve(promised: Guarantee, subjects: list[Subject]) -> Reservation:
            reservation = self._reserve_part(dataset, promised, 0, subjects)
            self._has_reserved = True
            return reservation

        rows = synthesize_file(task, reserve, self._tell, self._check)
        return JobOutcome(rows, rows, "matching")

    def _check_size(self, work: RewriteJob) -> None:
        """Read the file once before anything is charged for it: a row that cannot be read costs no budget, and a small
        file that unpacks to a very large one is refused while that costs nothing but reading."""
        for number, size in enumerate(row_sizes(work), start=1):
            if size > self._task.unpacked:
                raise unpacks_too_large(self._task.unpacked, number)
            if number % CHECKED_ROWS == 0:
                self._check()

    def _reserved(self, settings: JobSettings, work: RewriteJob) -> list[Reservation]:
        """Budget for all rows, in parts that are found again after a crash; all of it, or nothing."""
        done: list[Reservation] = []
        try:
            for number, subjects in enumerate(charged(work, self._task.owner, settings.dataset or DATASET)):
                done.append(self._reserve_part(settings.dataset or DATASET, work.unit_promise, number, subjects))
                self._check()
        except BudgetExceededError:
            if not self._has_begun():  # no noise was drawn for any of it
                for reservation in done:
                    if reservation.state == "reserved":
                        reservation.cancel()
            raise
        return done

    def _reserve_part(self, dataset: str, promised: Guarantee, number: int, subjects: list[Subject]) -> Reservation:
        ledger, token = self._accounts.ledger, f"job {self._task.id} part {number}"

        def reserve(token: str) -> Reservation:
            return ledger.reserve(
                promised,
                dataset=dataset,
                subjects=subjects,
                token=token,
                command=command_of(ledger, self._task.owner),
                job=self._task.id,
                must_be_limited=self._accounts.must_be_limited(self._task.owner),
            )

        try:
            return reserve(token)
        except TokenUsedError:
            # An earlier version of the service charged this part to others, or promised it in other words. Noise may
            # have been drawn under that promise, so both count: too much, never too little.
            facts = repr((promised.to_dict(), subjects))
            return reserve(f"{token}, {hashlib.sha256(facts.encode('utf-8', 'surrogatepass')).hexdigest()}")

    def _without_paths(self, message: str) -> str:
        """The file as its owner calls it, in place of where it lies here."""
        message = message.replace(f"{self._files.path}{os.sep}", "")
        return message.replace(self._files.input.name, self._task.name)

    def _has_begun(self) -> bool:
        """Whether there is an unfinished output, which can go on with the noise it has, or a sketch that is paid
        for."""
        if self._has_reserved:
            return True
        try:
            return is_unfinished(self._files.output) or self._files.sketch.exists()
        except OSError:
            return True  # nothing is given up because a disk could not be read


def row_sizes(work: RewriteJob) -> Iterator[int]:
    """How much text there is up to each row that the job reads, copied columns included."""
    with open_table(work.input) as table:
        selection = choose_columns(table.columns, work.columns, work.keep)
        check_users(work.users, table, selection)
        table.select((*selection.texts, *selection.kept))
        total = 0
        for _, values in table.rows():
            total += sum(len(value) if type(value) is str else weight(value) for value in values)
            yield total


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


STARTS_OVER: Final = frozenset({"unreadable-state", "missing-state", "input-has-changed", "input-is-shorter"})
"""Errors after which the engine can only start over."""


def for_owner(error: Exception) -> RequestError | None:
    """The error for the owner of a job in place of the engine's sentence, where that is for users of the command
    line; the columns of a file are not listed, because the first line of a file without a header is a text."""
    if not isinstance(error, TacitError):
        return None
    if error.code == "another-run":
        return RequestError(
            "job-of-another-version",
            "this job was begun by another version of the service, and cannot go on here with the noise it has: ask "
            "the operator to finish it with that version, or delete it",
        )
    if error.code in STARTS_OVER:
        return RequestError(
            "job-cannot-go-on", "this job cannot go on with the noise it has: delete the job and send the file again"
        )
    if error.code == "which-column":
        return RequestError(
            "which-column",
            "say in 'columns' (of a corpus, in 'column') which column holds the text: name columns of the file, as its "
            "first line calls them",
        )
    if error.code == "no-such-column":
        return _no_such_column(error.fields["column"])
    return None


def _no_such_column(column: str) -> RequestError:
    return RequestError(
        "no-such-column",
        "there is no column '{column}': name columns of the file, as its first line calls them",
        column=shortened(column),
    )


def check_columns(path: Path, settings: JobSettings | SynthesisSettings) -> None:
    """Column names that do not fit the first line of a file are said at once; whatever else is wrong with the file is
    said when it is read."""
    with contextlib.ExitStack() as stack:
        try:
            table = stack.enter_context(open_table(str(path), most_bytes=LOOK_BYTES))
        except TacitError:
            return
        for column in settings.named_columns():
            if column not in table.columns:
                # No close match: the first line of a file without a header is a text.
                raise ServiceError(422, _no_such_column(column))
        try:
            if isinstance(settings, SynthesisSettings):
                choose_columns(table.columns, settings.text_columns(), settings.other_columns())
            else:
                check_users(settings.users(), table, choose_columns(table.columns, settings.columns, settings.keep))
        except TacitError as error:
            raise ServiceError(422, for_owner(error) or error) from None


def check_labels(settings: SynthesisSettings) -> None:
    """Options that do not fit together, and labels that are no list, are said before a job is queued."""
    config = settings.sketch_config(Path(), Path())
    if config.labels or config.labels_of or config.bins:
        from tacit.jobs.sketch_input import label_rule  # loads with the first corpus

        label_rule(config)


def check_job(pool: Pool, settings: JobSettings) -> None:
    """Check a job as far as possible before it is queued."""
    mechanism = pool.built(settings.mechanism, settings.epsilon, settings.options)
    if settings.user_column is not None and mechanism.level == "word":
        raise BadInputError(
            "users-at-the-word-level",
            "'user_column' needs a mechanism that protects whole documents, such as 'codebook'",
        )
