"""Utility against privacy: curves with floors and ceilings, scores for the balance, the Pareto front, and which
differences are real.

    floor-normalized   n(s) = (s - floor) / (ceiling - floor)
    weighted           w n(U) + (1 - w) (1 - n(A)),   U utility and A the attacker's score, w how much utility weighs
    plain trade-off    (U - U_0) + (A_0 - A), changes against no protection (Riecker 2023, section 5)

A good plain trade-off can be a guesser: the change of privacy is largest where everything has collapsed. The normalized
scores put a guesser at n(U) = 0, and both parts are always shown beside their sum.

**One axis, one meaning.** The epsilon of a metric guarantee counts per unit of distance, that of a plain one does not;
an epsilon per token is not one per document. `privacy_axis` puts guarantees on one axis only if they say the same kind
of thing, and refuses otherwise. `converted_axis` converts by proven steps (a token to a text of a stated length, a
metric to a plain guarantee over the largest distance, any two texts to any two of equal length) and says so on its
label.

Differences between releases are tested with the paired bootstrap over test items (Koehn, EMNLP 2004); the p-values of
several comparisons are corrected by Holm's method (1979), which holds whatever the tests have to do with each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from tacit.arrays import Integers
from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.evaluation.downstream import DownstreamResult, item_statistic
from tacit.evaluation.scores import (
    CONFIDENCE,
    Interval,
)
from tacit.evaluation.similarity import share_kept
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit
from tacit.noise.source import public_generator
from tacit.rounding import rounded_up

RESAMPLES = 2000
LEVEL = 0.05
_PLAIN = (Notion.PURE, Notion.APPROXIMATE)


@dataclass(frozen=True)
class ScaledScore:
    """A score between what needs no text and what the original text gives."""

    value: float
    floor: float
    ceiling: float

    @property
    def normalized(self) -> float:
        return share_kept(self.value, self.floor, self.ceiling)


@dataclass(frozen=True)
class Point:
    """One release: what was promised, and what was measured.

    utility   interval of the utility score
    attack    the attacker's score with its floor and its ceiling (no protection), if one was measured
    tokens    the number of tokens of the longest text, for converting a promise per token
    """

    name: str
    guarantee: Guarantee
    utility: Interval
    floor: float
    ceiling: float
    attack: ScaledScore | None = None
    tokens: int | None = None

    @property
    def normalized(self) -> float:
        """0 at the floor, 1 at the ceiling."""
        return share_kept(self.utility.value, self.floor, self.ceiling)

    @property
    def hidden(self) -> float:
        """1 when the attacker is at the floor, 0 when protection changes nothing."""
        return math.nan if self.attack is None else 1.0 - self.attack.normalized

    def weighted(self, weight: float = 0.5) -> float:
        """Both normalized scores in one, `weight` of it utility."""
        return weighted_score(self.normalized, self.hidden, weight)

    @property
    def plain_tradeoff(self) -> float:
        """Change of utility plus change of the attacker's error: more than 0 is called favorable in the literature."""
        if self.attack is None:
            return math.nan
        return (self.utility.value - self.ceiling) + (self.attack.ceiling - self.attack.value)


def weighted_score(utility: float, privacy: float, weight: float) -> float:
    if not 0.0 <= weight <= 1.0:
        raise BadParameterError(
            "impossible-share", "the weight of utility lies between 0 and 1, not at {weight:g}", weight=weight
        )
    return weight * utility + (1.0 - weight) * privacy


# The axis of privacy ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """Epsilons that mean the same, and what they mean. A smaller one is more private."""

    label: str
    values: tuple[float, ...]
    converted: bool = False


def privacy_axis(guarantees: Sequence[Guarantee]) -> Axis:
    """One axis for guarantees of one kind; refuses to mix kinds."""
    if not guarantees:
        raise BadParameterError("nothing-measured", "an axis needs at least one guarantee")
    first = guarantees[0]
    for other in guarantees:
        if not other.is_private:
            raise NoGuaranteeError(
                "release-promises-nothing",
                "a release of {mechanism} has no guarantee ({reason}), so it has no place on an axis of privacy: "
                "leave it out of the plot",
                mechanism=other.mechanism,
                reason=other.void,
            )
        _same_kind(first, other)
    delta = max(g.delta for g in guarantees)
    return Axis(_axis_label(first, delta), tuple(g.epsilon for g in guarantees))


