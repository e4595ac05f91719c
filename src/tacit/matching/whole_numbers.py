"""Whole numbers of steps: vectors of exactly bounded length, in integer arithmetic.

`tacit.matching.features` proves what is needed of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Floats32, Integers, Integers32

GRID = 1 << 14
"""Steps of one unit."""
VECTOR_BITS = 14
ROWS_AT_A_TIME = 1_024
"""So few that what is computed of them on the way stays in the cache of the processor."""


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
    steps = np.trunc(within_one(values) * bound).astype(np.int64)
    return shortened(steps, bound).astype(np.int32)


def within_one(values: NDArray[np.floating]) -> Floats:
    """The numbers between -1 and 1 as doubles; 0 for what is not a number."""
    wide = np.clip(np.asarray(values, dtype=np.float64), -1.0, 1.0)
    wide[np.isnan(wide)] = 0.0
    return wide


def in_parts(steps_of: Callable[[Floats32], Integers32], vectors: Floats32) -> Integers32:
    """The steps of rows, computed some rows at a time; each row by itself has the same."""
    starts = range(0, max(len(vectors), 1), ROWS_AT_A_TIME)
    return np.concatenate([steps_of(vectors[start : start + ROWS_AT_A_TIME]) for start in starts])


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
