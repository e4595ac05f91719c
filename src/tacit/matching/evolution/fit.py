"""How well a sentence fits each label, by the release alone.

    fit(x, c) = min(domain(x), cap) + 4 log p(c | x)            (`tacit.matching.discriminant`)

It is the logarithm of the weight by which rows are drawn, except for the cap: the domain direction is linear, so a
sentence that repeats three words of the domain would beat every real one. Nothing is rewarded for being further out
than all but one in a thousand of the public sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Floats32, Ids
from tacit.matching.corpus import BLOCK, pool_features
from tacit.matching.discriminant import Discriminant, fitted_discriminant
from tacit.matching.sketch import Sketch
from tacit.progress import WorkProgress

SHARPNESS = 4.0
CAP_QUANTILE = 0.999


@dataclass(frozen=True)
class Fit:
    """The judge of an evolution: a classifier made of a sketch and the pools that it started from."""

    sketch: Sketch
    discriminant: Discriminant
    cap: float

    def scores(self, sentences: Sequence[str]) -> Floats:
        """The fit of sentences to all labels, (sentences, labels)."""
        return self.of_features(pool_features(self.sketch, sentences))

    def judged(self, sentences: Sequence[str], labels: Ids) -> tuple[Floats, NDArray[np.bool_]]:
        """The fit of each sentence to its own label, and whether it fits no other label better."""
        own, first = np.zeros(len(sentences)), np.zeros(len(sentences), dtype=bool)
        for start in range(0, len(sentences), BLOCK):
            part = slice(start, start + BLOCK)
            scores = self.scores(sentences[part])
            own[part] = scores[np.arange(len(scores)), labels[part]]
            first[part] = own[part] >= scores.max(axis=1)
        return own, first

    def of_features(self, features: Floats32) -> Floats:
        domain = np.minimum(self.discriminant.domain_scores(features), self.cap)
        return np.asarray(domain[:, None] + SHARPNESS * self.discriminant.log_probabilities(features))

    def best(self, sentences: Sequence[str], count: int) -> list[list[tuple[float, int]]]:
        """For each label the best-fitting sentences as (fit, place), best first."""
        kept: list[list[tuple[float, int]]] = [[] for _ in self.sketch.labels]
        for start in range(0, len(sentences), BLOCK):
            scores = self.scores(sentences[start : start + BLOCK])
            few = min(count, len(scores))
            for label, column in enumerate(scores.T):
                places = np.argpartition(-column, few - 1)[:few]
                merged = [*kept[label], *((float(column[place]), start + int(place)) for place in places)]
                kept[label] = sorted(merged, key=lambda each: (-each[0], each[1]))[:count]
        return kept


def fit_of(sketch: Sketch, sentences: Sequence[str], progress: WorkProgress | None = None) -> Fit:
    """The judge that a sketch makes of public sentences."""
    features = pool_features(sketch, sentences, progress)
    discriminant = fitted_discriminant(sketch, features)
    return Fit(sketch, discriminant, float(np.quantile(discriminant.domain_scores(features), CAP_QUANTILE)))
