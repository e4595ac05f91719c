"""Composition of (epsilon, delta) pairs, for mechanisms that use independent noise.

These are the textbook theorems, with the conditions under which they hold; a `Guarantee` composes itself and
checks units and adjacencies, which bare numbers cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.guarantee import group_delta
from tacit.noise.parameters import positive, proper_delta

Spent = tuple[float, float]


def basic_composition(spent: Iterable[Spent]) -> Spent:
    """Releases about the same records: epsilons add up, and so do deltas (Dwork & Roth 2014, Thm. 3.16)."""
    pairs = [_pair(epsilon, delta) for epsilon, delta in spent]
    return math.fsum(e for e, _ in pairs), _below_one(math.fsum(d for _, d in pairs))


def advanced_composition(epsilon: float, delta: float, count: int, extra_delta: float) -> Spent:
    """`count` releases, each (epsilon, delta), the choice of each allowed to depend on the ones before:

        epsilon' = epsilon * sqrt(2 count ln(1 / extra_delta)) + count * epsilon * (e**epsilon - 1),
        delta'   = count * delta + extra_delta

    (Dwork, Rothblum & Vadhan, FOCS 2010; Dwork & Roth 2014, Theorem 3.20). Basic composition is better for few
    or large epsilons; then its epsilon is returned, with the same delta'.
    """
    _pair(epsilon, delta)
    proper_delta(extra_delta)
    if count < 1:
        raise BadParameterError(
            "impossible-count", "the number of releases must be at least 1, not {count}", count=count
        )
    growth = math.expm1(epsilon) if epsilon < 700 else math.inf
    advanced = epsilon * math.sqrt(2 * count * math.log(1 / extra_delta)) + count * epsilon * growth
    return min(advanced, count * epsilon), _below_one(count * delta + extra_delta)


def poisson_amplification(epsilon: float, delta: float, sampling_rate: float) -> Spent:
    """(ln(1 + q (e**epsilon - 1)), q delta) for a mechanism that is run on a secret random sample.

    Conditions: every record is taken independently with probability q (Poisson sampling; not shuffled
    batches), nobody learns which records were taken, and adjacency means adding or removing one record, for the
    mechanism and for the result (Balle, Barthe & Gaboardi, NeurIPS 2018, Theorem 8).
    """
    _pair(epsilon, delta)
    if not 0 < sampling_rate <= 1:
        raise BadParameterError(
            "impossible-sampling-rate",
            "the sampling rate must lie in (0, 1], not {sampling_rate}",
            sampling_rate=sampling_rate,
        )
    if epsilon > 700:
        return epsilon + math.log(sampling_rate + math.exp(-epsilon)), sampling_rate * delta
    return math.log1p(sampling_rate * math.expm1(epsilon)), sampling_rate * delta


def group_privacy(epsilon: float, delta: float, size: int) -> Spent:
    """`size` records of one person: (size epsilon, delta (1 + e**epsilon + ... + e**((size-1) epsilon))).

    By going through the records one at a time (Vadhan 2017, Lemma 2.2). Delta inflates exponentially; where it
    reaches 1 there is no guarantee left.
    """
    _pair(epsilon, delta)
    if size < 1:
        raise BadParameterError("empty-group", "a group has at least one record, not {size}", size=size)
    return size * epsilon, _below_one(group_delta(epsilon, delta, size))


def _pair(epsilon: float, delta: float) -> Spent:
    positive(epsilon, "epsilon")
    if not 0 <= delta < 1:
        raise BadParameterError("impossible-delta", "delta must lie in [0, 1), not {delta}", delta=delta)
    return epsilon, delta


def _below_one(delta: float) -> float:
    if delta >= 1:
        raise NoGuaranteeError(
            "delta-adds-up-to-one",
            "delta adds up to 1 or more, which promises nothing: use a smaller delta for each release, or release less",
        )
    return delta
