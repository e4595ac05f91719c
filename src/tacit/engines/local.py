"""The job on this machine: one file in, one rewritten file and its facts out.

A job can be stopped at any moment, by Ctrl-C, a crash, a full disk or a killed worker. What was finished stays in
`OUTPUT.partial`, and the same command with `--resume` goes on from there; the result is byte for byte the one of a
run that was never stopped.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.card import ReleaseFacts
from tacit.engines.blocks import (
    Block,
    cut_blocks,
    fingerprint,
    output_rows,
    plain_parameters,
    rows_to_rewrite,
    with_labels,
)
from tacit.engines.charging import BlockCharges, Charging
from tacit.engines.resume import Finished, Header, ResumeFile, differences, resume_path
from tacit.engines.users import UserRule
from tacit.engines.workers import Assignment, Results, rewrite_here, rewrite_with_workers
from tacit.errors import BadInputError, BadParameterError, StoppedError, TacitError
from tacit.guarantee import Guarantee, Unit
from tacit.labels import LabelRule
from tacit.mechanism import Mechanism, Rewritten
from tacit.noise.source import StreamKey
from tacit.text.digest import file_digest
from tacit.text.files import (
    STANDARD_STREAM,
    Encoder,
    FileFormat,
    OutputError,
    PartialOutput,
    Selection,
    Table,
    check_column,
    choose_columns,
    encoder_for,
    format_of,
    open_table,
    partial_path,
    storage_error,
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
    """What to do. Everything but `workers`, `resume` and `force` decides the output."""

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

    def promise(self, facts: ReleaseFacts | None = None) -> Guarantee:
        """What this job promises: per unit of the mechanism, per record with its label, or per user.

        At the word level a record is as long as its longest row, which `facts` tell; before, the label is only named.
        """
        promised = self.mechanism.guarantee(secure=self.seed is None)
        if self.users is not None and self.labels is None:
            return self.users.promise(promised)
        if self.labels is None:
            return promised
        if self.users is not None and promised.unit is Unit.TOKEN:
            return self.users.promise(promised)  # says why there is none
        if facts is None and promised.unit is Unit.TOKEN:
            return replace(promised, parameters={**promised.parameters, **self.labels.told(promised)})
        width = max(1, len(self.columns if facts is None else facts.columns))
        record = self.labels.of_record(promised, longest_row=facts.longest_row if facts else 1, width=width)
        return record if self.users is None else self.users.promise(record)


@dataclass(frozen=True)
class Progress:
    """How far the finished part of the output reaches."""

    bytes_done: int
    bytes_total: int | None
    rows: int
    units: int


OnProgress = Callable[[Progress], None]
OnBlock = Callable[[list[str], list[str] | None], None]
BeforeRelease = Callable[[ReleaseFacts], None]


def rewrite_file(
    job: RewriteJob,
    *,
    progress: OnProgress | None = None,
    on_block: OnBlock | None = None,
    before_release: BeforeRelease | None = None,
) -> ReleaseFacts:
    """Rewrite a file.

    `on_block` sees the original and the released texts of every block (released texts are None for blocks that an
    earlier, stopped run has written). `before_release` is called when the output is complete but not yet under its
    name: whatever must accompany it is written there.
    """
    if job.workers < 1:
        raise BadParameterError(f"--workers must be at least 1, not {job.workers}")
    check_output(job)
    delta = job.promise().delta
    input_format = format_of(job.input, job.input_format)
    with open_table(job.input, input_format) as table:
        selection = choose_for(job, table)
        if job.charging is not None:
            job.charging.check(table, selection, job.users)
        output_format = choose_output_format(job, input_format)
        encoder = encoder_for(output_format, selection.written, table, selection.texts)
        configuration = describe(job, selection, input_format, output_format)
        check_delta_of_file(job, selection, input_format, delta)
        if job.workers == 1:
            job.mechanism.prepare()  # whatever is missing is said before anything is written
        output: Output = (
            StandardOutput(encoder) if job.output == STANDARD_STREAM else FileOutput(Path(job.output), encoder)
        )
        with contextlib.closing(output):
            key = output.start(job, configuration)
            with _told_what_remains(output):
                with _nothing_left_behind(output):
                    _run(job, table, selection, key, output, delta, progress, on_block)
                facts = _facts(job, selection, output.totals)
                if facts.rows == 0:
                    output.discard()
                    raise BadInputError(f"{table.name} has no rows: there is nothing to rewrite")

                def complete(digest: str) -> None:
                    nonlocal facts
                    facts = replace(facts, digest=digest)
                    if before_release is not None:
                        before_release(facts)

                output.finish(complete)
    return facts


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
    """delta is the chance of failing one document: at 1/n or above, somebody in the file may be unprotected."""
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
    output = Path(job.output)
    if output.is_dir():
        raise OutputError(f"'{output}' is a folder: give the name of a file in it")
    if not output.parent.is_dir():
        raise OutputError(f"the folder '{output.parent}' does not exist: make it first")
    if job.input != STANDARD_STREAM and output.exists() and Path(job.input).exists() and output.samefile(job.input):
        raise OutputError("the output is the input itself: choose another name with -o")
    unfinished = is_unfinished(output)
    if job.resume and output.exists() and not unfinished:
        resume_path(output).unlink(missing_ok=True)
        raise AlreadyCompleteError(f"'{output}' is already complete: there is nothing to resume")
    if unfinished and not job.resume and not job.force:
        raise OutputError(
            f"an unfinished run is in '{partial_path(output)}': "
            "add --resume to go on with it, or --force to throw it away and start over"
        )
    if output.exists() and not job.force and not (job.resume and _may_overwrite(output)):
        raise OutputError(f"'{output}' exists: add --force to overwrite it, or choose another name with -o")


def is_unfinished(output: Path) -> bool:
    """Whether a stopped run left something to go on with."""
    if partial_path(output).exists():
        return True
    state = resume_path(output)
    if not state.exists():
        return False
    # Stopped just after the output got its name: nothing but the state is left over.
    return not (output.exists() and state.read_bytes().count(b"\n") > 1)


def _may_overwrite(output: Path) -> bool:
    if not resume_path(output).exists():
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


# The run ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Totals:
    rows: int = 0
    documents: int = 0
    units: int = 0
    longest_document: int = 0
    longest_row: int = 0

    def plus(self, block: Finished) -> Totals:
        return Totals(
            self.rows + block.rows,
            self.documents + block.documents,
            self.units + block.units,
            max(self.longest_document, block.longest_document),
            max(self.longest_row, block.longest_row),
        )


def _run(
    job: RewriteJob,
    table: Table,
    selection: Selection,
    key: StreamKey,
    output: Output,
    delta: float,
    progress: OnProgress | None,
    on_block: OnBlock | None,
) -> None:
    identity = fingerprint(job.mechanism, selection.texts)
    document_column = None if job.charging is None else job.charging.document_column
    blocks = cut_blocks(
        table, selection, job.mechanism.block_characters, identity, job.users, document_column, job.labels
    )
    charges = block_charges(job, key, len(selection.texts))
    for finished, block in zip(output.finished, _first(blocks, len(output.finished)), strict=True):
        _check_same(finished, block)
        if charges and block:
            charges.reserve(block).commit()  # a run may end between writing a block and saying so
        if on_block and block:
            on_block(block.texts, None)
    if charges:
        blocks = charges.reserved(blocks)
    if progress:
        progress(Progress(table.bytes_read(), table.size_bytes, output.totals.rows, output.totals.units))
    with contextlib.closing(_rewritten(job, key, blocks)) as results:
        for block, result in results:
            check_delta(delta, output.totals.rows + block.rows)
            shown = with_labels(block, selection, job.labels, key)
            data = output.encoder.block(output_rows(shown, result.texts, selection))
            output.append(data, summarize(block, result, len(selection.texts)))
            if charges:
                charges.commit(block)
            if on_block:
                on_block(block.texts, result.texts)
            if progress:
                progress(Progress(block.bytes_read, table.size_bytes, output.totals.rows, output.totals.units))


def block_charges(job: RewriteJob, key: StreamKey, width: int) -> BlockCharges | None:
    """How the blocks are charged to the ledger, if there is one: by what the mechanism promises to one unit."""
    if job.charging is None:
        return None
    guarantee = job.mechanism.guarantee(secure=job.seed is None)
    label = None if job.labels is None else job.labels.guarantee(secure=job.seed is None)
    return BlockCharges(job.charging, job.mechanism, guarantee, key, job.command, width, label)


def _rewritten(job: RewriteJob, key: StreamKey, blocks: Iterator[Block]) -> Results:
    if job.workers == 1:
        return rewrite_here(job.mechanism, key, blocks)
    assignment = Assignment(type(job.mechanism), job.mechanism.get_params(deep=False), key)
    return rewrite_with_workers(assignment, blocks, job.workers)


def _first(blocks: Iterator[Block], count: int) -> Iterator[Block | None]:
    for _ in range(count):
        yield next(blocks, None)


def _check_same(finished: Finished, block: Block | None) -> None:
    if block is None:
        raise BadInputError(
            "the input has become shorter than what is finished: restore it, or add --force to start over"
        )
    if block.rows != finished.rows or block.content.hex() != finished.digest:
        raise BadInputError(
            f"the input has changed between row {block.first_row:,} and row {block.first_row + finished.rows - 1:,}, "
            "which are finished: restore the input, or add --force to start over"
        )


def summarize(block: Block, result: Rewritten, width: int) -> Finished:
    """The facts of one block; `offset` is filled in when it is stored."""
    units = [int(unit) for unit in result.units]
    return Finished(
        block=block.index,
        rows=block.rows,
        documents=len(units),
        units=sum(units),
        longest_document=max(units, default=0),
        longest_row=longest_sum(units, width),
        offset=0,
        digest=block.content.hex(),
    )


def longest_sum(units: list[int], width: int) -> int:
    """The most units in one row of `width` texts."""
    if width == 1:
        return max(units, default=0)
    return max((sum(units[start : start + width]) for start in range(0, len(units), width)), default=0)


def _facts(job: RewriteJob, selection: Selection, totals: Totals) -> ReleaseFacts:
    return ReleaseFacts(
        rows=totals.rows,
        documents=totals.documents,
        units=totals.units,
        longest_document=totals.longest_document,
        longest_row=totals.longest_row,
        columns=selection.texts,
        kept_columns=tuple(name for name in selection.kept if job.labels is None or name != job.labels.column),
        randomized_columns=() if job.labels is None else (job.labels.column,),
        dropped_columns=len(selection.dropped),
        output="standard output" if job.output == STANDARD_STREAM else Path(job.output).name,
        command=job.command,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


@contextlib.contextmanager
def _told_what_remains(output: Output) -> Iterator[None]:
    """Whatever stops the run, the user learns what is left and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(f"stopped: {output.remains()}") from None
    except MemoryError:
        raise TacitError(f"out of memory: close other programs. {output.remains()}") from None
    except TacitError as error:
        if output.totals.rows:
            error.add_note(output.remains())
        raise


