"""Labels and wording of a release beside those of the originals: proportions, repeated rows, distinct words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.evaluation.downstream import Labeled
from tacit.noise.source import public_generator
from tacit.text.tokens import split

TOKENS = 20_000
"""Distinct words are counted among so many at most, the same number for both sides: more text repeats more."""


@dataclass(frozen=True)
class LabelShares:
    """The shares of the labels in the originals and in the release, one each."""

    labels: tuple[str, ...]
    original: tuple[float, ...]
    released: tuple[float, ...]

    @property
    def distance(self) -> float:
        """The share of rows that would have to change their label (total variation)."""
        return sum(abs(a - b) for a, b in zip(self.original, self.released, strict=True)) / 2

    @property
    def missing(self) -> tuple[str, ...]:
        """Labels of the originals that the release does not have."""
        return tuple(
            label
            for label, before, after in zip(self.labels, self.original, self.released, strict=True)
            if before and not after
        )


def label_shares(original: Sequence[str], released: Sequence[str]) -> LabelShares:
    """The shares of all labels that occur on either side."""
    before, after = Counter(original), Counter(released)
    labels = tuple(sorted(before.keys() | after.keys(), key=str))
    return LabelShares(
        tuple(map(str, labels)),
        tuple(before[label] / max(1, len(original)) for label in labels),
        tuple(after[label] / max(1, len(released)) for label in labels),
    )


@dataclass(frozen=True)
class Wording:
    """How some texts are worded.

    duplicates       the share of rows whose text stands in another row as well, beyond the first
    distinct_words   different words, as a share of `words`
    words            that were counted
    length           words of a text, on average
    """

    rows: int
    duplicates: float
    distinct_words: float
    words: int
    length: float


def wordings(original: Labeled, released: Labeled, seed: int = 0) -> tuple[Wording, Wording]:
    """The wording of the originals and of the release, on equally many words."""
    sides = [[split(str(text)) for text in rows.texts] for rows in (original, released)]
    generator = public_generator(seed)
    shuffled = [[side[place] for place in generator.permutation(len(side)).tolist()] for side in sides]
    words = min(TOKENS, *(sum(map(len, side)) for side in sides))
    first, second = (_wording(side, words) for side in shuffled)
    return first, second


def _wording(texts: Sequence[Sequence[str]], words: int) -> Wording:
    counted = [word for text in texts for word in text][:words]
    different = len({" ".join(text) for text in texts})
    return Wording(
        rows=len(texts),
        duplicates=1 - different / max(1, len(texts)),
        distinct_words=len(set(counted)) / max(1, len(counted)),
        words=len(counted),
        length=float(np.mean([len(text) for text in texts])) if texts else 0.0,
    )
