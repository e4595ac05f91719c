"""How many rows a label has, by a sketch: its noisy share with the interval that the known noise leaves.

With n_c the noisy number of rows of label c, s the standard deviation of its noise and N the sum over all L labels, the
share n_c / N has to first order the variance  s^2 ((1 - p)^2 + (L - 1) p^2) / N^2  with p = n_c / N: the noise of label
c stands above and below the line, that of the others below it only.

Only what was released is used, so all of it may be shared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.guarantee import Notion
from tacit.matching.sketch import Sketch

DEVIATIONS = 1.96
PURE_DEVIATIONS = 2.12
"""So many standard deviations to each side hold the true share in 95 of 100 releases: of normal noise, and of the
Laplace noise of a promise of epsilon alone."""


@dataclass(frozen=True)
class Proportion:
    """The share of a label.

    estimate   its noisy share, not below 0
    low, high  where the true share lies in 95 of 100 releases
    released   its share of the released rows
    """

    label: str
    estimate: float
    low: float
    high: float
    released: float


def label_proportions(sketch: Sketch, released: Sequence[str]) -> list[Proportion]:
    """The proportions of all labels of a sketch; `released` are the labels of the released rows."""
    rows = Counter(released)
    total = max(float(sketch.counts.sum()), 1.0)
    labels = len(sketch.labels)
    deviations = PURE_DEVIATIONS if sketch.guarantee.notion is Notion.PURE else DEVIATIONS
    proportions = []
    for label, count in zip(sketch.labels, sketch.counts.tolist(), strict=True):
        share = count / total
        spread = sketch.count_deviation / total * math.sqrt((1 - share) ** 2 + (labels - 1) * share**2)
        proportions.append(
            Proportion(
                label,
                estimate=within_one(share),
                low=within_one(share - deviations * spread),
                high=within_one(share + deviations * spread),
                released=rows[label] / max(1, len(released)),
            )
        )
    return proportions


def within_one(value: float) -> float:
    """The nearest number from 0 to 1."""
    return min(1.0, max(0.0, value))
