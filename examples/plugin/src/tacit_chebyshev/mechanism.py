"""SanText in the Chebyshev distance: a word moves in its most different coordinate.

    Pr[M(x) = y]  proportional to  exp(-epsilon/2 * max_i |phi_i(x) - phi_i(y)|)

Guarantee: epsilon-metric differential privacy in the Chebyshev distance of the vectors, for any two tokens.
Proof: the Chebyshev distance obeys the triangle inequality, so from x to x' each weight changes by at most
exp(epsilon/2 * d(x, x')), and so does their sum: the probabilities change by at most exp(epsilon * d(x, x')). The
differences of single-precision numbers are exact in double precision, and so is the largest of them; the weights are
rounded to integers, which is the slack on the card.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids
from tacit.checks import EVERY_WORD, WordLaw
from tacit.guarantee import Guarantee, Metric, MetricKind, Notion
from tacit.noise.choice import draw_rows, integer_weights, probabilities, rounding_slack
from tacit.noise.source import Source, public_generator
from tacit.parameters import EpsilonRange, parameter
from tacit.words.base import (
    WordMechanism,
    by_word,
)

BLOCK_WORDS = 16
COMPARED = 2_000


@dataclass(frozen=True, eq=False)
class ChebyshevDistance:
    """The largest difference of two vectors in one coordinate."""

    points: NDArray[np.float64]
    name: str

    def between(self, left: Ids, right: Ids) -> Floats:
        return np.asarray(np.abs(self.points[left] - self.points[right]).max(axis=1))

    def closest(self, count: int) -> Ids:
        """The closest pairs among the most frequent words: these are the ones an audit looks at first."""
        points = self.points[:COMPARED]
        pairs = np.array([(i, i + 1 + int(np.abs(points[i + 1 :] - points[i]).max(axis=1).argmin()))
                          for i in range(len(points) - 1)])  # fmt: skip
        return np.asarray(pairs[np.argsort(self.between(pairs[:, 0], pairs[:, 1]), kind="stable")[:count]])

    def metric(self, fingerprint: str) -> Metric:
        """Its largest value is exact: the widest coordinate."""
        some = public_generator(0).integers(0, len(self.points), size=(2, 10_000))
        widest = float(np.ptp(self.points, axis=0).max())
        return Metric(self.name, widest, float(np.median(self.between(*some))), fingerprint, kind=MetricKind.OTHER)


@dataclass(kw_only=True, eq=False)
class ChebyshevWords(WordMechanism):
    """Every word becomes a vocabulary word, one without any very different coordinate more often.

    scaled   divide the vectors by their largest coordinate first, so that epsilon means the same for all vectors
    """

    scaled: str = parameter("no", choices=("no", "yes"))

    name: ClassVar[str] = "chebyshev"
    title: ClassVar[str] = "Chebyshev words"
    paper: ClassVar[str] = "an example of a plug-in, after Yue et al. 2021"
    notion: ClassVar[str] = Notion.METRIC.value
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(20.0, 2.0, 100.0)

    @property
    def points(self) -> NDArray[np.float64]:
        vectors = np.asarray(self.table.vectors, dtype=np.float64)
        # A power of two, so that the division is exact.
        return vectors / 2.0 ** np.ceil(np.log2(np.abs(vectors).max())) if self.scaled == "yes" else vectors

    @property
    def law_check(self) -> WordLaw:
        return WordLaw(words=EVERY_WORD) if len(self.table) <= COMPARED else WordLaw()

    def distance(self) -> ChebyshevDistance:
        return ChebyshevDistance(
            self.points, f"Chebyshev distance of {self.table.name} vectors (scaled: {self.scaled})"
        )

    def draw(self, ids: Ids, source: Source) -> Ids:
        drawn = np.empty(len(ids), dtype=np.int64)
        points = self.points
        for words, counts, positions in by_word(ids, BLOCK_WORDS):
            drawn[positions] = draw_rows(self._weights(words, points), counts, source)
        return drawn

    def laws_of_draw(self, ids: Ids) -> Floats:
        points = self.points
        blocks = [ids[start : start + BLOCK_WORDS] for start in range(0, len(ids), BLOCK_WORDS)]
        return np.concatenate([probabilities(self._weights(block, points)) for block in blocks])

    def _weights(self, ids: Ids, points: NDArray[np.float64]) -> Ids:
        distances = np.stack([np.abs(points - points[word]).max(axis=1) for word in ids])
        return integer_weights(self.epsilon / 2.0 * distances)

    def promise(self) -> Guarantee:
        metric = self.distance().metric(self.table.fingerprint)
        return self._promise(Notion.METRIC, self.epsilon, metric=metric, slack=rounding_slack(len(self.table)))
