"""Rows that may be shared, in a file whose card stands beside it: what matching, training and decoding end in."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tacit.card import Card, ReleaseFacts
from tacit.guarantee import Guarantee
from tacit.text.files import write_columns
from tacit.text.files.partial import write_together
from tacit.text.tokens import split


@dataclass(frozen=True)
class ReleasedRows:
    """Rows of strings, column by column, with their card.

    output   the file that holds them; the card stands beside it
    """

    columns: Mapping[str, Sequence[str]]
    text_column: str
    card: Card
    output: Path

    @property
    def guarantee(self) -> Guarantee:
        return self.card.guarantee

    @property
    def texts(self) -> list[str]:
        return list(self.columns[self.text_column])

    @property
    def rows(self) -> list[dict[str, str]]:
        """The rows, each by the names of its columns."""
        return [dict(zip(self.columns, values, strict=True)) for values in zip(*self.columns.values(), strict=True)]

    def __len__(self) -> int:
        return len(self.columns[self.text_column])

    def __str__(self) -> str:
        return f"{len(self):,} rows in {self.output}: {self.guarantee}"


class ReleaseConfig(Protocol):
    """The configuration of a job that releases rows."""

    @property
    def output(self) -> Path: ...

    def identity(self) -> dict[str, object]: ...


def card_of_rows(
    config: ReleaseConfig,
    guarantee: Guarantee,
    texts: Sequence[str],
    *,
    command: str,
    shuffled: Guarantee | None = None,
) -> Card:
    """The card of rows with one text each; `shuffled` is the second promise that the card repeats, if there is one."""
    lengths = [len(split(text)) for text in texts]
    facts = ReleaseFacts(
        rows=len(lengths),
        documents=len(lengths),
        units=sum(lengths),
        longest_document=max(lengths),
        longest_row=max(lengths),
        output=config.output.name,
        command=command,
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
        configuration=config.identity(),
    )
    return Card(guarantee, facts, shuffled=shuffled)


def write_rows_with_card(
    output: Path, columns: Mapping[str, list[str]], card: Card, *, attribution: str | None = None
) -> None:
    """Write rows, after their card and the attribution of public sentences: no rows are there without them."""
    beside = {".card.json": card.to_json(), ".card.md": card.to_markdown()}
    if attribution is not None:
        beside[".ATTRIBUTION.txt"] = attribution
    write_together({Path(f"{output}{ending}"): text for ending, text in beside.items()})
    write_columns(output, dict(columns), force=True)
