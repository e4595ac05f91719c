"""Lower bounds on a privacy loss from releases with a target and releases without it.

An event E that has probability p with the target and f without it shows

    any release          epsilon >= ln((p - delta) / f)
    normal noise         mu >= Phi^-1(p) - Phi^-1(f)

The second is for the promise that a card of normal noise makes: of scale sigma on sums that a record moves by at most
1, so that no test has more power than that of two normal variables mu = 1 / sigma apart (Dong, Roth & Su 2022; Nasr et
al. 2023 audit with it). It needs far fewer releases, and it refutes the card if mu comes out above 1 / sigma.

A score that is linear in the noise is normal itself, so two samples of it bound mu with Student's law as well: the
difference of their means, in units of their own deviation, has a noncentral t law whose center grows with mu. That
needs fewer releases still, and holds for one score that was fixed beforehand (`shift_by_means`).

A part of the releases chooses score and threshold, the rest counts how often the event happens. So the bounds of
Clopper and Pearson hold for it as for an event that was fixed beforehand, each wrong with the stated probability.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import nct, norm, rankdata

from tacit.arrays import Floats
from tacit.auditing.binomial import at_least, at_most

THRESHOLDS = 99
CHOOSING = 0.3
"""The share of the releases that choose."""


@dataclass(frozen=True)
class Event:
    """A score at or above a threshold, or below it."""

    score: str
    threshold: float
    above: bool

    def hits(self, scores: Mapping[str, Floats]) -> int:
        """In how many releases it happens."""
        high = int((scores[self.score] >= self.threshold).sum())
        return high if self.above else len(scores[self.score]) - high


@dataclass(frozen=True)
class Separation:
    """How well releases with a target can be told from releases without it.

    score      the score of the best guess
    accuracy   of that guess, on releases that did not choose it; 1/2 is guessing
    area       under its curve of right and false alarms (AUC); 1/2 is guessing
    epsilon    at least this, for any release
    shift      at least so many standard deviations (mu), for normal noise
    releases   counted on either side
    """

    score: str
    accuracy: float
    area: float
    epsilon: float
    shift: float
    releases: int
    alarms: float
    false_alarms: float


def separation(
    with_target: Mapping[str, Floats],
    without: Mapping[str, Floats],
    delta: float,
    doubt: float,
    normal: str | None = None,
) -> Separation:
    """The bounds that scores of releases give; all are right together but with probability `doubt`.

    normal   the score that is linear in the noise, if there is one
    """
    first_in, rest_in = _parted(with_target)
    first_out, rest_out = _parted(without)
    events = [event for name in with_target for event in _events(name, first_in[name], first_out[name])]
    n_in, n_out = _size(first_in), _size(first_out)
    hits_in = np.array([event.hits(first_in) for event in events], dtype=np.float64)
    hits_out = np.array([event.hits(first_out) for event in events], dtype=np.float64)
    share = doubt / (2 if normal is None else 3)
    by_ratio = events[int(_ratios(hits_in, n_in, hits_out, n_out, delta, share).argmax())]
    by_shift = events[int(_shifts(hits_in, n_in, hits_out, n_out, share).argmax())]
    guess = events[int((hits_in / n_in - hits_out / n_out).argmax())]
    rest = _size(rest_in), _size(rest_out)
    counted = {event: (event.hits(rest_in), event.hits(rest_out)) for event in (by_ratio, by_shift, guess)}
    alarms, false_alarms = counted[guess][0] / rest[0], counted[guess][1] / rest[1]
    return Separation(
        score=guess.score,
        accuracy=(alarms + 1 - false_alarms) / 2,
        area=_area(rest_in[guess.score], rest_out[guess.score], above=guess.above),
        epsilon=max(0.0, float(_ratios(*_pairs(counted[by_ratio], rest), delta, share))),
        shift=max(
            0.0,
            float(_shifts(*_pairs(counted[by_shift], rest), share)),
            0.0 if normal is None else shift_by_means(with_target[normal], without[normal], share),
        ),
        releases=min(rest),
        alarms=alarms,
        false_alarms=false_alarms,
    )


def shift_by_means(with_target: Floats, without: Floats, doubt: float) -> float:
    """Two normal samples are at least so many of their deviations apart, wrong with probability `doubt` at most; 0 if
    nothing is shown.

    With n and m values, T = (difference of the means) / (s sqrt(1/n + 1/m)) has the noncentral t law with n + m - 2
    degrees of freedom and center mu / sqrt(1/n + 1/m). P(T >= t) grows with mu, so the mu for which it is `doubt` is
    the bound (Lehmann & Romano 2005, 6.4).
    """
    n, m = len(with_target), len(without)
    freedom = n + m - 2
    squares = float(np.square(with_target - with_target.mean()).sum() + np.square(without - without.mean()).sum())
    width = math.sqrt(1 / n + 1 / m)
    apart = float(with_target.mean() - without.mean())
    if apart <= 0 or squares <= 0:
        return 0.0
    t = apart / (math.sqrt(squares / freedom) * width)

    def above(center: float) -> float:
        return float(nct.sf(t, freedom, center)) - doubt

    if above(0.0) >= 0:
        return 0.0
    if not above(t) > 0:  # far beyond all tables: t itself is about the center
        return max(0.0, (t - 10 * float(norm.isf(doubt))) * width)
    return float(brentq(above, 0.0, t)) * width


def most_accurate(shift: float) -> float:
    """The largest accuracy of any guess about normal noise that the target moves by so many standard deviations."""
    return float(norm.cdf(shift / 2))


def _pairs(hits: tuple[int, int], sizes: tuple[int, int]) -> tuple[Floats, int, Floats, int]:
    return np.array(hits[0], dtype=np.float64), sizes[0], np.array(hits[1], dtype=np.float64), sizes[1]


def _ratios(hits_in: Floats, n_in: int, hits_out: Floats, n_out: int, delta: float, doubt: float) -> Floats:
    """Lower bounds on epsilon from counts of events."""
    likely = at_least(hits_in, float(n_in), doubt / 2) - delta
    rare = at_most(hits_out, float(n_out), doubt / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(likely > 0, np.log(np.maximum(likely, 1e-300) / rare), -math.inf)


def _shifts(hits_in: Floats, n_in: int, hits_out: Floats, n_out: int, doubt: float) -> Floats:
    """Lower bounds on mu from counts of events."""
    likely = at_least(hits_in, float(n_in), doubt / 2)
    rare = at_most(hits_out, float(n_out), doubt / 2)
    return np.asarray(norm.ppf(likely) - norm.ppf(rare))


def _parted(scores: Mapping[str, Floats]) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """The releases that choose, and the rest."""
    first = {name: values[: int(CHOOSING * len(values))] for name, values in scores.items()}
    return first, {name: values[len(first[name]) :] for name, values in scores.items()}


def _size(scores: Mapping[str, Floats]) -> int:
    return len(next(iter(scores.values())))


def _events(name: str, with_target: Floats, without: Floats) -> list[Event]:
    """Thresholds between the values that occur, in either direction."""
    values = np.unique(np.concatenate([with_target, without]))
    middles = (values[1:] + values[:-1]) / 2 if len(values) > 1 else values
    if len(middles) > THRESHOLDS:
        middles = middles[np.linspace(0, len(middles) - 1, THRESHOLDS).astype(np.int64)]
    return [Event(name, float(middle), above) for middle in middles for above in (True, False)]


def _area(with_target: Floats, without: Floats, *, above: bool) -> float:
    """The chance that a release with the target scores higher than one without; equal scores count half."""
    ranks = rankdata(np.concatenate([with_target, without]))
    rank_sum = float(ranks[: len(with_target)].sum()) - len(with_target) * (len(with_target) + 1) / 2
    area = rank_sum / (len(with_target) * len(without))
    return area if above else 1 - area
