"""A release as a smaller epsilon would have made it, without another look at the private rows.

A sketch has normal noise of a known variance. Adding more noise gives the law of a sketch of the same rows at a smaller
epsilon (variances of independent normal noise add up; rounding to the step apart), and costs nothing: it is
post-processing. What a larger epsilon would give cannot be seen from a sketch.

What is measured: of the released rows, which are public sentences, how many get the label they were released with from
a classifier made of the noisier sketch; the mean over labels. It says how firmly the release stands against noise,
and is no score on private rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.arrays import Floats32, Ids
from tacit.guarantee import Notion
from tacit.matching.corpus import pool_features
from tacit.matching.discriminant import fitted_discriminant
from tacit.matching.sketch import SENSITIVITY, Sketch
from tacit.matching.whole_numbers import GRID
from tacit.noise.gaussian import analytic_gaussian_sigma
from tacit.noise.source import public_generator

FACTORS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
DRAWS = 3


@dataclass(frozen=True)
class NoisePoint:
    """A release as it would look at this epsilon.

    count_deviation   standard deviation of the noise in the number of rows of a label
    kept              share of released rows that keep their label, the mean over labels and draws
    low, high         the smallest and the largest of the draws
    """

    epsilon: float
    count_deviation: float
    kept: float
    low: float
    high: float


def noise_curve(sketch: Sketch, pool: Sequence[str], texts: Sequence[str], labels: Sequence[str]) -> list[NoisePoint]:
    """The curve up to the epsilon of a sketch; empty where its noise is not that of the Gaussian mechanism, or it has
    one label only."""
    promised = sketch.guarantee
    if promised.notion is not Notion.APPROXIMATE or not promised.delta or len(sketch.labels) < 2:
        return []
    around, rows = pool_features(sketch, pool), pool_features(sketch, texts)
    names = {name: place for place, name in enumerate(sketch.labels)}
    truth = np.array([names[label] for label in labels], dtype=np.int64)
    own = analytic_gaussian_sigma(promised.epsilon, promised.delta, SENSITIVITY)
    points = []
    for factor in FACTORS:
        sigma = analytic_gaussian_sigma(promised.epsilon * factor, promised.delta, SENSITIVITY)
        variance = sketch.noise_variance * max(1.0, (sigma / own) ** 2)
        kept = [
            _kept(noisier(sketch, variance, seed), around, rows, truth) for seed in range(1 if factor == 1 else DRAWS)
        ]
        points.append(
            NoisePoint(
                promised.epsilon * factor,
                sketch.count_deviation * math.sqrt(variance / sketch.noise_variance),
                float(np.mean(kept)),
                min(kept),
                max(kept),
            )
        )
    return points


def noisier(sketch: Sketch, variance: float, seed: int) -> Sketch:
    """A sketch with more noise, of this variance in all; the seed is public, because the sketch is."""
    added = variance - sketch.noise_variance
    if added <= 0:
        return sketch
    steps = math.sqrt(added) * GRID / sketch.step
    drawn = public_generator(seed).normal(0.0, steps, sketch.totals.shape)
    return replace(sketch, totals=sketch.totals + np.rint(drawn).astype(np.int64), noise_variance=variance)


def _kept(sketch: Sketch, pool: Floats32, rows: Floats32, truth: Ids) -> float:
    """The share of rows that keep their label, the mean over the labels that have rows."""
    guesses = fitted_discriminant(sketch, pool).log_probabilities(rows).argmax(axis=1)
    return float(np.mean([(guesses[truth == label] == label).mean() for label in np.unique(truth)]))
