"""Whole numbers of steps: vectors of exactly bounded length, in integer arithmetic.

`tacit.matching.features` proves what is needed of them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Integers, Integers32

GRID = 1 << 14
"""Steps of one unit."""
VECTOR_BITS = 14


def bound_of(weight: float) -> int:
    """The largest whole number of steps that a weight allows."""
    return math.floor(weight * GRID)


def root_above(squares: Integers) -> Integers:
    """The least whole numbers whose squares are at least these (below 2**52)."""
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    roots -= roots * roots >= squares
    roots = np.maximum(roots, 0)
    while (low := roots * roots < squares).any():
        roots += low
    return roots


def bounded_steps(values: NDArray[np.floating], bound: int) -> Integers32:
    """Rows of numbers as whole steps, none longer than `bound`; proof in the module."""
    wide = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, posinf=1.0, neginf=-1.0)
    steps = np.trunc(np.clip(wide, -1.0, 1.0) * bound).astype(np.int64)
    return shortened(steps, bound).astype(np.int32)


def shortened(steps: Integers, bound: int) -> Integers:
    """Rows of whole numbers, those longer than `bound` brought below it; all in integer arithmetic.

    Exact for rows whose squared length is below 2**62.
    """
    squares = (steps * steps).sum(axis=1)
    long = np.flatnonzero(squares > bound * bound)
    if long.size:
        above = np.array([math.isqrt(int(square)) + 1 for square in squares[long]], dtype=np.int64)[:, None]
        part = steps[long]
        steps = steps.copy()
        steps[long] = np.sign(part) * (np.abs(part) * bound // above)
    return steps


def whole_vectors(vectors: NDArray[np.floating]) -> Floats:
    """Unit vectors as whole numbers of 2**-14, in doubles: products with whole numbers are added without rounding."""
    return bounded_steps(vectors, 1 << VECTOR_BITS).astype(np.float64)
