"""The success of an attack: a rate between a floor and a ceiling, with its confidence and its traffic light.

    share = (rate - floor) / (ceiling - floor)

The floor is what somebody reaches who never saw the release; the ceiling is what the same attack reaches on the
original text, without any privacy. So 0 means that the release did not help this attacker at all, and 1 that the
rewriting did not hinder them at all. Only the attack that was run is judged: a better one may exist, and no light here
is a proof of safety. Proofs are on the privacy card.

The light looks at the whole interval of a rate, so that few rows can neither acquit nor convict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.auditing.binomial import interval
from tacit.noise.source import public_generator
from tacit.report import Finding, Light

CONFIDENCE = 0.95
RED_SHARE = 0.5
GREEN_SHARE = 0.1
SMALLEST_RANGE = 0.02
BOOTSTRAPS = 1_000

WHY = (
    f"Red when, at {CONFIDENCE:.0%} confidence, the attack keeps at least {RED_SHARE:.0%} of what it gains over blind "
    f"guessing on the original text: rewriting took away less than half. Green when it keeps less than "
    f"{GREEN_SHARE:.0%}. Amber between the two, or when there are too few cases to tell. A note when the attack hardly "
    "works on the original text either, so that its failure says nothing."
)


@dataclass(frozen=True)
class Success:
    """The success of an attack, between its floor and its ceiling.

    rate      share of the cases in which it was right
    low high  interval of that rate
    floor     the rate of a blind guess
    ceiling   the rate of the same attack without privacy
    cases     how many were attacked
    """

    rate: float
    low: float
    high: float
    floor: float
    ceiling: float
    cases: int

    def share_of(self, rate: float) -> float:
        width = self.ceiling - self.floor
        return (rate - self.floor) / width if width > 0 else math.nan

    @property
    def share(self) -> float:
        """The share of its gain over the floor that the attack keeps."""
        return self.share_of(self.rate)

    @property
    def light(self) -> Light:
        if self.cases == 0 or self.ceiling - self.floor < SMALLEST_RANGE:
            return Light.NONE
        if self.share_of(self.low) >= RED_SHARE:
            return Light.RED
        return Light.GREEN if self.share_of(self.high) < GREEN_SHARE else Light.AMBER

    def numbers(self) -> dict[str, object]:
        return {
            "rate": self.rate,
            "low": self.low,
            "high": self.high,
            "confidence": CONFIDENCE,
            "floor": self.floor,
            "ceiling": self.ceiling,
            "share": self.share,
            "cases": self.cases,
        }

    def sentence(self, what: str, without: str = "the same attack on the original text reaches") -> str:
        """The success in one sentence, with everything needed to judge it; `without` says what the ceiling is."""
        sentence = (
            f"{what} in {self.rate:.1%} of {self.cases:,} cases ({CONFIDENCE:.0%} interval {self.low:.1%} to "
            f"{self.high:.1%}); blind guessing reaches {self.floor:.1%}, {without} {self.ceiling:.1%}."
        )
        if self.cases and self.ceiling - self.floor < SMALLEST_RANGE:
            return f"{sentence} The attack hardly works on the original text either, so this says nothing."
        return sentence


def finding(name: str, success: Success, what: str, *, without: str | None = None, **more: object) -> Finding:
    """A finding whose light follows the rule above."""
    sentence = success.sentence(what) if without is None else success.sentence(what, without)
    return Finding(name, success.light, sentence, WHY, numbers={**success.numbers(), **more})


def of_trials(
    right: NDArray[np.generic] | list[bool],
    *,
    floor: float,
    ceiling: float,
    rows: NDArray[np.generic] | None = None,
    looks: int = 1,
) -> Success:
    """The success of an attack on single cases.

    The interval is that of Clopper and Pearson (1934). It is exact for equal chances, and independent trials with
    unequal ones have no heavier tails (Hoeffding 1956). With `rows`, cases of one row are not taken as
    independent: the interval is then the percentile bootstrap over rows. `looks` is how many attacks the reader chooses
    the best from; the confidence holds for all of them together (Bonferroni).
    """
    hits = np.asarray(right, dtype=np.float64)
    count = len(hits)
    if count == 0:
        return Success(math.nan, 0.0, 1.0, floor, ceiling, 0)
    doubt = (1.0 - CONFIDENCE) / looks
    exact = interval(float(hits.sum()), count, doubt)
    low, high = exact if rows is None else _wider(exact, row_bootstrap(hits, rows, doubt))
    return Success(float(hits.mean()), low, high, floor, ceiling, count)


def _wider(first: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(first[0], other[0]), max(first[1], other[1])


def row_bootstrap(hits: Floats, rows: NDArray[np.generic], doubt: float = 1.0 - CONFIDENCE) -> tuple[float, float]:
    """Percentiles of the rate when whole rows are drawn again with replacement (a fixed public seed)."""
    _, place = np.unique(rows, return_inverse=True)
    size = np.bincount(place).astype(np.float64)
    won = np.bincount(place, weights=hits)
    generator = public_generator(0)
    rates = np.empty(BOOTSTRAPS)
    for turn in range(BOOTSTRAPS):
        drawn = generator.integers(0, len(size), size=len(size))
        rates[turn] = won[drawn].sum() / size[drawn].sum()
    low, high = np.quantile(rates, [doubt / 2, 1 - doubt / 2])
    return float(low), float(high)
