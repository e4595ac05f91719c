"""Released numbers live on a public power-of-two grid.

The doubles near a value are irregular, and noise drawn as a double reaches only some of them: which last
digits occur betrays the value without noise (Mironov, "On significance of the least significant bits for
differential privacy", CCS 2012). So a released number is always an integer multiple of a step that depends on
public parameters only. The step is a power of two: dividing by it is exact.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import BadParameterError

LARGEST_MULTIPLE = 1 << 61
"""Multiples are clamped here, so that int64 can still hold them with the noise added."""

SMALLEST_STEP = 2.0**-900
LARGEST_STEP = 2.0**900


def step_below(limit: float) -> float:
    """The largest power of two that does not exceed `limit`."""
    if not SMALLEST_STEP <= limit <= LARGEST_STEP:
        raise BadParameterError(
            "scale-not-on-grid",
            "a noise scale of this size ({scale:.3g}) cannot be put on an exact grid: rescale the values",
            scale=limit,
        )
    return math.ldexp(1.0, math.frexp(limit)[1] - 1)


def finite_values(values: ArrayLike) -> NDArray[np.float64]:
    """The values as doubles. What is not a number has no sensitivity, so it is refused."""
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise BadParameterError("not-finite", "a value is infinite or not a number: bound or clip the values first")
    return array


def multiples(values: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """values / step, clamped to +-2**61. Exact but for the clamp, which is 1-Lipschitz in every coordinate
    and so never enlarges a sensitivity."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(values / step, -LARGEST_MULTIPLE, LARGEST_MULTIPLE))


def on_grid(integers: NDArray[np.int64], step: float) -> NDArray[np.float64]:
    """integers * step as doubles. Beyond 2**53 this rounds, a function of the released integer alone."""
    result: NDArray[np.float64] = integers.astype(np.float64) * step
    return result
