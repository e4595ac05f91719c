"""The card of a release, which the engine writes before the texts get their name.

There is never a release without a card: a card that cannot be written stops the release, and a run that is killed in
between leaves a card without its texts, whose digest it names, never the other way around.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tacit.card import Card, ReleaseFacts, for_file
from tacit.engines.cluster.storage import Folder
from tacit.engines.job import RewriteJob, card_kind
from tacit.engines.outputs import Totals
from tacit.engines.shuffling import shuffled_promise
from tacit.text.files import STANDARD_STREAM, ColumnSelection, FileFormat
from tacit.text.files.partial import write_together


@dataclass(frozen=True)
class PublishedRelease:
    """A release: its card, where the card lies, and the texts themselves where they were kept in memory.

    format      how the output is written
    columns     the released columns by name; None where they went into a file
    spent       what one document of the data set has now spent, where the job opened a ledger
    """

    card: Card
    facts: ReleaseFacts
    card_files: tuple[str, ...]
    format: FileFormat
    columns: Mapping[str, list[object]] | None = None
    spent: str | None = None


def release_facts(job: RewriteJob, selection: ColumnSelection, totals: Totals) -> ReleaseFacts:
    """The facts of a card about the output of a job: its size and the command that made it."""
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
        output=_name_of_output(job),
        command=job.command,
        configuration=dict(job.configuration),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _name_of_output(job: RewriteJob) -> str:
    if job.output is None:
        return "in memory"
    return "standard output" if job.output == STANDARD_STREAM else Path(job.output).name


def release_card(job: RewriteJob, facts: ReleaseFacts, *not_covered: str) -> Card:
    """The card of a release: what the job promises, and what a file shows beside its texts."""
    promised = for_file(job.promise(facts), facts.kept_columns, shuffled=job.shuffle).also_not_covered(*not_covered)
    return Card(promised, facts, shuffled=shuffled_promise(job, facts.rows) if job.shuffle else None)


def write_cards(job: RewriteJob, card: Card) -> tuple[str, ...]:
    """The files that the card was written to: all of them, or none. Texts on standard output have theirs on standard
    error, unless a file for it is named."""
    paths = job.card_paths()
    texts = {path: rendered(card, card_kind(path)) for path in paths}
    write_together({Path(path): text for path, text in texts.items() if "://" not in path})
    _write_to_stores((path, text) for path, text in texts.items() if "://" in path)
    if not paths and job.output == STANDARD_STREAM:
        print(card.to_markdown(), file=sys.stderr)
    return paths


def rendered(card: Card, kind: str) -> str:
    """A card as JSON, Markdown or a page."""
    if kind == "json":
        return card.to_json()
    return card.to_html() if kind == "html" else card.to_markdown()


def _write_to_stores(texts: Iterable[tuple[str, str]]) -> None:
    """Cards beside an output in a store that fsspec reaches."""
    for path, text in texts:
        folder, _, name = path.rpartition("/")
        Folder(folder).write(name, text.encode())