@contextlib.contextmanager
def _nothing_left_behind(output: Output) -> Iterator[None]:
    """A run that failed before its first row has nothing to resume, and must not stand in the way of the next.

    Nor has one whose delta is too large for all the rows that came through a pipe, however far it got.
    """
    try:
        yield
    except BaseException as error:
        if output.totals.rows == 0 or isinstance(error, DeltaTooLargeError):
            output.discard()
        raise


# Where the output goes --------------------------------------------------------------------------------------------


class Output(ABC):
    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.totals = Totals()
        self.finished: list[Finished] = []

    @abstractmethod
    def start(self, job: RewriteJob, configuration: dict[str, Any]) -> StreamKey:
        """Begin, or go on; returns the key that all noise of the job comes from."""

    @abstractmethod
    def append(self, data: bytes, block: Finished) -> None: ...

    @abstractmethod
    def finish(self, before_release: Callable[[str], None]) -> None:
        """Everything was appended: `before_release` gets the digest of the output."""

    @abstractmethod
    def remains(self) -> str:
        """What a stopped run has left, in words."""

    def discard(self) -> None:
        return

    def close(self) -> None:
        return


class StandardOutput(Output):
    def __init__(self, encoder: Encoder) -> None:
        super().__init__(encoder)
        self._digest = hashlib.sha256()

    def start(self, job: RewriteJob, configuration: dict[str, Any]) -> StreamKey:
        self._write(self.encoder.head())
        return new_key(job.seed)

    def append(self, data: bytes, block: Finished) -> None:
        self._write(data)
        self.totals = self.totals.plus(block)

    def finish(self, before_release: Callable[[str], None]) -> None:
        before_release(self._digest.hexdigest())

    def remains(self) -> str:
        return f"{self.totals.rows:,} rows were written to standard output; such a run cannot be resumed"

    def _write(self, data: bytes) -> None:
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            self._digest.update(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            # What is still buffered cannot be written either, and would be tried again at the very end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise storage_error(error, "standard output") from error


class FileOutput(Output):
    """Bytes go to the partial file first and into the state afterwards, so the state never promises too much."""

    def __init__(self, path: Path, encoder: Encoder) -> None:
        super().__init__(encoder)
        self.path = path
        self._partial = PartialOutput(path)
        self._state = ResumeFile(path)

    def start(self, job: RewriteJob, configuration: dict[str, Any]) -> StreamKey:
        if job.resume and is_unfinished(self.path):
            return self._go_on(configuration)
        return self._begin(job, configuration)

    def _begin(self, job: RewriteJob, configuration: dict[str, Any]) -> StreamKey:
        key, head = new_key(job.seed), self.encoder.head()
        header = Header(key.key.hex(), key.secure, job.force, len(head), configuration)
        self._state.create(header)
        try:
            if job.force:
                self._partial.discard()
            self._partial.create()
        except BaseException:
            self._state.delete()
            raise
        try:
            self._partial.append(head)
        except BaseException:
            self.discard()
            raise
        return key

    def _go_on(self, configuration: dict[str, Any]) -> StreamKey:
        header, finished = self._state.load()
        if changes := differences(header.configuration, configuration):
            raise BadInputError(
                f"this is not the command that was stopped: {'; '.join(changes)}. "
                "Give the same options to go on, or --force to start over"
            )
        size = self._partial.path.stat().st_size if self._partial.path.exists() else 0
        self.finished = [block for block in finished if block.offset <= size]
        self._state.keep(header, self.finished)
        if size < header.start:
            self._partial.reopen(0)
            self._partial.append(self.encoder.head())
        else:
            self._partial.reopen(self.finished[-1].offset if self.finished else header.start)
        for block in self.finished:
            self.totals = self.totals.plus(block)
        return StreamKey(bytes.fromhex(header.key), secure=header.secure)

    def append(self, data: bytes, block: Finished) -> None:
        block = replace(block, offset=self._partial.append(data))
        before = self.totals
        # Counted before it is stored: an interrupt in between must not make a finished block look like none.
        self.totals = before.plus(block)
        try:
            self._state.append(block)
        except OutputError:
            self.totals = before
            raise

    def finish(self, before_release: Callable[[str], None]) -> None:
        try:
            ready = self.encoder.finish(self._partial.path)
            before_release(file_digest(ready))
        except OSError as error:
            raise storage_error(error, self.path) from error
        self._partial.release(ready)
        self._state.delete()

    def remains(self) -> str:
        if self.totals.rows == 0:
            return "nothing was written; run the same command again"
        return (
            f"{self.totals.rows:,} rows are in {self._partial.path.name}; run the same command with --resume to go on"
        )

    def discard(self) -> None:
        self._partial.discard()
        self._state.delete()
        self.totals = Totals()

    def close(self) -> None:
        self._partial.close()
        self._state.close()


def new_key(seed: int | None) -> StreamKey:
    return StreamKey.from_os() if seed is None else StreamKey.from_test_seed(seed)