def _same_kind(first: Guarantee, second: Guarantee) -> None:
    if first.notion is not second.notion and not (first.notion in _PLAIN and second.notion in _PLAIN):
        raise NoGuaranteeError(
            "guarantees-not-comparable",
            "{notion} and {other_notion} do not go on one axis: their epsilons measure different things. Convert "
            "them first where that is proven (converted_axis)",
            notion=first.notion.label,
            other_notion=second.notion.label,
        )
    for name in ("unit", "adjacency", "model", "metric", "domain", "sensitive_share", "offset"):
        mine, theirs = getattr(first, name), getattr(second, name)
        if mine != theirs:
            raise NoGuaranteeError(
                "guarantees-not-comparable",
                "guarantees with different {property} do not go on one axis ({mine} and {theirs}): convert them "
                "first where that is proven (converted_axis)",
                property=name.replace("_", " "),
                mine=_word(mine),
                theirs=_word(theirs),
            )


def _word(value: object) -> str:
    word = getattr(value, "value", None) or getattr(value, "label", None)
    return str(word if word is not None else value)


def _axis_label(g: Guarantee, delta: float) -> str:
    per = f"per {g.unit.value}"
    if g.metric is not None:
        per += f" and unit of distance ({g.metric.label})"
    if g.offset:
        per += f", plus {rounded_up(g.offset, 3)} at any distance"
    if g.notion is Notion.UTILITY_OPTIMIZED_METRIC:
        per += ", protected outputs only"
    if delta:  # a guarantee with a smaller delta also holds with a larger one
        per += f", with delta at most {rounded_up(delta, 1)}"
    return f"epsilon {per}"


def converted_axis(points: Sequence[Point]) -> Axis:
    """Plain epsilon per document for all points, by proven conversions only; refuses where there is none."""
    if not points:
        raise BadParameterError("nothing-measured", "an axis needs at least one guarantee")
    units = {p.guarantee.unit for p in points}
    steps: list[str] = []
    converted: list[Guarantee] = []
    longest = max((p.tokens or 0 for p in points if p.guarantee.unit is Unit.TOKEN), default=0)
    for point in points:
        g = point.guarantee
        if not g.is_private:
            raise NoGuaranteeError(
                "release-promises-nothing",
                "{point} has no guarantee ({reason}), and nothing to convert",
                point=point.name,
                reason=g.void,
            )
        if len(units) > 1 and g.unit is Unit.TOKEN:
            if not longest:
                raise NoGuaranteeError(
                    "unknown-number-of-units",
                    "{name} promises something about tokens, and it is not known how many a text has: its privacy "
                    "card says so",
                    name=point.name,
                )
            # One length for all, or the axis would compare lengths.
            g = g.for_document(longest)
            steps.append(f"summed over texts of {longest:,} tokens")
        if g.metric is not None:
            g = g.over_diameter()
            steps.append("over the largest distance")
        converted.append(g)
    if {g.adjacency for g in converted} == {Adjacency.ANY_TWO, Adjacency.EQUAL_LENGTH}:
        # What holds between any two texts holds between any two of equal length.
        converted = [replace(g, adjacency=Adjacency.EQUAL_LENGTH) for g in converted]
        steps.append("between texts of equal length")
    native = privacy_axis(converted)
    shown = f", converted: {', '.join(dict.fromkeys(steps))}" if steps else ""
    return Axis(native.label + shown, native.values, converted=bool(steps))


def comparable_groups(points: Sequence[Point]) -> list[tuple[Axis, list[Point]]]:
    """Points by what their guarantees say, each group with its own axis; points without a guarantee are in none."""
    groups: list[list[Point]] = []
    for point in points:
        if not point.guarantee.is_private:
            continue
        for group in groups:
            try:
                privacy_axis([*(p.guarantee for p in group), point.guarantee])
            except NoGuaranteeError:
                continue
            group.append(point)
            break
        else:
            groups.append([point])
    return [(privacy_axis([p.guarantee for p in group]), group) for group in groups]


def pareto_front(epsilons: Sequence[float], utilities: Sequence[float]) -> list[int]:
    """Places that no other point beats: no smaller epsilon with at least the utility, no larger utility with at most
    the epsilon."""
    return [
        i
        for i, (e, u) in enumerate(zip(epsilons, utilities, strict=True))
        if not any(e2 <= e and u2 >= u and (e2 < e or u2 > u) for e2, u2 in zip(epsilons, utilities, strict=True))
    ]


