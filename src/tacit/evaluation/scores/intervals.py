"""Confidence intervals of scores: Student's t over seeds, the bootstrap over test items."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.errors import BadInputError
from tacit.noise.source import public_generator

CONFIDENCE = 0.95
RESAMPLES = 1000


@dataclass(frozen=True)
class Interval:
    """A mean or score, and where it lies with the stated confidence; `low` and `high` are NaN where one value is all
    there is."""

    value: float
    low: float
    high: float
    count: int
    confidence: float = CONFIDENCE

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def named(self, name: str) -> dict[str, float]:
        """The score of this name, and the ends of its interval beside it."""
        return {name: self.value, f"{name}.low": self.low, f"{name}.high": self.high}

    def plus(self, number: float) -> Interval:
        """The interval of the score and a number."""
        return replace(self, value=self.value + number, low=self.low + number, high=self.high + number)

    def times(self, factor: float) -> Interval:
        """The interval of the score times a number; a negative one turns it around."""
        low, high = sorted((factor * self.low, factor * self.high))
        return replace(self, value=factor * self.value, low=low, high=high)


def t_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Student's interval of the mean, of seeds or of a number of each test item. One value has no interval."""
    from scipy.stats import t

    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size:
        raise BadInputError("nothing-measured", "there is no value to average: run at least one seed")
    mean = float(numbers.mean())
    if len(numbers) < 2:
        return Interval(mean, math.nan, math.nan, 1, confidence)
    reach = float(t.ppf((1 + confidence) / 2, len(numbers) - 1) * numbers.std(ddof=1) / math.sqrt(len(numbers)))
    return Interval(mean, mean - reach, mean + reach, len(numbers), confidence)


def resampled(
    statistic: Callable[[Integers], float | Floats], items: int, *, resamples: int = RESAMPLES, seed: int = 0
) -> Floats:
    """The statistic on `resamples` test sets drawn from the items with replacement (Efron 1979)."""
    rng = public_generator(seed)
    return np.array([statistic(rng.integers(0, items, items)) for _ in range(resamples)])


def bootstrap_interval(
    statistic: Callable[[Integers], float],
    items: int,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap over test items; `statistic` gets the places of the items of one resample."""
    return bootstrap_intervals(
        lambda at: np.array([statistic(at)]), items, confidence=confidence, resamples=resamples, seed=seed
    )[0]


def bootstrap_intervals(
    statistics: Callable[[Integers], Floats],
    items: int,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Interval]:
    """The same for several numbers of each resample at once."""
    values = statistics(np.arange(items)).tolist()
    if items < 2:
        return [Interval(value, math.nan, math.nan, items, confidence) for value in values]
    draws = resampled(statistics, items, resamples=resamples, seed=seed)
    ends = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0).T.tolist()
    return [Interval(value, low, high, items, confidence) for value, (low, high) in zip(values, ends, strict=True)]


def mean_interval(values: Sequence[float] | Floats, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """Bootstrap over texts of the mean of one number per text."""
    numbers = np.asarray(values, dtype=np.float64)
    return bootstrap_interval(lambda at: float(numbers[at].mean()), len(numbers), seed=seed, resamples=resamples)
