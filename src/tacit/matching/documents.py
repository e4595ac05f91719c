"""How long the private texts are: a histogram of their lengths, paid for in the same release as the sums.

A corpus should have rows as long as the private ones, and their lengths are private. So a row also adds to a number
that counts texts of about its length: one of eight public bins of characters, each twice as wide as the one before.
These numbers stand beside the sums (`tacit.matching.sides`) and get the same noise.

Theorem. Adding or removing one row moves the sums and the eight numbers together by at most 1 in Euclidean length.

Proof. A row has one length, so it adds L = floor(l GRID) steps to one number and nothing to the others, or nothing at
all if its text is empty: its part in the squared length is at most L^2. `DocumentMap` refuses weights for which
A^2 + sum of B_b^2 + L^2 > GRID^2 in integer arithmetic (A, B_b: `tacit.matching.features`), and `check_room` counts L^2
where a row stands in several lines of the sums. The length of a text is a function of that text alone. A user's rows
are shortened together with these numbers (`tacit.matching.sums`).

What is made of the noisy numbers afterwards costs nothing: `TextLengths` draws lengths from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np

from tacit.arrays import Integers
from tacit.errors import BadParameterError
from tacit.matching.blocks import other_version
from tacit.matching.features import LONGEST_CHARACTERS, FeatureMap, TextFeatures
from tacit.matching.sides import SideEntries
from tacit.matching.whole_numbers import GRID, bound_of

EDGES: Final = (64, 128, 256, 512, 1024, 2048, 4096)
"""Characters: a text belongs to the first bin whose edge is not below its length, or to the last bin."""
SHORTEST, LONGEST = 32, 8192
"""The ends of the first and the last bin, when lengths are drawn from them."""
ONE_SENTENCE = 128
"""Texts of the bins up to this edge are one sentence each, however long the public sentence is."""
LENGTH_WEIGHT = 0.1
"""What a row adds to the number of texts of its length. The features keep 99.5 % of their size."""
DEVIATIONS = 3.0
"""A bin whose number is not so many deviations of the noise above 0 counts as empty: noise makes no long texts."""
NO_LENGTH = -1
USUAL_SENTENCE = 70.0
"""Characters of a public sentence, about."""


@dataclass(frozen=True)
class DocumentFeatures(TextFeatures):
    """Features of texts, and the bin of each one's length; `NO_LENGTH` for an empty one."""

    bins: Integers


@dataclass(frozen=True)
class DocumentMap(FeatureMap):
    """A feature map that also counts how long texts are.

    length_weight   what a row adds to the number of texts of its length
    """

    length_weight: float = LENGTH_WEIGHT

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = (self.count_weight, self.length_weight, *(block.weight for block in self.blocks))
        if not 0 < self.length_weight <= 1 or sum(bound_of(weight) ** 2 for weight in weights) > GRID**2:
            raise BadParameterError(
                "weights-too-large",
                "the squares of all weights of a feature map must add up to at most 1, or one row could move the sums "
                "by more than that",
            )

    @property
    def side_size(self) -> int:
        return len(EDGES) + 1

    @property
    def side_squares(self) -> int:
        return bound_of(self.length_weight) ** 2

    def features(self, texts: Sequence[str], *, alone: bool = False) -> DocumentFeatures:
        added = super().features(texts, alone=alone)
        return DocumentFeatures(
            added.dense, added.rows, added.words, added.word_steps, added.vocabulary, length_bins(texts)
        )

    def side_entries(self, added: TextFeatures) -> SideEntries:
        assert isinstance(added, DocumentFeatures)
        rows = np.flatnonzero(added.bins != NO_LENGTH)
        return SideEntries(rows, added.bins[rows], np.full(len(rows), bound_of(self.length_weight)))

    def to_dict(self) -> dict[str, object]:
        lengths = {"weight": self.length_weight, "edges": list(EDGES)}
        return {**super().to_dict(), "lengths": lengths}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        usual = FeatureMap.from_dict(values)
        if tuple(values["lengths"]["edges"]) != EDGES:
            raise other_version("the list of lengths")
        return cls(usual.blocks, usual.count_weight, values["lengths"]["weight"])


def length_bins(texts: Sequence[str]) -> Integers:
    """The bin of each text's length.

    >>> length_bins(["", "short", "x" * 64, "x" * 65, "x" * 9999]).tolist()
    [-1, 0, 0, 1, 7]
    """
    lengths = np.array([min(len(text.strip()), LONGEST_CHARACTERS) for text in texts], dtype=np.int64)
    return np.asarray(np.where(lengths == 0, NO_LENGTH, np.searchsorted(EDGES, lengths)))


def with_lengths(usual: FeatureMap, weight: float = LENGTH_WEIGHT) -> DocumentMap:
    """The same features, all a little smaller, so that lengths have room beside them."""
    scale = float(np.sqrt(1 - weight**2))
    blocks = tuple(replace(block, weight=block.weight * scale) for block in usual.blocks)
    return DocumentMap(blocks, usual.count_weight * scale, weight)


# Lengths of released texts ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextLengths:
    """How long the texts of a corpus are: a public number of sentences, or characters by shares of the public bins."""

    sentences: int | None = 1
    shares: tuple[float, ...] = ()

    @property
    def one_sentence(self) -> bool:
        """Whether every text is one sentence."""
        return self.sentences == 1 or (self.sentences is None and not any(self.shares[_first_long_bin() :]))

    def described(self) -> str:
        """The lengths in the words of a card."""
        if self.sentences is None:
            return "as the private lengths, counted with noise in the same release"
        return "one public sentence" if self.sentences == 1 else f"{self.sentences} public sentences"

    @property
    def mean_characters(self) -> float:
        """The mean length of a text, where sentences are about as long as those of the pools."""
        if self.sentences is not None:
            return self.sentences * USUAL_SENTENCE
        ends = np.array([SHORTEST, *EDGES, LONGEST], dtype=np.float64)
        means = np.diff(ends) / np.diff(np.log(ends))
        return float(np.dot(self.shares, means))

    def drawn_characters(self, rows: int, generator: np.random.Generator) -> Integers:
        """Lengths for so many texts, even in their logarithm within a bin; 0 for those that are one sentence."""
        ends = np.array([SHORTEST, *EDGES, LONGEST], dtype=np.float64)
        bins = generator.choice(len(self.shares), size=rows, p=np.array(self.shares))
        lengths = ends[bins] * (ends[bins + 1] / ends[bins]) ** generator.random(rows)
        return np.asarray(np.where(bins < _first_long_bin(), 0, np.ceil(lengths)), dtype=np.int64)


ONE_SENTENCE_EACH = TextLengths()


def _first_long_bin() -> int:
    return EDGES.index(ONE_SENTENCE) + 1


def text_lengths(feature_map: FeatureMap, side: Integers, step: int, deviation: float) -> TextLengths:
    """The lengths that noisy numbers beside the sums tell: one sentence each where lengths were not counted.

    side        those of the map alone, in units of `step` steps of the grid
    deviation   of the noise in each, in units of the features
    """
    if not isinstance(feature_map, DocumentMap):
        return TextLengths()
    numbers = np.asarray(side * (step / bound_of(feature_map.length_weight)), dtype=np.float64)
    least = DEVIATIONS * deviation * GRID / bound_of(feature_map.length_weight)
    counted = np.where(numbers >= least, numbers, 0.0)
    if not counted.any():  # too few texts to tell: the likeliest bin
        counted = (numbers == numbers.max()).astype(np.float64)
    return TextLengths(None, tuple((counted / counted.sum()).tolist()))
