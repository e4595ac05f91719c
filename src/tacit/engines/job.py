"""The description of a rewriting job, and the checks before it begins."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

from tacit.card import ReleaseFacts
from tacit.engines.blocks import (
    plain_parameters,
    rows_to_rewrite,
)
from tacit.engines.charging import Charging, LedgerPlace
from tacit.engines.output_errors import complete_error, exists_error, output_is_input_error, unfinished_error
from tacit.engines.resume import Configuration, ResumeFile, is_left_over, public_parts, resume_path
from tacit.engines.users import UserRule
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Guarantee, Unit
from tacit.labels import LabelRule
from tacit.mechanism import Mechanism
from tacit.noise.kept_key import erase
from tacit.text.files import (
    STANDARD_STREAM,
    SUPPORTED,
    ColumnSelection,
    FileFormat,
    OutputError,
    TableReader,
    check_column,
    choose_columns,
    open_table,
    other_kind,
    partial_path,
    suffix_format,
)
from tacit.text.files.formats import format_of
from tacit.text.files.memory import is_in_memory
from tacit.text.files.partial import no_such_folder
from tacit.version import __version__

CARD_KINDS: Final = ("json", "md", "html")
USUAL_CARDS: Final = ("json", "md")


class DeltaTooLargeError(BadParameterError):
    """No row of this file may be released with this delta; going on would fail at the same row."""


@dataclass(frozen=True)
class RewriteJob:
    """A rewriting job. Everything but `workers`, `resume`, `force` and `refuse_nominal` decides the output.

    input          a file, `-`, or data in memory
    output         a file, `-`, or None: the released rows are kept in memory
    command        the call that made the release, for its card
    configuration  all options that decided the release, by name, for its card
    card_kinds     the cards beside the output: json, md, html
    card_file      one more place for the card
    ledger         where the job is written down; or `charging`, a ledger that is open already
    """

    mechanism: Mechanism
    input: object
    output: str | None = STANDARD_STREAM
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
    shuffle: bool = False  # `tacit.engines.shuffling`
    ledger: LedgerPlace | None = None
    card_kinds: tuple[str, ...] = USUAL_CARDS
    card_file: Path | None = None
    configuration: Mapping[str, object] = field(default_factory=dict)
    block_characters: int | None = None

    @property
    def from_stream(self) -> bool:
        """Whether the texts come from standard input, which can be read once."""
        return isinstance(self.input, str) and self.input == STANDARD_STREAM

    @property
    def input_path(self) -> str | None:
        """The file that is read; None for standard input and for data in memory."""
        return None if self.from_stream or is_in_memory(self.input) else str(self.input)

    @property
    def file_output(self) -> str | None:
        """The file or folder that is written; None for standard output and for memory."""
        return None if self.output in (None, STANDARD_STREAM) else self.output

    def card_paths(self) -> tuple[str, ...]:
        """Where the card is written: to the file that is named for it, and beside the output."""
        named = () if self.card_file is None else (str(self.card_file),)
        if self.file_output is None:
            return named
        beside = self.file_output.rstrip("/")
        return tuple(dict.fromkeys((*named, *(f"{beside}.card.{kind}" for kind in self.card_kinds))))

    @cached_property
    def unit_promise(self) -> Guarantee:
        """The guarantee for one unit of the mechanism; computed once for a job."""
        return self.mechanism.guarantee(secure=self.seed is None)

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
        """The guarantee of this job: per unit of the mechanism, per record with its label, or per user.

        A user's rows, and a record, have a text in every column that is rewritten, and all of them count. What the
        ledger charges a user, or the data set for a record, is the same number (`tacit.engines.charging`).

        At the word level a record is as long as its longest row, which `facts` tell; before, the label is only named.
        """
        promised = self.unit_promise
        parts = promised.unit.is_part_of_text
        if self.users is not None and (self.labels is None or parts):
            return self.users.promise(promised, self.width)  # at the word level it says why there is none
        if self.labels is None:
            return promised
        if facts is None and parts and not self.labels.joint:
            return replace(promised, parameters={**promised.parameters, **self.labels.budgets(promised)})
        record = self.labels.of_record(promised, longest_row=facts.longest_row if facts else 1, width=self.width)
        return record if self.users is None else self.users.promise(record)

    def row_delta(self) -> float:
        """delta of one row, or of one user: what must lie below 1/rows."""
        promised = self.promise()
        whole = promised.for_group(self.width) if promised.unit is Unit.DOCUMENT else promised
        return whole.delta


@dataclass(frozen=True)
class RewriteProgress:
    """How far the finished part of the output reaches."""

    bytes_done: int
    bytes_total: int | None
    rows: int
    units: int


def choose_for(job: RewriteJob, table: TableReader) -> ColumnSelection:
    """The columns of a job; the one with labels to randomize takes the way of the kept ones."""
    keep = job.keep
    if job.labels is not None:
        if job.labels.column in (*job.keep, *job.columns):
            raise BadInputError(
                "randomized-and-kept",
                "'{column}' is randomized: do not name it in {option.columns} or {option.keep} as well, or leave "
                "{option.randomize} out",
                column=job.labels.column,
            )
        if job.users is not None and job.users.mode == "concatenate":
            raise BadInputError(
                "labels-of-joined-rows",
                "{option.randomize} does not go with {option.user_mode[concatenate]}: the rows of a user become one, "
                "and have no one label",
            )
        if job.labels.joint and job.width > 1:
            raise BadInputError(
                "labels-of-several-texts",
                "a label is released by the choice of one text, and {columns:,} columns are rewritten: rewrite one "
                "column, or give the label a budget of its own with {option.label_epsilon[E]}",
                columns=job.width,
            )
        check_column(job.labels.column, table.columns)
        keep = (*keep, job.labels.column)
    selection = choose_columns(table.columns, job.columns, keep)
    check_users(job.users, table, selection)
    return selection


def check_users(users: UserRule | None, table: TableReader, selection: ColumnSelection) -> None:
    """A user column must be there, and cannot be rewritten or kept beside texts that were put together."""
    if users is None:
        return
    check_column(users.column, table.columns)
    if users.column in selection.texts:
        raise BadInputError(
            "rewritten-and-user",
            "'{column}' cannot be rewritten and say who wrote a row: choose another column",
            column=users.column,
        )
    if users.mode == "concatenate" and selection.kept:
        raise BadInputError(
            "kept-values-of-joined-rows",
            "{option.keep} does not go with {option.user_mode[concatenate]}: the rows of a user become one, and have "
            "no one value",
        )


def check_delta(delta: float, rows: int) -> None:
    """delta allows to publish a document with that probability: at 1/n or above, somebody in the file may be."""
    if delta * rows >= 1.0:
        raise DeltaTooLargeError(
            "delta-too-large",
            "delta {delta:g} is too large for a file of {rows:,} rows or more: choose it well below 1/rows, for "
            "example {example:.0e}",
            delta=delta,
            rows=rows,
            example=0.1 / rows,
        )


def check_delta_of_file(job: RewriteJob, selection: ColumnSelection, input_format: FileFormat, delta: float) -> None:
    """Count the rows of a file, as far as delta allows, before the first of them is released."""
    if delta <= 0.0 or job.from_stream:
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
    _check_card_file(job)
    if job.file_output is None:
        if job.resume:
            raise BadInputError(
                "nothing-to-resume-in",
                "only a run that writes a file can be resumed: name the file with {option.output}",
            )
        return
    if job.mechanism.releases == "vectors" and is_matrix_name(job.file_output):
        raise OutputError(
            "words-are-no-matrix",
            "{mechanism} releases a vector for each word, and texts have different numbers of words: choose a parquet, "
            "jsonl or csv output",
            mechanism=job.mechanism.name,
        )
    if not is_matrix(job):
        check_output_name(job.file_output)
    output = Path(job.file_output)
    if output.is_dir():
        raise OutputError("is-a-folder", "'{path}' is a folder: give the name of a file in it", path=output)
    if not output.parent.is_dir():
        raise no_such_folder(output.parent)
    source = job.input_path
    if source is not None and output.exists() and Path(source).exists() and output.samefile(source):
        raise output_is_input_error()
    unfinished = is_unfinished(output)
    if job.resume and output.exists() and not unfinished:
        erase(resume_path(output))
        raise complete_error(output)
    if unfinished and not job.resume and not job.force:
        raise unfinished_error(partial_path(output))
    if output.exists() and not job.force and not (job.resume and _may_overwrite(output)):
        raise exists_error(output)


def card_kind(path: Path | str) -> str:
    """The kind of card that a file is, by its name."""
    kind = Path(path).suffix.lower().removeprefix(".")
    if kind not in CARD_KINDS:
        raise BadParameterError(
            "not-a-card-name", "the name of a card ends in .json, .md or .html, and '{name}' does not",
            name=Path(path).name,
        )  # fmt: skip
    return kind


def _check_card_file(job: RewriteJob) -> None:
    if job.card_file is None:
        return
    card_kind(job.card_file)
    if not Path(job.card_file).parent.is_dir():
        raise no_such_folder(Path(job.card_file).parent)


def check_input(job: RewriteJob) -> None:
    """Say what a folder is for, before its name is asked for a format."""
    source = job.input_path
    if source is not None and "://" not in source and Path(source).is_dir():
        raise BadInputError(
            "input-is-a-folder",
            "'{path}' is a folder: give one file in it ({supported}), or use {option.engine[ray]}, which rewrites all "
            "files of a folder",
            path=source,
            supported=SUPPORTED,
        )


def input_format(job: RewriteJob) -> FileFormat:
    """How the input is written; data in memory is as typed as JSON."""
    return FileFormat("jsonl") if is_in_memory(job.input) else format_of(str(job.input), job.input_format)


def check_output_name(output: str) -> None:
    """A file that is called a spreadsheet must be one; ours would only look like one."""
    if (what := other_kind(output)) is not None:
        raise OutputError(
            "unknown-format",
            "'{name}' would be {what}, which Tacit does not write: call the output {supported}",
            name=Path(output).name,
            what=what,
            supported=SUPPORTED,
        )


def is_matrix(job: RewriteJob) -> bool:
    """Whether the output is one matrix of vectors, a file of numpy."""
    return job.mechanism.releases == "vector" and is_matrix_name(str(job.file_output))


def is_matrix_name(output: str) -> bool:
    """Whether a file is called as those of numpy are."""
    return output.lower().endswith(".npy")


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
    if is_matrix(job):
        return FileFormat("npy")
    if job.output is None:
        return FileFormat("jsonl")  # in memory, where values keep their types
    if job.output == STANDARD_STREAM:
        chosen = FileFormat(input_format.kind)
    else:
        chosen = suffix_format(job.output) or FileFormat(input_format.kind)
        if chosen.kind == "tsv" and input_format.kind == "tsv-raw":
            chosen = replace(chosen, kind="tsv-raw")
    if chosen.kind == "parquet" and job.output == STANDARD_STREAM:
        raise BadInputError(
            "parquet-to-a-stream",
            "parquet cannot be written to standard output: give a file with {option.output}",
        )
    return chosen


def describe(
    job: RewriteJob, selection: ColumnSelection, input_format: FileFormat, output_format: FileFormat
) -> Configuration:
    """All settings that must be the same when a stopped run is resumed. The input is compared block by block."""
    return {
        "version": __version__,
        "mechanism": job.mechanism.name,
        "parameters": plain_parameters(job.mechanism),
        "public files": public_parts(job.unit_promise),
        "columns": list(selection.texts),
        "kept columns": list(selection.kept),
        "input format": str(input_format),
        "output format": str(output_format),
        "seed": job.seed,
        "users": None if job.users is None else job.users.describe(),
        "ledger": None if job.charging is None else job.charging.describe(),
        "randomized labels": None if job.labels is None else job.labels.describe(),
        "shuffled": job.shuffle,
    }
