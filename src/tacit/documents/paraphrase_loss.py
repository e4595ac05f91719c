"""The privacy loss of drawing one token from a model's scores, and scores that keep it within a budget."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers
from tacit.documents.language_models import (
    LogitInterval,
)
from tacit.noise.choice import (
    exponent_cap,
    integer_weights,
    rounding_slack,
)

LARGEST_SPREAD = 1e6
"""Where more makes no difference any more."""


def largest_loss(spread: float, outcomes: int) -> float:
    """The exact largest loss of *any* choice among `outcomes` whose exponents lie within `spread` of each other."""
    rest = math.log(outcomes - 1)
    return spread + _log_sum(0.0, rest + spread) - _log_sum(spread, rest)


def interval_loss(spread: float, interval: LogitInterval, outcomes: int) -> float:
    """The largest loss of base "uniform" between any two documents (see the module for the proof)."""
    cap = exponent_cap(outcomes)
    slope = spread / interval.width
    # Where (f(p) - 1) / p is largest: at the upper end, at the cap, or where the curve bends.
    best = min(cap, spread, -math.log1p(-slope) if slope < 1.0 else math.inf)
    log_s = _log_expm1(best) - interval.low - best / slope
    reached = min(cap, spread)
    log_v = math.log(outcomes)
    refined = reached + _log_sum(log_v, log_s) - _log_sum(reached, math.log(outcomes - 1))
    return min(refined, largest_loss(reached, outcomes))


def tilt_loss(down: float, up: float, outcomes: int) -> float:
    """The largest loss of base "model" between any two documents (see the module for the proof)."""
    capped = math.log1p(outcomes * math.exp(-exponent_cap(outcomes)))
    refined = 2.0 * down + up + math.log1p(-math.exp(-down) * math.expm1(-up)) + capped
    return min(refined, 2.0 * (down + up), largest_loss(exponent_cap(outcomes), outcomes))


def token_loss(epsilon: float, outcomes: int) -> float:
    """The largest loss of one token when it is given `epsilon`: the cap of the sampler bounds it, too."""
    return min(epsilon, largest_loss(exponent_cap(outcomes), outcomes))


@lru_cache(maxsize=64)
def spread_for(epsilon: float, interval: LogitInterval, outcomes: int) -> float:
    """The spread of exponents of base "uniform" that costs epsilon: never below epsilon / 2, the textbook's."""
    return _largest(lambda spread: interval_loss(spread, interval, outcomes) <= epsilon, epsilon / 2.0, LARGEST_SPREAD)


@lru_cache(maxsize=64)
def tilt_for(epsilon: float, outcomes: int) -> tuple[float, float]:
    """The logarithms by which the document may push a token down and up, at a cost of epsilon."""
    down = max(0.0, epsilon / 4.0 - 1.0)
    most = largest_loss(exponent_cap(outcomes), outcomes)
    if epsilon >= most:  # everything costs the same from here on
        return LARGEST_SPREAD, LARGEST_SPREAD
    up = _largest(lambda up: tilt_loss(down, up, outcomes) <= epsilon, max(0.0, epsilon / 2.0 - down), epsilon)
    return down, up


def uniform_weights(
    scores: Floats, interval: LogitInterval, epsilon: float, ended: NDArray[np.bool_] | None = None
) -> Integers:
    """Integer weights for log-probabilities (rows, tokens): the exponential mechanism on clipped scores.

    With `ended`, one truth value per row, there is one outcome more, "nothing": it gets the highest score in a row
    that has ended, and all tokens the lowest, otherwise the lowest. The sum of the weights keeps its bound, V + 1 +
    S, in both cases, because S >= e^a - 1.
    """
    exponents = normalized(scores, 1.0)
    np.clip(exponents, interval.low, interval.high, out=exponents)
    if ended is not None:
        exponents[ended] = interval.low
        nothing = np.where(ended, interval.high, interval.low)[:, None]
        exponents = np.concatenate([exponents, nothing], axis=1)
    np.subtract(exponents.max(axis=1, keepdims=True), exponents, out=exponents)
    exponents *= spread_for(epsilon, interval, exponents.shape[1]) / interval.width
    return integer_weights(exponents)


def tilted_weights(scores: Floats, reference: Floats, temperature: float, epsilon: float) -> Integers:
    """Integer weights for log-probabilities (rows, tokens) under the public ones in `reference`, both sharpened by a
    public temperature."""
    down, up = tilt_for(epsilon, scores.shape[1])
    exponents = normalized(reference, temperature)
    tilt = normalized(scores, temperature)
    tilt -= exponents
    np.clip(tilt, -down, up, out=tilt)
    exponents += tilt
    np.subtract(exponents.max(axis=1, keepdims=True), exponents, out=exponents)
    return integer_weights(exponents)


def step_slack(outcomes: int) -> float:
    """The amount that arithmetic can add to the loss of a token: rounded weights, and probabilities that add up to 1 +-
    1e-12."""
    return rounding_slack(outcomes) + 1e-9


def normalized(scores: Floats, temperature: float) -> Floats:
    result = scores / temperature
    result -= result.max(axis=1, keepdims=True)
    result -= np.log(np.exp(result).sum(axis=1, keepdims=True))
    return result


def _largest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """A number as large as possible for which something holds, given that it holds for `low`."""
    if holds(high):
        return high
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _log_sum(a: float, b: float) -> float:
    return float(np.logaddexp(a, b))


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x)) if x > 0.0 else -math.inf
