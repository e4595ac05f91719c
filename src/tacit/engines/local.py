"""The job on this machine: one file in, one rewritten file and its card out.

A job can be stopped at any moment, by Ctrl-C, a crash, a full disk or a killed worker. What was finished stays in
`OUTPUT.partial`, and the same job with `resume` goes on from there; the result is byte for byte the one of a
run that was never stopped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tacit.account.ledger import Ledger, Subject
from tacit.card import Card, ReleaseFacts
from tacit.engines.blocks import (
    Block,
    cut_blocks,
    fingerprint,
    output_rows,
    with_labels,
)
from tacit.engines.charging import BlockCharges
from tacit.engines.job import (
    DeltaTooLargeError,
    RewriteJob,
    RewriteProgress,
    check_delta,
    check_delta_of_file,
    check_input,
    check_output,
    choose_for,
    choose_output_format,
    describe,
    input_format,
)
from tacit.engines.label_values import Values, are_strings, label_values
from tacit.engines.nominal import refuse_nominal, refuse_nominal_job
from tacit.engines.outputs import FileOutput, JobOutput, MemoryOutput, StandardOutput
from tacit.engines.release import PublishedRelease, release_card, release_facts, write_cards
from tacit.engines.resume import Finished
from tacit.engines.shuffling import check_shuffle
from tacit.engines.workers import Assignment, Results, rewrite_here, rewrite_with_workers
from tacit.errors import BadInputError, BadParameterError, StoppedError, TacitError
from tacit.guarantee import Guarantee
from tacit.mechanism import Rewritten
from tacit.noise.source import StreamKey
from tacit.text.files import (
    STANDARD_STREAM,
    ColumnSelection,
    FileFormat,
    TableReader,
    encoder_for,
    open_table,
)

OnProgress = Callable[[RewriteProgress], None]
OnBlock = Callable[[list[str], list[str] | None], None]
OnPromise = Callable[[Guarantee], None]
OnLedger = Callable[[Ledger], None]


def rewrite_file(
    job: RewriteJob,
    *,
    progress: OnProgress | None = None,
    on_block: OnBlock | None = None,
    on_promise: OnPromise | None = None,
    on_ledger: OnLedger | None = None,
) -> PublishedRelease:
    """The release of a file, or of texts in memory, with its card, which is written just before the output gets its
    name.

    `on_block` sees the original and the released texts of every block (released texts are None for blocks that an
    earlier, stopped run has written), `on_promise` what will be promised before anything is read, and `on_ledger` the
    ledger that was opened.
    """
    if job.workers < 1:
        raise BadParameterError(
            "bad-option", "{option.workers} must be at least 1, not {given}", name="workers", given=job.workers
        )
    check_input(job)
    check_output(job)
    with opened_ledger(job, on_ledger) as charged:
        check_shuffle(charged)
        promised = charged.promise()  # refused before any work where none can be made
        if on_promise is not None:
            on_promise(promised)
        published = _released(charged, progress, on_block)
        return replace(published, spent=spent_by(charged))


@contextlib.contextmanager
def opened_ledger(job: RewriteJob, on_ledger: OnLedger | None) -> Iterator[RewriteJob]:
    """The job with its ledger open."""
    if job.ledger is None:
        yield job
        return
    with job.ledger.opened() as charging:
        if on_ledger is not None:
            on_ledger(charging.ledger)
        yield replace(job, charging=charging)


def spent_by(job: RewriteJob) -> str | None:
    """The spending of one document of the data set, if the job opened its ledger itself."""
    if job.ledger is None or job.charging is None:
        return None
    return str(job.charging.ledger.spent(Subject("dataset", job.charging.dataset)))


def _released(job: RewriteJob, progress: OnProgress | None, on_block: OnBlock | None) -> PublishedRelease:
    delta = job.row_delta()
    source_format = input_format(job)
    with open_table(job.input, source_format) as table:
        selection = choose_for(job, table)
        if job.charging is not None:
            job.charging.check(table, selection, job.users)
        output_format = choose_output_format(job, source_format)
        values = {} if job.labels is None else label_values(job.labels, table, output_format)
        output = _output(job, table, selection, values, output_format)
        configuration = describe(job, selection, source_format, output_format)
        check_delta_of_file(job, selection, source_format, delta)
        if job.refuse_nominal:
            refuse_nominal_job(job, selection, source_format)
        if job.workers == 1:
            job.mechanism.prepare()  # whatever is missing is said before anything is written
        with contextlib.closing(output):
            key = output.start(job, configuration)
            with _told_what_remains(output):
                with _nothing_left_behind(output):
                    _run(job, table, selection, values, key, output, delta, progress, on_block)
                facts = release_facts(job, selection, output.totals)
                if facts.rows == 0:
                    output.discard()
                    raise BadInputError("no-rows", "{name} has no rows: there is nothing to rewrite", name=table.name)
                card = _finish(job, facts, output)
    columns = output.columns if isinstance(output, MemoryOutput) else None
    assert card.facts is not None
    return PublishedRelease(card, card.facts, job.card_paths(), output_format, columns)


def _output(
    job: RewriteJob, table: TableReader, selection: ColumnSelection, values: Values, output_format: FileFormat
) -> JobOutput:
    if job.output is None:
        return MemoryOutput(selection.written)
    depth = {"text": 0, "vector": 1, "vectors": 2}[job.mechanism.releases]
    strings = () if depth else selection.texts
    if job.labels is not None and are_strings(values):
        strings = (*strings, job.labels.column)
    nested = dict.fromkeys(selection.texts, depth) if depth else {}
    encoder = encoder_for(output_format, selection.written, table, strings, nested)
    return StandardOutput(encoder) if job.output == STANDARD_STREAM else FileOutput(Path(job.output), encoder)


def _finish(job: RewriteJob, facts: ReleaseFacts, output: JobOutput) -> Card:
    """The card of the finished output, written before the output gets its name."""
    card = release_card(job, facts)

    def complete(digest: str) -> None:
        nonlocal card
        card = replace(card, facts=replace(facts, digest=digest))
        if job.refuse_nominal:  # the input may have changed since it was counted
            refuse_nominal(card)
        write_cards(job, card)

    output.finish(complete)
    return card


# The run ----------------------------------------------------------------------------------------------------------


def _run(
    job: RewriteJob,
    table: TableReader,
    selection: ColumnSelection,
    values: Values,
    key: StreamKey,
    output: JobOutput,
    delta: float,
    progress: OnProgress | None,
    on_block: OnBlock | None,
) -> None:
    identity = fingerprint(job.mechanism, selection.texts)
    document_column = None if job.charging is None else job.charging.document_column
    blocks = cut_blocks(table, selection, job.block_size, identity, job.users, document_column, job.labels)
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
        progress(RewriteProgress(table.bytes_read(), table.size_bytes, output.totals.rows, output.totals.units))
    with contextlib.closing(_rewritten(job, key, blocks)) as results:
        for block, result in results:
            check_delta(delta, output.totals.rows + block.rows)
            shown = with_labels(block, selection, job.labels, result, key, values)
            rows = output_rows(shown, result.values, selection)
            output.append(rows, summarize(block, result, len(selection.texts)))
            if charges:
                charges.commit(block)
            if on_block:
                on_block(block.texts, result.texts)
            if progress:
                progress(RewriteProgress(block.bytes_read, table.size_bytes, output.totals.rows, output.totals.units))


def block_charges(job: RewriteJob, key: StreamKey, width: int) -> BlockCharges | None:
    """How the blocks are charged to the ledger, if there is one: by what the mechanism promises to one unit."""
    if job.charging is None:
        return None
    own = job.labels is not None and not job.labels.joint  # otherwise the budget of the text covers the label
    label = job.labels.guarantee(secure=job.seed is None) if own and job.labels else None
    return BlockCharges(job.charging, job.mechanism, job.unit_promise, key, job.command, width, label)


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
            "input-is-shorter",
            "the input has become shorter than what is finished: restore it, or add {option.force} to start over",
        )
    if block.rows != finished.rows or block.content.hex() != finished.digest:
        raise BadInputError(
            "input-has-changed",
            "the input has changed between row {first:,} and row {last:,}, which are finished: restore the input, or "
            "add {option.force} to start over",
            first=block.first_row,
            last=block.first_row + finished.rows - 1,
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


@contextlib.contextmanager
def _told_what_remains(output: JobOutput) -> Iterator[None]:
    """Whatever stops the run, the user learns what is left and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        left = output.remains()
        raise StoppedError("stopped", f"stopped: {left.sentence}", **left.fields) from None
    except MemoryError:
        left = output.remains()
        sentence = f"out of memory: close other programs. {left.sentence}"
        raise TacitError("out-of-memory", sentence, **left.fields) from None
    except TacitError as error:
        if output.totals.rows:
            left = output.remains()
            error.add_remark(left.sentence, **left.fields)
        raise


@contextlib.contextmanager
def _nothing_left_behind(output: JobOutput) -> Iterator[None]:
    """A run that failed before its first row has nothing to resume, and must not stand in the way of the next.

    Nor has one whose delta is too large for all the rows that came through a pipe, however far it got.
    """
    try:
        yield
    except BaseException as error:
        if output.totals.rows == 0 or isinstance(error, DeltaTooLargeError):
            output.discard()
        raise