# Which differences are real ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArmComparison:
    """The difference of two arms on the same test items, with its interval and p-values.

    p            two-sided, paired bootstrap
    p_corrected  after Holm's correction for all comparisons made together
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    p_corrected: float = math.nan

    @property
    def significant(self) -> bool:
        return self.p_corrected <= LEVEL


def paired_bootstrap(
    first: Callable[[Integers], float],
    second: Callable[[Integers], float],
    items: int,
    *,
    names: tuple[str, str] = ("first", "second"),
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> ArmComparison:
    """Both scores on the same resampled test items; p = 2 min(share of differences <= 0, share >= 0), at most 1.

    The shares count one extra resample on each side, so that p is never 0: 2000 resamples cannot show less than 0.001.
    """
    if items < 2:
        raise BadParameterError("too-few-rows", "a comparison needs at least two test items")
    rng = public_generator(seed)
    draws = np.empty(resamples)
    for i in range(resamples):
        at = rng.integers(0, items, items)
        draws[i] = first(at) - second(at)
    everything = np.arange(items)
    below, above = (int((draws <= 0).sum()), int((draws >= 0).sum()))
    p = min(1.0, 2 * (min(below, above) + 1) / (resamples + 1))
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return ArmComparison(*names, first(everything) - second(everything), float(low), float(high), p)


def holm(p_values: Sequence[float]) -> list[float]:
    """Corrected p-values: the k-th smallest of m times (m - k + 1), never smaller than the one before."""
    corrected = [math.nan] * len(p_values)
    so_far = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        so_far = max(so_far, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = so_far
    return corrected


def compare_arms(downstream: DownstreamResult, resamples: int = RESAMPLES) -> list[ArmComparison]:
    """Every release with the originals and with every other release, on the same original test items.

    Many comparisons get more resamples, so that the smallest p-value can survive the correction.
    """
    arms = (downstream.ceiling, *downstream.on_originals)
    statistics = {arm.name: item_statistic(downstream.task, arm.truth, arm.runs) for arm in arms}
    resamples = max(resamples, 100 * math.comb(len(arms), 2))
    made = [
        paired_bootstrap(
            statistics[a.name], statistics[b.name], len(a.truth), names=(a.name, b.name), resamples=resamples
        )
        for a, b in combinations(arms, 2)
    ]
    return [replace(c, p_corrected=p) for c, p in zip(made, holm([c.p for c in made]), strict=True)]


# Reporting --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tradeoff:
    """Some releases, the axes they fit on, and which of their differences are real."""

    metric: str
    points: tuple[Point, ...]
    groups: tuple[tuple[Axis, tuple[Point, ...]], ...]
    together: Axis | None
    why_apart: str
    comparisons: tuple[ArmComparison, ...] = ()


def measure_tradeoff(metric: str, points: Sequence[Point], comparisons: Sequence[ArmComparison] = ()) -> Tradeoff:
    """Groups of comparable points, and one converted axis for all of them where every conversion is proven."""
    groups = tuple((axis, tuple(group)) for axis, group in comparable_groups(points))
    together, why = None, ""
    if len(groups) > 1:
        try:
            together = converted_axis([p for p in points if p.guarantee.is_private])
        except NoGuaranteeError as error:
            why = str(error)
    return Tradeoff(metric, tuple(points), groups, together, why, tuple(comparisons))


def promise(g: Guarantee) -> str:
    """A guarantee in one line of a table."""
    if not g.is_private:
        return "no guarantee"
    delta = f", delta {rounded_up(g.delta, 2)}" if g.delta else ""
    return f"{g.notion.value}, {_axis_label(g, 0.0)} = {rounded_up(g.epsilon, 4)}{delta}"


def points_of(
    downstream: DownstreamResult, guarantees: Mapping[str, Guarantee], tokens: Mapping[str, int | None] | None = None
) -> list[Point]:
    """The releases of a downstream task that have a privacy card."""
    return [
        Point(arm.name, guarantees[arm.name], arm.over_items, downstream.floor.value, downstream.ceiling.value,
              tokens=(tokens or {}).get(arm.name))
        for arm in downstream.on_originals
        if arm.name in guarantees
    ]  # fmt: skip
