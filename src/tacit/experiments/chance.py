"""Means, their standard errors, and whether chance alone could have made a difference.

A statement about several groups is judged by the partial conjunction tests of Benjamini and Heller (2008), with Simes's
inequality: chance is ruled out for r of n groups if some i >= r of them have p <= .05 (i - r + 1) / (n - r + 1). So one
of a dozen groups has to fail by 2.87 standard errors, because that one of them fails by 1.96 is to be expected, whereas
all of a dozen hardly ever hold by 1.96 without a reason.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from scipy.stats import rankdata

from tacit.evaluation.scores import t_interval

SIGNIFICANCE: Final = 0.05
REACH: Final = 1.96
"""Standard errors on either side of a mean in an interval of 95 %."""


@dataclass(frozen=True)
class Number:
    """A mean over cells.

    error    its standard error: over test items where the score has an interval, and over seeds where there are
             several, both together; NaN where there is neither
    outside  at least one of the cells is outside the domain of its mechanism
    """

    value: float
    error: float = math.nan
    floor: float = math.nan
    ceiling: float = math.nan
    cells: int = 1
    outside: bool = False

    @property
    def low(self) -> float:
        return self.value - REACH * self.error

    @property
    def high(self) -> float:
        return self.value + REACH * self.error


@dataclass(frozen=True)
class ScoredPoint:
    """One score of one cell; cells that differ by their seed only have the same question."""

    question: Hashable
    value: float
    low: float = math.nan
    high: float = math.nan
    floor: float = math.nan
    ceiling: float = math.nan
    outside: bool = False


def mean_of(points: Sequence[ScoredPoint]) -> Number:
    """Mean and standard error: points of one question are repetitions, others are different questions.

    The test items are the same for all seeds of a question, so more seeds do not make their part of the error smaller.
    """
    questions: dict[Hashable, list[ScoredPoint]] = {}
    for point in points:
        questions.setdefault(point.question, []).append(point)
    means = [mean(point.value for point in group) for group in questions.values()]
    error = joint_error(_error(group) for group in questions.values()) / len(questions)
    return Number(
        mean(means),
        error,
        mean(point.floor for point in points),
        mean(point.ceiling for point in points),
        len(points),
        any(point.outside for point in points),
    )


def _error(repetitions: Sequence[ScoredPoint]) -> float:
    """Of one question: over seeds (Student), and over test items (from the 95 % interval of each run)."""
    values = [point.value for point in repetitions]
    widths = [point.high - point.low for point in repetitions]
    items = mean(width for width in widths if not math.isnan(width)) / (2 * REACH)
    seeds = (t_interval(values).high - mean(values)) / REACH if len(values) > 1 else math.nan
    return joint_error([seeds, items])


def joint_error(errors: Iterable[float]) -> float:
    """The standard error of a sum: what has none (NaN) is exact and adds nothing; NaN if nothing has one."""
    known = [error for error in errors if not math.isnan(error)]
    return math.hypot(*known) if known else math.nan


def mean(values: Iterable[float]) -> float:
    """The mean, rounded once; NaN of nothing."""
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else math.nan


def in_errors(gap: float, error: float) -> float:
    """A difference in standard errors. No error at all (NaN) is an exact number; two scores at their floor are not
    clearly anything."""
    if math.isnan(error):
        return math.inf
    return gap / error if error else (math.inf if gap else 0.0)


def chance_ruled_out(errors: Sequence[float], wanted: int, groups: int) -> bool:
    """Whether at least `wanted` of the groups stand this way by more than chance; `errors` has, for each group that
    does, by how many standard errors."""
    chances = sorted(2 * NormalDist().cdf(-distance) for distance in errors)
    return any(
        chance <= SIGNIFICANCE * (place - wanted + 1) / (groups - wanted + 1)
        for place, chance in enumerate(chances, start=1)
        if place >= wanted
    )


def rank_correlation(values: Sequence[float], others: Sequence[float] | None = None) -> float:
    """Spearman's correlation of values with others, by default with their order; ties share their ranks, and no spread
    is no correlation."""
    first, second = (rankdata(numbers) for numbers in (values, range(len(values)) if others is None else others))
    middle = (len(values) + 1) / 2
    above = sum((a - middle) * (b - middle) for a, b in zip(first, second, strict=True))
    below = math.sqrt(sum((a - middle) ** 2 for a in first) * sum((b - middle) ** 2 for b in second))
    return float(above / below) if below else 0.0
