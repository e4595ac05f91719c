"""Longest common runs and near-duplicates: how much of one token sequence stands in a file.

A run is a sequence of tokens that follow each other in one text. Tokens are those of `tacit.text.tokens.split`: lower
case, punctuation apart. Runs are found by growing them one token at a time: a run of n tokens begins only where one of
n - 1 tokens does, so after the first steps few places are left. Exact, no hashing.

The edit distance is Levenshtein's over tokens, to the part of the text that fits best (Sellers 1980).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Ids
from tacit.text.tokens import split

CANDIDATES = 5


@dataclass(frozen=True)
class TextOverlap:
    """The part of one text that a file holds too.

    tokens       of the text
    run          tokens of the longest run that also stands in the file, and `run_text`
    nearest      number of the text of the file that is closest, from 0, or -1 if no token is shared
    distance     token edits from the text to the best-fitting part of that text
    """

    tokens: int
    run: int
    run_text: str
    nearest: int
    distance: int

    @property
    def verbatim(self) -> bool:
        """The whole text stands in the file."""
        return self.tokens > 0 and self.run == self.tokens

    @property
    def similarity(self) -> float:
        """1 for a copy, 0 where every token had to be edited."""
        return 1 - self.distance / self.tokens if self.tokens else 0.0


class Corpus:
    """A file of texts, ready to be searched."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self._words: dict[str, int] = {}
        rows = [[self._words.setdefault(word, len(self._words)) for word in split(text)] for text in self.texts]
        self._starts = np.concatenate([[0], np.cumsum([len(row) + 1 for row in rows])]).astype(np.int64)
        # One separator of its own after each text, which equals no token: no run crosses it.
        self._ids = np.fromiter((i for row in rows for i in (*row, -1)), dtype=np.int64, count=int(self._starts[-1]))
        self.tokens = len(self._ids) - len(rows)

    def overlaps(self, texts: Sequence[str]) -> list[TextOverlap]:
        rows = [split(text) for text in texts]
        own = [np.array([self._words.get(word, -2) for word in row], dtype=np.int64) for row in rows]
        overlaps = []
        for words, ids in zip(rows, own, strict=True):
            length, start, counts = self._longest(ids)
            nearest, distance = self._nearest(ids, counts)
            overlaps.append(TextOverlap(len(ids), length, " ".join(words[start : start + length]), nearest, distance))
        return overlaps

    def _longest(self, ids: Ids) -> tuple[int, int, dict[int, int]]:
        """Length and place of the longest run, and how many pairs of tokens each text shares with it."""
        in_text, in_file = self._pairs(ids)
        counts: dict[int, int] = {}
        best, start, length = 0, 0, 0
        while len(in_text):
            length += 1
            best, start = length, int(in_text[0])
            if length <= 2:
                numbers, times = np.unique(self._number(in_file), return_counts=True)
                counts = dict(zip(numbers.tolist(), times.tolist(), strict=True))
            fits = in_text + length < len(ids)
            in_text, in_file = in_text[fits], in_file[fits]
            same = ids[in_text + length] == self._ids[in_file + length]
            in_text, in_file = in_text[same], in_file[same]
        return best, start, counts

    def _pairs(self, ids: Ids) -> tuple[Ids, Ids]:
        """All pairs of places, here and in the file, with the same token."""
        order, bounds = self._index()
        known = np.flatnonzero(ids >= 0)
        if not len(known):
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        sizes = bounds[ids[known] + 1] - bounds[ids[known]]
        in_text = np.repeat(known, sizes)
        offsets = np.arange(len(in_text)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        in_file = order[np.repeat(bounds[ids[known]], sizes) + offsets]
        return in_text, in_file

    def _index(self) -> tuple[Ids, Ids]:
        """Places of each token: `order[bounds[i]:bounds[i + 1]]`."""
        if not hasattr(self, "_kept"):
            order = np.argsort(self._ids, kind="stable")
            bounds = np.searchsorted(self._ids[order], np.arange(len(self._words) + 1))
            self._kept = (order.astype(np.int64), bounds.astype(np.int64))
        return self._kept

    def _number(self, places: Ids) -> Ids:
        numbers: Ids = np.searchsorted(self._starts, places, side="right") - 1
        return numbers

    def _nearest(self, ids: Ids, counts: dict[int, int]) -> tuple[int, int]:
        """The closest of the texts that share most pairs of tokens; a few candidates are compared in full."""
        best, distance = -1, len(ids)
        for number in sorted(counts, key=lambda n: (-counts[n], n))[:CANDIDATES]:
            edits = edits_to_part(ids, self._ids[self._starts[number] : self._starts[number + 1] - 1])
            if best < 0 or edits < distance:
                best, distance = number, edits
        return best, distance


def edits_to_part(needle: Ids, text: Ids) -> int:
    """The fewest insertions, deletions and replacements that turn `needle` into some part of `text`."""
    row = np.zeros(len(text) + 1, dtype=np.int64)
    for count, token in enumerate(needle, start=1):
        previous = row
        step = np.empty_like(row)
        step[0] = count
        step[1:] = np.minimum(previous[1:] + 1, previous[:-1] + (text != token))
        # A token of the text more costs one: the running minimum of value - place gives all of them at once.
        places = np.arange(len(step))
        row = np.minimum.accumulate(step - places) + places
    return int(row.min())
