"""What a rewriting job is asked to do, and what is checked before it begins."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit.card import ReleaseFacts
from tacit.engines.blocks import (
    plain_parameters,
    rows_to_rewrite,
)
from tacit.engines.charging import Charging
from tacit.engines.resume import ResumeFile, is_left_over, resume_path
from tacit.engines.users import UserRule
from tacit.errors import BadInputError, BadParameterError, TacitError
from tacit.guarantee import Guarantee, Unit
from tacit.labels import LabelRule
from tacit.mechanism import Mechanism
from tacit.noise.kept_key import erase
from tacit.text.files import (
    STANDARD_STREAM,
    SUPPORTED,
    FileFormat,
    OutputError,
    Selection,
    Table,
    check_column,
    choose_columns,
    open_table,
    other_kind,
    partial_path,
    suffix_format,
)
from tacit.version import __version__


class AlreadyCompleteError(TacitError):
    """There is nothing to resume: the output is finished."""

    exit_code = 0


class DeltaTooLargeError(BadParameterError):
    """No row of this file may be released with this delta; going on would fail at the same row."""


@dataclass(frozen=True)
class RewriteJob:
    """What to do. Everything but `workers`, `resume`, `force` and `refuse_nominal` decides the output."""

    mechanism: Mechanism
    input: str
    output: str = STANDARD_STREAM
    columns: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    input_format: str | None = None
    workers: int = 1
    resume: bool = False
    force: bool = False
    seed: int | None = None
    command: str = ""
    users: UserRule | None = None
    charging: Charging | None = None
    labels: LabelRule | None = None
    refuse_nominal: bool = False
    block_characters: int | None = None

    @property
    def block_size(self) -> int:
        """Characters of a block: what suits the mechanism, unless the job says otherwise. A file is resumed only with
        the blocks it was begun with."""
        return self.mechanism.block_characters if self.block_characters is None else self.block_characters

    @property
    def width(self) -> int:
        """How many texts a row has: one for each column that is rewritten. Without a choice it is one column."""
        return max(1, len(set(self.columns)))

    def promise(self, facts: ReleaseFacts | None = None) -> Guarantee:
        """What this job promises: per unit of the mechanism, per record with its label, or per user.

        A user's rows, and a record, have a text in every column that is rewritten, and all of them count. What the
        ledger charges a user, or the data set for a record, is the same number (`tacit.engines.charging`).

        At the word level a record is as long as its longest row, which `facts` tell; before, the label is only named.
        """
        promised = self.mechanism.guarantee(secure=self.seed is None)
        words = promised.unit is Unit.TOKEN
        if self.users is not None and (self.labels is None or words):
            return self.users.promise(promised, self.width)  # at the word level it says why there is none
        if self.labels is None:
            return promised
        if facts is None and words:
            return replace(promised, parameters={**promised.parameters, **self.labels.told(promised)})
        record = self.labels.of_record(promised, longest_row=facts.longest_row if facts else 1, width=self.width)
        return record if self.users is None else self.users.promise(record)

    def row_delta(self) -> float:
        """delta of one row, or of one user: what must lie below 1/rows."""
        promised = self.promise()
        whole = promised.for_group(self.width) if promised.unit is Unit.DOCUMENT else promised
        return whole.delta


@dataclass(frozen=True)
class Progress:
    """How far the finished part of the output reaches."""

    bytes_done: int
    bytes_total: int | None
    rows: int
    units: int


def choose_for(job: RewriteJob, table: Table) -> Selection:
    """The columns of a job; the one with labels to randomize takes the way of the kept ones."""
    keep = job.keep
    if job.labels is not None:
        if job.labels.column in (*job.keep, *job.columns):
            raise BadInputError(
                f"'{job.labels.column}' is randomized: do not name it in --column or --keep as well, or leave "
                "--randomize out"
            )
        if job.users is not None and job.users.mode == "concatenate":
            raise BadInputError(
                "--randomize does not go with --user-mode concatenate: the rows of a user become one, and have no one "
                "label"
            )
        check_column(job.labels.column, table.columns)
        keep = (*keep, job.labels.column)
    selection = choose_columns(table.columns, job.columns, keep)
    check_users(job.users, table, selection)
    return selection


def check_users(users: UserRule | None, table: Table, selection: Selection) -> None:
    """A user column must be there, and cannot be rewritten or kept beside texts that were put together."""
    if users is None:
        return
    check_column(users.column, table.columns)
    if users.column in selection.texts:
        raise BadInputError(f"'{users.column}' cannot be rewritten and say who wrote a row: choose another column")
    if users.mode == "concatenate" and selection.kept:
        raise BadInputError(
            "--keep does not go with --user-mode concatenate: the rows of a user become one, and have no one value"
        )


def check_delta(delta: float, rows: int) -> None:
    """delta allows to publish a document with that probability: at 1/n or above, somebody in the file may be."""
    if delta * rows >= 1.0:
        raise DeltaTooLargeError(
            f"delta {delta:g} is too large for a file of {rows:,} rows or more: choose it well below 1/rows, "
            f"for example --option delta={0.1 / rows:.0e}"
        )


def check_delta_of_file(job: RewriteJob, selection: Selection, input_format: FileFormat, delta: float) -> None:
    """Count the rows of a file, as far as delta allows, before the first of them is released."""
    if delta <= 0.0 or job.input == STANDARD_STREAM:
        return
    users = None if job.users is None else replace(job.users)
    counted = 0
    with open_table(job.input, input_format) as table, contextlib.suppress(BadInputError):  # the run itself names it
        for counted, _ in enumerate(rows_to_rewrite(table, replace(selection, kept=()), users), start=1):
            if counted * delta >= 1.0:
                break
    check_delta(delta, counted)


def check_output(job: RewriteJob) -> None:
    """Say early, before any work, that the output cannot be written as asked."""
    if job.output == STANDARD_STREAM:
        if job.resume:
            raise BadInputError("a run to standard output cannot be resumed: give a file with -o")
        return
    check_output_name(job.output)
    output = Path(job.output)
    if output.is_dir():
        raise OutputError(f"'{output}' is a folder: give the name of a file in it")
    if not output.parent.is_dir():
        raise OutputError(f"the folder '{output.parent}' does not exist: make it first")
    if job.input != STANDARD_STREAM and output.exists() and Path(job.input).exists() and output.samefile(job.input):
        raise OutputError("the output is the input itself: choose another name with -o")
    unfinished = is_unfinished(output)
    if job.resume and output.exists() and not unfinished:
        erase(resume_path(output))
        raise AlreadyCompleteError(f"'{output}' is already complete: there is nothing to resume")
    if unfinished and not job.resume and not job.force:
        raise OutputError(
            f"an unfinished run is in '{partial_path(output)}': "
            "add --resume to go on with it, or --force to throw it away and start over"
        )
    if output.exists() and not job.force and not (job.resume and _may_overwrite(output)):
        raise OutputError(f"'{output}' exists: add --force to overwrite it, or choose another name with -o")


def check_input(job: RewriteJob) -> None:
    """Say what a folder is for, before its name is asked for a format."""
    if job.input != STANDARD_STREAM and "://" not in job.input and Path(job.input).is_dir():
        raise BadInputError(
            f"'{job.input}' is a folder: give one file in it ({SUPPORTED}), or use --engine ray, which rewrites all "
            "files of a folder"
        )


def check_output_name(output: str) -> None:
    """A file that is called a spreadsheet must be one; ours would only look like one."""
    if (what := other_kind(output)) is not None:
        raise OutputError(
            f"'{Path(output).name}' would be {what}, which Tacit does not write: call the output {SUPPORTED}"
        )


def is_unfinished(output: Path) -> bool:
    """Whether a stopped run left something to go on with."""
    if os.path.lexists(partial_path(output)):
        return True
    if not os.path.lexists(resume_path(output)):
        return False
    # Stopped just after the output got its name: nothing but the state is left over.
    return not (output.exists() and is_left_over(output))


def _may_overwrite(output: Path) -> bool:
    if not os.path.lexists(resume_path(output)):
        return False
    state = ResumeFile(output)
    try:
        return state.load()[0].overwrite
    finally:
        state.close()


def choose_output_format(job: RewriteJob, input_format: FileFormat) -> FileFormat:
    """The suffix of the output decides; without one (or on standard output) the format of the input."""
    if job.output == STANDARD_STREAM:
        chosen = FileFormat(input_format.kind)
    else:
        chosen = suffix_format(job.output) or FileFormat(input_format.kind)
        if chosen.kind == "tsv" and input_format.kind == "tsv-raw":
            chosen = replace(chosen, kind="tsv-raw")
    if chosen.kind == "parquet" and job.output == STANDARD_STREAM:
        raise BadInputError("parquet cannot be written to standard output: give a file with -o")
    return chosen


def describe(
    job: RewriteJob, selection: Selection, input_format: FileFormat, output_format: FileFormat
) -> dict[str, Any]:
    """All that must be the same when a stopped run goes on. The input itself is compared block by block."""
    return {
        "version": __version__,
        "mechanism": job.mechanism.name,
        "parameters": plain_parameters(job.mechanism),
        "columns": list(selection.texts),
        "kept columns": list(selection.kept),
        "input format": str(input_format),
        "output format": str(output_format),
        "seed": job.seed,
        "users": None if job.users is None else job.users.describe(),
        "ledger": None if job.charging is None else job.charging.describe(),
        "randomized labels": None if job.labels is None else job.labels.describe(),
    }
