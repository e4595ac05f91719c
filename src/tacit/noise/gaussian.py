"""The Gaussian mechanism: (epsilon, delta)-DP for a vector of numbers.

If one change of the input moves the vector by at most D in l2 norm, noise N(0, sigma**2) on every coordinate
gives (epsilon, delta)-DP exactly if (Balle & Wang, "Improving the Gaussian mechanism for differential
privacy: analytical calibration and optimal denoising", ICML 2018, Theorem 8)

    Phi(a - b) - exp(epsilon) * Phi(-a - b)  <=  delta,      a = D / (2 sigma),   b = epsilon * sigma / D.

exp(epsilon) overflows beyond epsilon 709, and the two terms nearly cancel long before. With the scaled
complementary error function, Phi(-t) = erfcx(t / sqrt(2)) * exp(-t**2 / 2) / 2, and (a + b)**2 / 2 - epsilon
= (a - b)**2 / 2, the same number is

    exp(-(b - a)**2 / 2) / 2 * ( erfcx((b - a) / sqrt(2)) - erfcx((b + a) / sqrt(2)) ),

whose logarithm is computed here; it holds to epsilon 10,000 and beyond, and for any positive delta.

The classical rule sigma = D sqrt(2 ln(1.25 / delta)) / epsilon (Dwork & Roth 2014, Theorem A.1) is proven for
epsilon < 1 only. At epsilon 10 and delta 1e-5 it really gives delta 2.3e-5, so it is refused there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import BadParameterError
from tacit.noise.grid import LARGEST_MULTIPLE, finite_values, multiples, on_grid, step_below
from tacit.noise.normal import rounded_normal, uniform_words
from tacit.noise.parameters import positive, proper_delta
from tacit.noise.source import Source


def classical_gaussian_sigma(epsilon: float, delta: float, l2_sensitivity: float) -> float:
    """sigma = l2_sensitivity * sqrt(2 ln(1.25 / delta)) / epsilon, for epsilon below 1 only."""
    positive(epsilon, "epsilon")
    proper_delta(delta)
    positive(l2_sensitivity, "the l2 sensitivity")
    if epsilon >= 1:
        raise BadParameterError(
            "epsilon-not-proven",
            "the classical Gaussian rule is proven for epsilon below 1 only, not {epsilon}: use "
            "analytic_gaussian_sigma, which holds for every epsilon and needs less noise",
            epsilon=epsilon,
        )
    return l2_sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def gaussian_log_delta(epsilon: float, sigma: float, l2_sensitivity: float) -> float:
    """ln of the smallest delta for which noise sigma gives (epsilon, delta)-DP; epsilon may be zero."""
    positive(sigma, "sigma")
    positive(l2_sensitivity, "the l2 sensitivity")
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise BadParameterError(
            "impossible-epsilon", "epsilon must be zero or a positive number, not {epsilon}", epsilon=epsilon
        )
    a = l2_sensitivity / (2 * sigma)
    b = epsilon * sigma / l2_sensitivity
    gap = b - a
    from scipy.special import erfcx, log_ndtr

    second = float(erfcx((b + a) / math.sqrt(2)))
    if gap > -5:
        difference = float(erfcx(gap / math.sqrt(2))) - second
        # At equality in double precision the true difference is positive but below one rounding error.
        difference = max(difference, 2.0**-52 * second)
        return -(gap**2) / 2 - math.log(2) + math.log(difference)
    first = float(log_ndtr(-gap))
    return first + math.log1p(-math.exp(-(gap**2) / 2 - math.log(2) + math.log(second) - first))


def gaussian_delta(epsilon: float, sigma: float, l2_sensitivity: float) -> float:
    """The smallest delta for which noise sigma gives (epsilon, delta)-DP: exact (Theorem 8)."""
    return math.exp(gaussian_log_delta(epsilon, sigma, l2_sensitivity))


def analytic_gaussian_sigma(epsilon: float, delta: float, l2_sensitivity: float) -> float:
    """The smallest sigma for which Gaussian noise gives (epsilon, delta)-DP, rounded up; any epsilon > 0.

    The same number as Balle & Wang's Algorithm 1, found as the root of the (decreasing) log delta in log
    sigma.
    """
    positive(epsilon, "epsilon")
    target = math.log(proper_delta(delta))
    positive(l2_sensitivity, "the l2 sensitivity")

    def excess(log_ratio: float) -> float:
        return gaussian_log_delta(epsilon, math.exp(log_ratio), 1.0) - target

    ratio = math.exp(_falling_root(excess, low=-8.0, high=2.0, step=3.0))
    sigma = _round_up(ratio, lambda value: gaussian_log_delta(epsilon, value, 1.0) <= target)
    return sigma * l2_sensitivity


def gaussian_epsilon(sigma: float, delta: float, l2_sensitivity: float) -> float:
    """The smallest epsilon for which noise sigma gives (epsilon, delta)-DP, rounded up; zero if delta alone
    suffices."""
    target = math.log(proper_delta(delta))
    ratio = positive(sigma, "sigma") / positive(l2_sensitivity, "the l2 sensitivity")
    if gaussian_log_delta(0.0, ratio, 1.0) <= target:
        return 0.0

    def excess(log_epsilon: float) -> float:
        return gaussian_log_delta(math.exp(log_epsilon), ratio, 1.0) - target

    epsilon = math.exp(_falling_root(excess, low=-1.0, high=1.0, step=2.0))
    return _round_up(epsilon, lambda value: gaussian_log_delta(value, ratio, 1.0) <= target)


def repeated_gaussian_multiplier(epsilon: float, delta: float, l2_sensitivity: float, steps: int) -> float:
    """The smallest noise for each of so many steps with which all of them together, one step with 1 / sqrt(steps) of
    it, have at most this epsilon as `gaussian_epsilon` reports it. The root and its inverse round on their own, so the
    least sigma alone may be reported as an epsilon that is a unit in the last place above."""
    root = math.sqrt(steps)
    least = analytic_gaussian_sigma(epsilon, delta, l2_sensitivity) * root
    return _round_up(least, lambda value: gaussian_epsilon(value / root, delta, l2_sensitivity) <= epsilon)


def _falling_root(function: Callable[[float], float], *, low: float, high: float, step: float) -> float:
    """The root of a decreasing function, the bracket widened until it holds."""
    while function(low) < 0:
        low -= step
        if low < -300:
            raise BadParameterError(
                "double-precision-ends", "double precision ends here: give a less extreme epsilon or delta"
            )
    while function(high) > 0:
        high += step
        if high > 300:
            raise BadParameterError(
                "double-precision-ends", "double precision ends here: give a less extreme epsilon or delta"
            )
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=1e-14, rtol=1e-14, maxiter=500))


def _round_up(value: float, holds: Callable[[float], bool]) -> float:
    """The root finder may stop on the wrong side by a rounding error: step up until the claim holds."""
    nudge = 2.0**-51
    while not holds(value):
        value *= 1 + nudge
        nudge *= 2
    return value


def add_gaussian(values: ArrayLike, *, sigma: float, source: Source) -> NDArray[np.float64]:
    """Release values + N(0, sigma**2) on every coordinate, rounded to a public grid of about sigma / 10**6.

    Proof. The release is the nearest multiple of the step to value + sigma * Z, and Z is exactly normal in the real
    numbers (`tacit.noise.normal`): a function of the noisy value alone, so the guarantee of `sigma` holds unchanged,
    without slack, for arrays of any size and for inputs any number of sigmas apart (post-processing).

    A value is split into whole steps, which are added as integers, and a rest of at most half a step, which meets the
    noise; both are exact, and so is the rest where the division by the step underflows. Values beyond 2**61 steps are
    clamped, which moves no two of them apart.
    """
    step = step_below(positive(sigma, "sigma") * 2.0**-20)
    finite = finite_values(values)
    scaled = multiples(finite, step)
    whole = np.rint(scaled)
    flat_values, flat_whole = finite.ravel(), whole.ravel()

    def exact_rest(place: int) -> Fraction:
        exact = Fraction(float(flat_values[place])) / Fraction(step)
        return min(max(exact, Fraction(-LARGEST_MULTIPLE)), Fraction(LARGEST_MULTIPLE)) - int(flat_whole[place])

    noise = rounded_normal(scaled - whole, sigma / step, uniform_words(source), exact_rest)
    return on_grid(whole.astype(np.int64) + noise, step)
