"""Remarks about private rows for the eyes of their holder, before anything is released; none of it stands on a card.

Texts that are empty, that are longer than what is read of a text, or that seem to be in a language that the encoder
does not know. What an encoder covers is public and stands in the documentation; whether these rows are covered is
private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tacit.matching.features import LONGEST_CHARACTERS
from tacit.matching.sums import RowBlock, RowSource
from tacit.matching.words import load_vocabulary, words_of

ENGLISH_ONLY = frozenset({"static"})
MOST_LOOKED_AT = 4_096
FEWEST_WORDS = 3
"""A text with fewer words says little about its language."""
FOREIGN_SHARE = 0.2
CHARACTERS = 2_000


@dataclass
class RowNotes:
    """Counts over the rows as they are read."""

    encoders: Sequence[str]
    fate_of_empty: str = "they are counted under their label, and no more"
    rows: int = 0
    empty: int = 0
    cut: int = 0
    looked_at: int = 0
    foreign: int = 0
    _complete: bool = field(default=False, repr=False)

    def watched(self, rows: RowSource) -> RowSource:
        """The same rows, which are counted the first time that they are read."""

        def blocks() -> Iterator[RowBlock]:
            for block in rows():
                if not self._complete:
                    self._count(block.texts)
                yield block
            self._complete = True

        return blocks

    def _count(self, texts: Sequence[str]) -> None:
        self.rows += len(texts)
        self.empty += sum(not text.strip() for text in texts)
        self.cut += sum(len(text) > LONGEST_CHARACTERS for text in texts)
        if set(self.encoders) <= ENGLISH_ONLY and self.looked_at < MOST_LOOKED_AT:
            places = load_vocabulary().places
            for text in texts[: MOST_LOOKED_AT - self.looked_at]:
                words = words_of(text[:CHARACTERS])
                if len(words) >= FEWEST_WORDS:
                    self.looked_at += 1
                    self.foreign += 2 * sum(word in places for word in words) < len(words)

    def sentences(self) -> Iterable[str]:
        """Sentences that the holder of the rows should know."""
        if self.rows and self.empty:
            yield f"{self.empty:,} of {self.rows:,} rows have no text: {self.fate_of_empty}"
        if self.cut:
            yield (
                f"{self.cut:,} of {self.rows:,} texts are longer than {LONGEST_CHARACTERS:,} characters: only their "
                "beginning is read"
            )
        if self.looked_at and self.foreign >= FOREIGN_SHARE * self.looked_at:
            yield (
                f"{self.foreign:,} of {self.looked_at:,} texts that were looked at seem not to be English, which is "
                "all that the encoder 'static' knows: stop now, before anything is spent, and name an encoder and a "
                "pool that know their language"
            )


def said_first(notes: RowNotes, say: Callable[[str], None]) -> None:
    """Say all remarks, each as a private line."""
    for sentence in notes.sentences():
        say(f"{sentence} (this line is private: it speaks of the rows)")
