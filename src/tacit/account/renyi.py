"""Renyi differential privacy of Poisson-sampled Gaussian steps: a bound that holds at every delta.

R(a) is the Renyi divergence of integer order a of one sampled step, for adding or removing one record (Mironov, Talwar
& Zhang 2019; their theorem 5 says that the other direction is no larger). T steps have T R(a), and (Canonne, Kamath &
Steinke 2020, proposition 12)

    epsilon = T R(a) + ln((a - 1) / a) - (ln delta + ln a) / (a - 1)        for every order a > 1.

Everything is computed as logarithms of sums of positive numbers, so no digit is lost however small delta is.

Replacing a record. Let P and Q be the outputs with x and with x' in its place, and N those without either. The weak
triangle inequality (Mironov 2017, proposition 11, with p = q = 2) gives for every a > 1

    D_a(P || Q) <= (a - 1/2) / (a - 1) * D_2a(P || N) + D_{2a-1}(N || Q) <= (a - 1/2) / (a - 1) * R(2a) + R(2a - 1)

and T steps have T times that: the outputs of each step are compared given those before it. For orders a = 1.5, 2, 2.5,
... both orders on the right are integers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency

ORDERS = (*range(2, 65), *range(68, 129, 4), *range(144, 257, 16), 320, 384, 512, 768, 1024, 2048, 4096)
"""Integer orders: small ones for large epsilon, large ones for small epsilon and delta."""


def renyi_divergence(sampling_rate: float, noise_multiplier: float, order: int) -> float:
    """R(order) of one step, for adding or removing one record."""
    if sampling_rate == 1:
        return order / (2 * noise_multiplier**2)
    from scipy.special import gammaln, logsumexp  # slow to import, and every worker imports this module

    k = np.arange(order + 1)
    terms = (
        gammaln(order + 1)
        - gammaln(k + 1)
        - gammaln(order - k + 1)
        + (order - k) * math.log1p(-sampling_rate)
        + k * math.log(sampling_rate)
        + (k * k - k) / (2 * noise_multiplier**2)
    )
    return float(logsumexp(terms)) / (order - 1)


def epsilon_of_order(spent: float, order: float, delta: float) -> float:
    """The epsilon at this delta of what has a Renyi divergence of `spent` at this order."""
    return spent + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def renyi_epsilon(
    sampling_rate: float, noise_multiplier: float, steps: int, delta: float, adjacency: Adjacency
) -> float:
    """An epsilon of so many steps at this delta, for a change of one record: never below the truth."""
    return renyi_epsilon_of_phases([(sampling_rate, steps)], noise_multiplier, delta, adjacency)


def renyi_epsilon_of_phases(
    phases: Sequence[tuple[float, int]], noise_multiplier: float, delta: float, adjacency: Adjacency
) -> float:
    """The same for phases of steps (sampling rate, number of steps): divergences of one order add up."""
    curve = renyi_curve(phases, noise_multiplier, adjacency)
    return max(0.0, min(epsilon_of_order(spent, order, delta) for order, spent in curve.items()))


def renyi_curve(
    phases: Sequence[tuple[float, int]], noise_multiplier: float, adjacency: Adjacency
) -> dict[float, float]:
    """Renyi divergences of all steps by order, for a change of one record: never below the truth."""
    if adjacency not in (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE):
        raise BadParameterError(
            "adjacency-not-accounted",
            "sampled steps are accounted for adding or removing one record, or for replacing one",
        )
    replaced = adjacency is Adjacency.REPLACE_ONE

    def spent(order: int) -> float:
        """The divergence of all steps, for adding or removing one record."""
        return sum(steps * renyi_divergence(rate, noise_multiplier, order) for rate, steps in phases)

    if not replaced:
        return {float(order): spent(order) for order in ORDERS}
    if all(rate == 1 for rate, _ in phases):  # one Gaussian that is moved by 2 times the bound
        return {float(order): 4.0 * spent(order) for order in ORDERS}
    halves = ((order + 1) / 2.0 for order in ORDERS)  # 1.5, 2, 2.5, ...
    return {half: (half - 0.5) / (half - 1.0) * spent(round(2 * half)) + spent(round(2 * half) - 1) for half in halves}
