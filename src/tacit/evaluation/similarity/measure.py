"""A measure between its floor and its ceiling, the measures of plug-ins, and the samples that all measures use."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit import plugins
from tacit.arrays import Floats
from tacit.errors import BadInputError
from tacit.evaluation.scores import Interval, mean_interval
from tacit.noise.source import public_generator
from tacit.plugins import Registry

PairMeasure = Callable[[Sequence[str], Sequence[str]], Sequence[float]]


def _is_measure(thing: object) -> bool:
    return callable(thing)


MEASURES: Registry[PairMeasure] = Registry(plugins.MEASURES, "measure", {}, _is_measure)
"""Measures of plug-ins: a function of the originals and the releases that returns one number for each pair."""


@dataclass(frozen=True)
class Measure:
    """One measure of the released texts, between its floor and its ceiling.

    interval   over texts (bootstrap); of a sample of them where `texts` is smaller than the file
    per_text   one number per text of the sample, where the measure has one
    """

    name: str
    interval: Interval
    floor: float
    ceiling: float
    texts: int
    note: str = ""
    logarithmic: bool = False
    per_text: Floats | None = field(default=None, repr=False, compare=False)

    @property
    def value(self) -> float:
        return self.interval.value

    @property
    def kept(self) -> float:
        """The share of the gap between floor and ceiling that is kept; NaN where there is no gap."""
        return share_kept(self.value, self.floor, self.ceiling, logarithmic=self.logarithmic)


def share_kept(value: float, floor: float, ceiling: float, *, logarithmic: bool = False) -> float:
    """(value - floor) / (ceiling - floor): 0 at the floor, 1 at the ceiling, whichever of them is larger."""
    if logarithmic:
        value, floor, ceiling = (math.log(x) if x > 0 else -math.inf for x in (value, floor, ceiling))
    gap = ceiling - floor
    return (value - floor) / gap if gap and math.isfinite(gap) else math.nan


def check_pairs(originals: Sequence[str], releases: Sequence[str]) -> None:
    if len(originals) != len(releases):
        shorter = min(len(originals), len(releases))
        raise BadInputError(
            "rows-do-not-align",
            "there are {originals:,} original texts and {released:,} released ones, so row {row} has no partner: "
            "give files with the same rows in the same order",
            originals=len(originals),
            released=len(releases),
            row=shorter + 1,
        )
    if len(originals) < 2:
        raise BadInputError(
            "too-few-rows", "similarity needs at least two texts, so that chance can be measured: give more rows"
        )


def strangers(count: int, seed: int = 0) -> NDArray[np.int64]:
    """For each text the place of another one: a random cycle, so that no text meets its own release."""
    order = public_generator(seed).permutation(count)
    partner = np.empty(count, dtype=np.int64)
    partner[order] = np.roll(order, 1)
    return partner


def sample(count: int, limit: int | None, seed: int = 0) -> NDArray[np.int64]:
    """A fixed public sample of places, in order."""
    if limit is None or count <= limit:
        return np.arange(count)
    return np.sort(public_generator(seed).permutation(count)[:limit])


def of_plugin(name: str, measure: PairMeasure, originals: Sequence[str], releases: Sequence[str]) -> Measure:
    """A measure of a plug-in, with the floor and the ceiling that all measures have: the release of another text, and
    the original itself."""
    check_pairs(originals, releases)

    def values(others: Sequence[str]) -> Floats:
        result = np.asarray(measure(originals, others), dtype=np.float64)
        if result.shape != (len(originals),):
            raise BadInputError(
                "measure-shape",
                "the measure '{name}' must return one number for each of {texts:,} texts, not {shape}",
                name=name,
                texts=len(originals),
                shape=result.shape,
            )
        return result

    per_text = values(releases)
    floor = float(values([releases[i] for i in strangers(len(releases))]).mean())
    note = "a measure of a plug-in"
    ceiling = float(values(originals).mean())
    return Measure(name, mean_interval(per_text), floor, ceiling, len(originals), note, per_text=per_text)
