"""Exact calibration of choices within public sets: each set gets the largest exponent that keeps epsilon in it.

For x of a set, y is drawn with probability exp(-t u(x, y)) / Z_t(x), u in [0, 1]. Papers take t = epsilon / 2, because
weight and normalizer may each change by exp(t). What a set really loses is the largest ratio within a column of its
law,

    loss(t)  =  max over y of [ max over x of ln P(y | x)  -  min over x of ln P(y | x) ],

and it can be computed, set by set. The factor t is searched between epsilon / 2 and epsilon; how does not matter,
because the loss is computed once more at the end, and a set where it exceeds epsilon keeps t = epsilon / 2.

Proof obligation. The loss is computed in double precision: exponents up to epsilon (relative error below 2^-50), sums
of at most 2,000 terms, logarithms; 2^-40 (1 + t) bounds its error, and is added. Rounding to integers is the slack on
the card, as for the textbook's factor. Filling (-1) has no weight and counts nowhere.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.noise.choice import exponent_cap, rounding_slack

STEPS = 40
BLOCK_CELLS = 2_000_000


def exact_factors(scores: Callable[[slice], Floats], members: NDArray[np.bool_], epsilon: float) -> Floats:
    """The factor t of each set, for the scores u of some sets, shape (sets, K, K), and who is in a set, shape
    (sets, K)."""
    factors = np.empty(len(members))
    step = max(1, BLOCK_CELLS // members.shape[1] ** 2)
    for start in range(0, len(members), step):
        block = slice(start, start + step)
        factors[block] = _searched(scores(block), members[block], epsilon)
    return factors


def _searched(scores: Floats, members: NDArray[np.bool_], epsilon: float) -> Floats:
    # What rounding to integers can add is left free where epsilon is large enough, so that the loss stays below it.
    aim = max(epsilon - rounding_slack(scores.shape[1]), epsilon * (1.0 - 2.0**-14))
    low, high = np.full(len(scores), epsilon / 2.0), np.full(len(scores), float(epsilon))
    done = losses(scores, members, high) <= aim
    low[done] = high[done]
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        kept = losses(scores, members, middle) <= aim
        low, high = np.where(kept, middle, low), np.where(kept, high, middle)
    return np.where(losses(scores, members, low) <= epsilon, low, epsilon / 2.0)


def losses(scores: Floats, members: NDArray[np.bool_], factors: Floats) -> Floats:
    """A bound on the loss of each set at its factor: computed, and the error of computing it added."""
    exponents = np.minimum(factors[:, None, None] * scores, exponent_cap(scores.shape[2]))
    weights = np.exp(-exponents)
    weights[~np.broadcast_to(members[:, None, :], weights.shape)] = 0.0
    logs = -exponents - np.log(weights.sum(axis=2, keepdims=True))
    both = members[:, :, None] & members[:, None, :]
    largest = np.where(both, logs, -np.inf).max(axis=1)
    smallest = np.where(both, logs, np.inf).min(axis=1)
    loss = np.where(members, largest - smallest, 0.0).max(axis=1)
    result: Floats = loss + 2.0**-40 * (1.0 + factors)
    return result
