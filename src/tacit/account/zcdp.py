"""Zero-concentrated differential privacy: rho adds up over releases and becomes (epsilon, delta) at the end.

A mechanism has rho if the Renyi divergence of every order a > 1 between its outputs on neighboring data is at most
a rho, in both directions (Bun & Steinke, TCC 2016). Releases about the same records add their rhos, also where each is
chosen after seeing those before it (lemma 2.3 there).

    a Gaussian of deviation s on a number or vector that a neighbor moves by D:         D^2 / (2 s^2)
    anything with pure epsilon:                                                         min(epsilon^2 / 2, epsilon)
    a choice of bounded range e:                                                        e^2 / 8

A choice has **bounded range** e if  ln(p(y) / p'(y)) - ln(p(z) / p'(z)) <= e  for all outcomes y, z and neighbors p, p'
(Durfee & Rogers, NeurIPS 2019). An exponential mechanism whose log-weights all move between -a and +a has e = 2 a, the
same number as its pure epsilon; where they only move one way (a monotone score), the range is a. The loss then lies in
an interval of length e, and Hoeffding's lemma gives e^2 / 8, a quarter of the general bound (Cesar & Rogers, ALT 2021).
Laplace noise, randomized answers over few outcomes or a mixture are no such choices: they take epsilon^2 / 2.

From rho to (epsilon, delta), for every order a > 1 (Canonne, Kamath & Steinke 2020, proposition 12):

    epsilon = a rho + ln((a - 1) / a) - (ln delta + ln a) / (a - 1)

Every order gives a true bound, so the search for the best one need not be exact. Upper bounds are rounded up, and the
rho that an epsilon allows is rounded down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from tacit.account.renyi import epsilon_of_order
from tacit.errors import BadParameterError
from tacit.noise.parameters import positive, proper_delta

ROUNDING: Final = 1e-12
"""More than the relative rounding of the few operations of a bound: each bound is moved by it to the safe side."""
SEARCH_WIDTH: Final = 12.0
"""The search for the order covers a factor e^12 on both sides of the textbook order."""
GOLDEN: Final = (math.sqrt(5.0) - 1.0) / 2.0


def gaussian_rho(noise_multiplier: float) -> float:
    """The rho of Gaussian noise whose deviation is `noise_multiplier` times what a neighbor can move."""
    return _up(0.5 / positive(noise_multiplier, "the noise multiplier") ** 2)


def pure_rho(epsilon: float) -> float:
    """The rho of anything with this pure epsilon: every divergence is at most epsilon, so epsilon is enough as well."""
    return _up(min(positive(epsilon, "epsilon") ** 2 / 2.0, epsilon))


def choice_rho(width: float) -> float:
    """The rho of a choice of bounded range `width` (the epsilon of an exponential mechanism)."""
    return _up(positive(width, "the range") ** 2 / 8.0)


def composed_rho(rhos: Iterable[float]) -> float:
    """The rho of several releases about the same records."""
    return _up(math.fsum(check_rho(rho) for rho in rhos))


def repeated_rho(rho: float, count: int) -> float:
    """The rho of `count` releases of this rho each."""
    if count < 0:
        raise BadParameterError("impossible-count", "a number of releases is not negative: {count}", count=count)
    return _up(check_rho(rho) * count)


def epsilon_of_rho(rho: float, delta: float) -> float:
    """The smallest epsilon at this delta that the bound gives, never below it; 0 where rho is 0."""
    proper_delta(delta)
    if check_rho(rho) == 0:
        return 0.0

    def bound(order: float) -> float:
        size = order * rho + abs(math.log1p(-1 / order)) + (math.log(order) - math.log(delta)) / (order - 1)
        return epsilon_of_order(order * rho, order, delta) + ROUNDING * size

    return max(0.0, _smallest(bound, math.sqrt(-math.log(delta) / rho)))


def delta_of_rho(rho: float, epsilon: float) -> float:
    """The smallest delta at this epsilon that the bound gives, never below it and at most 1; 0 where rho is 0."""
    positive(epsilon, "epsilon")
    if check_rho(rho) == 0:
        return 0.0

    def log_bound(order: float) -> float:
        terms = ((order - 1) * order * rho, -(order - 1) * epsilon, order * math.log1p(-1 / order))
        return math.fsum(terms) - math.log(order - 1) + ROUNDING * (sum(map(abs, terms)) + abs(math.log(order - 1)))

    # The exponent (a - 1)(a rho - epsilon) is smallest at a - 1 = (epsilon - rho) / (2 rho).
    textbook = max((epsilon - rho) / (2 * rho), 1e-3)
    return min(1.0, _up(math.exp(min(0.0, _smallest(log_bound, textbook)))))


def rho_of_epsilon(epsilon: float, delta: float) -> float:
    """The largest rho, rounded down, whose epsilon at this delta is not above `epsilon`."""
    positive(epsilon, "epsilon")
    proper_delta(delta)
    # A rho of epsilon or more never fits: the bound is at least a rho + ln(1 - 1/a) + ... >= rho for delta below 1/2,
    # and doubling finds an end that does not fit otherwise.
    low, high = 0.0, epsilon
    while epsilon_of_rho(high, delta) <= epsilon:
        low, high = high, 2 * high
    while high - low > ROUNDING * high:
        middle = (low + high) / 2
        if epsilon_of_rho(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def check_rho(rho: float) -> float:
    """A finite rho that is not negative."""
    number = float(rho)
    if not (number >= 0 and math.isfinite(number)):
        raise BadParameterError("impossible-rho", "rho must be a finite number, zero or more, not {rho}", rho=rho)
    return number


def _smallest(bound: Callable[[float], float], textbook: float) -> float:
    """The least value of the bound that a golden-section search over ln(order - 1) meets."""
    center = math.log(textbook)
    low, high = center - SEARCH_WIDTH, center + SEARCH_WIDTH

    def at(place: float) -> float:
        return bound(1.0 + max(math.exp(min(place, 30.0)), 1e-9))

    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = at(left), at(right)
    best = min(at(center), at_left, at_right)
    for _ in range(80):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = at(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = at(right)
        best = min(best, at_left, at_right)
    return best


def _up(value: float) -> float:
    return value * (1 + ROUNDING)
