"""Refusing a release whose card would be nominal, before any noise is drawn.

A card is nominal when one of its lines says that the formal bound alone no longer protects (`tacit.card.strength`), or
when it promises nothing. For a document or a user that is known from the settings; for words it depends on the longest
row, so the rows are counted first, by the same public rule as the release, and nothing is drawn while they are.
"""

from __future__ import annotations

from dataclasses import replace

from tacit.card import Card, ReleaseFacts
from tacit.engines.blocks import rows_to_rewrite
from tacit.engines.job import RewriteJob, choose_for, input_format
from tacit.errors import BadInputError, NominalError
from tacit.text.files import ColumnSelection, FileFormat, open_table, text_value

COUNTED_TOGETHER = 1_000
NOTHING_READ = ReleaseFacts(rows=0, documents=0, units=0, longest_document=0, longest_row=0)


def refuse_nominal(card: Card) -> None:
    """Raise where a card is nominal."""
    if not card.is_nominal:
        return
    if not card.guarantee.is_private:
        raise NominalError(
            "release-promises-nothing",
            "this release would promise nothing ({reason}), and such releases are refused",
            reason=card.guarantee.void,
        )
    raise NominalError(
        "release-is-nominal",
        "this release would be nominal, and nominal releases are refused: {reason}. Lower epsilon, protect whole "
        "documents instead of words, or shorten the texts",
        reason=card.worst_line,
    )


def refuse_nominal_file(job: RewriteJob) -> None:
    """Refuse a job on a file where its card would be nominal, before anything else is done."""
    source_format = input_format(job)
    with open_table(job.input, source_format) as table:
        selection = choose_for(job, table)
    refuse_nominal_job(job, selection, source_format)


def refuse_nominal_job(job: RewriteJob, selection: ColumnSelection, source_format: FileFormat) -> None:
    """Refuse the job where its card would be nominal; no noise is drawn. At the word level the input is counted."""
    facts = replace(NOTHING_READ, columns=selection.texts)
    unit = job.unit_promise
    if not unit.is_private or not unit.unit.is_part_of_text:
        refuse_nominal(Card(job.promise(facts), facts))
        return
    if job.from_stream:
        raise BadInputError(
            "nominal-unknown-beforehand",
            "whether a word-level release is nominal depends on its longest row, and standard input can be read "
            "only once: give a file",
        )
    width, longest = len(selection.texts), 0
    with open_table(job.input, source_format) as table:
        texts: list[str] = []
        rows = rows_to_rewrite(table, replace(selection, kept=()), None)
        for row, values in rows:
            texts += [text_value(value, row, name) for value, name in zip(values[:width], selection.texts, strict=True)]
            if len(texts) >= COUNTED_TOGETHER:
                longest = _checked(job, facts, texts, longest)
                texts = []
        _checked(job, facts, texts, longest)


def refuse_nominal_dataset(job: RewriteJob, selection: ColumnSelection) -> None:
    """The same for a data set on a cluster, where no text comes to this process."""
    unit = job.unit_promise
    if unit.is_private and unit.unit.is_part_of_text:
        raise BadInputError(
            "nominal-unknown-beforehand",
            "whether a word-level release is nominal depends on its longest row, which is not known before a "
            "cluster has read the data: use the local engine, or protect whole documents",
        )
    facts = replace(NOTHING_READ, columns=selection.texts)
    refuse_nominal(Card(job.promise(facts), facts))


def _checked(job: RewriteJob, facts: ReleaseFacts, texts: list[str], longest: int) -> int:
    """The longest row so far; refused as soon as it makes the card nominal."""
    units, width = job.mechanism.count_units(texts), len(facts.columns)
    sums = [sum(units[start : start + width]) for start in range(0, len(units), width)]
    longest_now = max([longest, *sums])
    if longest_now > longest:
        counted = replace(facts, longest_row=longest_now)
        refuse_nominal(Card(job.promise(counted), counted))
    return longest_now
