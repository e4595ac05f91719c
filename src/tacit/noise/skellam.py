"""Skellam noise: whole numbers whose sum over many clients has the same law as one draw (Agarwal, Kairouz & Liu, "The
Skellam mechanism for differentially private federated learning", NeurIPS 2021).

A Skellam variable of variance mu is Poisson(mu / 2) - Poisson(mu / 2), and sums of independent ones are Skellam
variables of the sum of their variances: noise that K clients add in shares of mu / K is noise of variance mu.

Renyi divergence of order a >= 2 of such noise on a vector of whole numbers that moves by at most D2 in Euclidean length
and D1 in absolute values (Agarwal et al. 2021)

    R(a) <= a D2^2 / (2 mu) + min( ((2 a - 1) D2^2 + 6 D1) / (4 mu^2),  3 D1 / (2 mu) ).

For whole numbers D1 <= D2^2, so the second part is at most (2 a + 5) D2^2 / (4 mu^2). `tests/noise/test_skellam.py`
compares the bound with the exact divergence in one dimension.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Integers
from tacit.errors import BadParameterError
from tacit.noise.parameters import positive
from tacit.noise.source import Source

LARGEST_VARIANCE = 2.0**60
"""A Poisson number of half of it fits into 64 bits, with room for a sum."""


def skellam(variance: float, size: int, source: Source) -> Integers:
    """Independent Skellam variables of this variance. The Poisson numbers are drawn by a rejection method whose
    comparisons are made in double precision."""
    if positive(variance, "the variance") > LARGEST_VARIANCE:
        raise BadParameterError(
            "impossible-scale", "Skellam noise has a variance below 2**60, not {variance:g}", variance=variance
        )
    generator = source.generator
    first, second = (np.asarray(generator.poisson(variance / 2.0, size), dtype=np.int64) for _ in range(2))
    return first - second


def skellam_divergence(order: float, variance: float, l2: float, l1: float | None = None) -> float:
    """A bound on the Renyi divergence of this order, for vectors of whole numbers; see the module."""
    if order < 2:
        raise BadParameterError(
            "impossible-order", "the bound holds for orders of 2 and more, not {order}", order=order
        )
    moved = l2 * l2 if l1 is None else l1
    more = min(((2 * order - 1) * l2**2 + 6 * moved) / (4 * variance**2), 3 * moved / (2 * variance))
    return order * l2**2 / (2 * variance) + more
