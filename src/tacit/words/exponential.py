"""The exponential family: an output y is drawn with probability proportional to exp(-min(scale(x) d(x, y), cap)).

Tokens are grouped by word, so a word is worked out once however often it stands in the text; words are taken in blocks,
so that no |V| x |V| array is ever held. The draw compares integers (see `tacit.noise.choice`), which makes its law
exactly computable: `laws` returns the probabilities that `draw` really uses.

Proof obligation. With scale = epsilon / 2 the exponent changes by at most (epsilon / 2) d(x, x') from x to x', for
every y (triangle inequality; a minimum with a constant changes nothing). So each weight changes by at most
exp(epsilon d / 2) and so does their sum: the probabilities change by at most exp(epsilon d). Distances are computed
with an error of at most eta (`distance_error_bound`), which enters each of the four terms once: 2 epsilon eta, beside
the rounding of the integer weights, is the slack on the card.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.checks import CLOSEST_PAIRS, EVERY_WORD, WordLaw
from tacit.noise.choice import draw_rows, integer_weights_of_squares, probabilities, rounding_slack
from tacit.noise.source import Source
from tacit.parameters import EpsilonRange
from tacit.vectors.distance import VectorDistance
from tacit.vectors.distance_rows import DistanceRows
from tacit.vectors.hyperbolic import HyperbolicRows
from tacit.words.base import (
    BLOCK_CELLS,
    WordMechanism,
    by_word,
)


@dataclass(kw_only=True, eq=False)
class ExponentialWords(WordMechanism):
    """Base of the mechanisms whose exponent comes from the distances of a word to all possible outputs."""

    block_characters: ClassVar[int] = 4_000_000
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(2.0, 1.0, 12.0)

    @cached_property
    def distances(self) -> DistanceRows | HyperbolicRows:
        everything = len(self.outputs) == len(self.table)
        return DistanceRows(self.table, columns=None if everything else self.outputs)

    def scales(self, ids: Ids) -> float | Floats:
        """The factor of a distance: one number, or one per input."""
        return self.epsilon / 2.0

    @property
    def cap(self) -> float:
        """The largest exponent; the same for all inputs."""
        return math.inf

    def prepare(self) -> None:
        super().prepare()
        self._load("distances")

    @property
    def law_check(self) -> WordLaw:
        distance = self.distance() if self.promise().metric is not None else None
        radial = isinstance(distance, VectorDistance) and not distance.squared
        return WordLaw(words=EVERY_WORD if radial else CLOSEST_PAIRS, radial=radial)

    def draw(self, ids: Ids, source: Source) -> Ids:
        drawn = np.empty(len(ids), dtype=np.int64)
        buffer = self._buffer(len(ids))
        for words, counts, positions in by_word(ids, len(buffer)):
            drawn[positions] = draw_rows(self._weights(words, buffer), counts, source)
        return self.outputs[drawn]

    def laws_of_draw(self, ids: Ids) -> Floats:
        result = np.zeros((len(ids), len(self.table)))
        buffer = self._buffer(len(ids))
        for first in range(0, len(ids), len(buffer)):
            block = slice(first, first + len(buffer))
            result[block, self.outputs] = probabilities(self._weights(ids[block], buffer))
        return result

    def _weights(self, ids: Ids, buffer: Floats) -> Ids:
        # An id beyond the vocabulary is a word that a detector marked (see two_classes).
        squares = self.distances.squares(ids % len(self.table), buffer[: len(ids)], self.scales(ids))
        return integer_weights_of_squares(squares, self.cap)

    def _buffer(self, rows: int) -> Floats:
        width = len(self.outputs)
        return np.empty((max(1, min(rows, BLOCK_CELLS // width)), width))

    def _slack(self, epsilon: float) -> float:
        return rounding_slack(len(self.outputs)) + 2.0 * epsilon * self.distances.error_bound
