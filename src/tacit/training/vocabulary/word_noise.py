"""Noise on the counts of words, and the threshold below which a word is not shown.

Why the threshold. Noise cannot hide *which* words have a count: a word that one unit alone holds is in the histogram or
not. It must come out with a small probability only (Korolova et al., "Releasing search queries and clicks privately",
WWW 2009). Let neighbors differ by one unit that holds k words of weight w, u of which no other unit holds, and let
p = Phi((tau - w) / sigma)^u be the probability that none of these u passes. Whether one passes is independent of the
noise of the other words, on which the counts differ by s = w sqrt(k - u) in l2 norm. With delta_G(e, s) the delta of
the Gaussian mechanism at epsilon e, the largest possible delta is

    with against without the unit    (1 - p) + p delta_G(epsilon - ln p, s)
    without against with             delta_G(epsilon + ln p, s)

(Wilkins, Kifer, Zhang & Karrer, "Exact privacy analysis of the Gaussian sparse histogram mechanism", JPC 2024); cutting
off the other words at tau is post-processing. `thresholded_delta` is the maximum over k and u; `calibrate` finds sigma
and tau that keep it at or below delta. Without a threshold p = 0 and delta = 1: nothing is promised.

For Laplace noise of scale L / epsilon the other words stay within epsilon (L - u) / L, so delta = 1 - p alone, as long
as -ln p <= epsilon u / L, which is part of the calibration.

When a *public* word list is given, all of its words get a noisy count, those that nobody used included. Then there is
nothing to hide but the counts: no threshold, and with Laplace noise no delta.

Replacing a unit instead of removing it: both units can differ in all their words, so s^2 and the l1 distance double,
and p' of the other unit enters as delta_G(epsilon - ln p + ln p', s).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.errors import BadParameterError, check_choice
from tacit.guarantee import Adjacency, check_epsilon
from tacit.noise.gaussian import add_gaussian, analytic_gaussian_sigma
from tacit.noise.grid import step_below
from tacit.noise.laplace import discrete_laplace
from tacit.noise.parameters import proper_delta
from tacit.noise.source import Source
from tacit.training.vocabulary.contribution import Contribution

NOISES = ("gaussian", "laplace")
_STEPS_PER_COUNT = 1 << 20
"""Laplace counts lie on a grid of this many steps to one count, whatever the data: counts are on it exactly."""
_WIDER = (1.0, 1.003, 1.01, 1.03)
"""Noise a little above the least possible leaves more of delta to the threshold: the best of these is taken."""


@dataclass(frozen=True)
class WordNoise:
    """kind; scale: sigma, or the scale of the Laplace noise, in counts; threshold: the smallest noisy count that is
    released, None for a public word list."""

    kind: str
    scale: float
    threshold: float | None
    epsilon: float
    delta: float

    def released(self, words: Sequence[str], counts: Floats, source: Source) -> tuple[list[str], Floats]:
        """The only private step. `words` and `counts` belong together; what comes back may be shown."""
        noisy = self._noisy(counts, source)
        kept = np.arange(len(words)) if self.threshold is None else np.flatnonzero(noisy >= self.threshold)
        # Sorted by what is released: the order of the input is not.
        order = sorted(kept.tolist(), key=lambda i: (-noisy[i], words[i]))
        return [words[i] for i in order], noisy[order]

    def _noisy(self, counts: Floats, source: Source) -> Floats:
        if self.kind == "gaussian":
            return add_gaussian(counts, sigma=self.scale, source=source)
        whole = np.rint(counts * _STEPS_PER_COUNT).astype(np.int64)
        noise = discrete_laplace(round(self.scale * _STEPS_PER_COUNT), len(counts), source)
        return np.asarray((whole + noise) / _STEPS_PER_COUNT)


def calibrate(
    *,
    epsilon: float,
    delta: float,
    contribution: Contribution,
    kind: str = "gaussian",
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    public_words: bool = False,
    levels: int = 1,
) -> WordNoise:
    """Noise and threshold for (epsilon, delta). For a public word list there is no threshold, and Laplace noise needs
    no delta (0 is returned).

    levels   this release is the first of so many with the same noise on as large a contribution, the later ones on
             domains that are public (`ngrams`); (epsilon, delta) is for all of them together
    """
    check_epsilon(epsilon)
    check_choice(kind, NOISES, code="unknown-noise", what="noise")
    if kind == "laplace":
        return _laplace(epsilon, delta, contribution, adjacency, public_words)
    proper_delta(delta)
    least = analytic_gaussian_sigma(epsilon, delta, contribution.l2_sensitivity(adjacency) * math.sqrt(levels))
    if public_words:
        return WordNoise("gaussian", least, None, epsilon, delta)
    best: tuple[float, float] | None = None
    for factor in _WIDER:
        sigma = least * factor
        threshold = _threshold(epsilon, delta, sigma, contribution, adjacency, levels)
        if threshold is not None and (best is None or threshold < best[0]):
            best = threshold, sigma
    if best is None:
        raise BadParameterError(
            "no-threshold",
            "no threshold gives delta {delta:g} at epsilon {epsilon:g}: raise epsilon, or take a smaller delta",
            delta=delta,
            epsilon=epsilon,
        )
    threshold, sigma = best
    # Noisy counts are rounded to a grid: one step more, and no count below the threshold is rounded up to it.
    return WordNoise("gaussian", sigma, threshold + step_below(sigma * 2.0**-20), epsilon, delta)


def thresholded_delta(
    epsilon: float,
    sigma: float,
    threshold: float,
    contribution: Contribution,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    levels: int = 1,
) -> float:
    """The largest delta over all neighbors, for normal noise and an unknown vocabulary: the formula above. Each of the
    later `levels` adds the square of its sensitivity to s^2 (`ngrams` has the proof)."""
    from scipy.special import log_ndtr

    held = np.arange(1, contribution.words + 1) if contribution.weighting == "shared" else [contribution.words]
    pairs = [(k, u) for k in held for u in range(k + 1)]
    k, u = (np.array(side, dtype=np.float64) for side in zip(*pairs, strict=True))
    weight = np.ones_like(k) if contribution.weighting == "one" else k**-0.5
    # -0 * infinity cannot occur: log_ndtr is finite for finite arguments.
    log_p = u * log_ndtr((threshold - weight) / sigma)
    shared = weight**2 * (k - u) + (levels - 1) * contribution.l2_sensitivity(adjacency) ** 2
    if adjacency is Adjacency.ADD_REMOVE:
        without = _gaussian_delta(epsilon + log_p, np.sqrt(shared), sigma)
        other = 0.0
    else:
        # The unit that takes its place: its words that nobody else holds, at their worst, and all its other words.
        other = float(log_p.min())
        shared = shared + contribution.l2_sensitivity(Adjacency.ADD_REMOVE) ** 2
        without = np.zeros_like(log_p)
    with_unit = -np.expm1(log_p) + np.exp(log_p) * _gaussian_delta(epsilon - log_p + other, np.sqrt(shared), sigma)
    return float(max(with_unit.max(), without.max()))


def _gaussian_delta(epsilon: Floats, distance: Floats, sigma: float) -> Floats:
    """Balle & Wang 2018, Theorem 8, for arrays; epsilon may be a little below 0."""
    from scipy.special import log_ndtr, ndtr

    moved = distance > 0
    s = np.where(moved, distance, 1.0)
    a, b = s / (2 * sigma), epsilon * sigma / s
    value = ndtr(a - b) - np.exp(epsilon + log_ndtr(-a - b))
    # Two terms of about the size of the result cancel: what double precision can have lost is added.
    value = value + 1e-14 * ndtr(a - b)
    return np.clip(np.where(moved, value, -np.expm1(np.minimum(epsilon, 0.0))), 0.0, 1.0)


def _threshold(
    epsilon: float, delta: float, sigma: float, contribution: Contribution, adjacency: Adjacency, levels: int
) -> float | None:
    """The smallest threshold that keeps delta, from above; None if none does."""
    from scipy.optimize import brentq

    def excess(threshold: float) -> float:
        # A delta of 0 has no logarithm; the smallest double stands for it.
        value = thresholded_delta(epsilon, sigma, threshold, contribution, adjacency, levels)
        return math.log(max(value, 5e-324) / delta)

    low, high = 0.0, 1.0 + 40.0 * sigma
    if excess(high) > 0:
        return None
    solution = float(brentq(excess, low, high, xtol=1e-6 * sigma, rtol=1e-12))
    while excess(solution) > 0:
        solution += 1e-6 * sigma
    return solution


def _laplace(
    epsilon: float, delta: float, contribution: Contribution, adjacency: Adjacency, public_words: bool
) -> WordNoise:
    """Scale in whole steps, so that epsilon is exact; the tail of the discrete Laplace is known exactly too:
    Pr[X >= m] = a^m / (1 + a) for m >= 1, a = exp(-1 / scale)."""
    sensitivity = contribution.l1_sensitivity(adjacency)
    scale = math.ceil(sensitivity * _STEPS_PER_COUNT / epsilon)
    if public_words:
        return WordNoise("laplace", scale / _STEPS_PER_COUNT, None, epsilon, 0.0)
    proper_delta(delta)
    passes = -math.expm1(math.log1p(-delta) / contribution.words)
    passes = min(passes, -math.expm1(-epsilon / sensitivity))
    steps = max(1, math.ceil(-scale * (math.log(passes) + math.log1p(math.exp(-1.0 / scale)))))
    return WordNoise("laplace", scale / _STEPS_PER_COUNT, 1.0 + (steps + 1) / _STEPS_PER_COUNT, epsilon, delta)
