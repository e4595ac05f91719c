"""The staircase: a choice among k cells in which exactly s near ones have the larger of two weights.

    Pr[c] = t / Z  if c is near,  else  w / Z,        Z = s t + (k - s) w,    t <= w e^epsilon

Z is the same for every set of s near cells, so the ratio of two such laws is at most t / w. Both weights are whole
numbers and a draw compares one uniform integer below Z with them, so the law is exact and no cell ever impossible. What
it is good for: `codebook` (cells) and `codebook_joint` (pairs of a label and a cell).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from tacit.arrays import Floats, Floats32, Integers
from tacit.errors import BadParameterError
from tacit.noise.parameters import positive
from tacit.noise.source import Source

SUM_BITS: Final = 62


def staircase_shares(epsilon: float, k: int, s: int = 1) -> tuple[int, int]:
    """(t, w): how many integers each near cell and each other cell own; t / w <= e**epsilon, and their total
    s t + (k - s) w stays below 2**62."""
    positive(epsilon, "epsilon")
    if not 2 <= k <= 1 << 30:
        raise BadParameterError(
            "impossible-codebook-size", "a codebook has between 2 and 2**30 cells, not {cells}", cells=k
        )
    if not 1 <= s < k:
        raise BadParameterError(
            "impossible-number-of-near-cells",
            "s must lie between 1 and {most}, not {near}: the other cells hide the near ones",
            most=k - 1,
            near=s,
        )
    total = 1 << SUM_BITS
    largest = (total - k) // s
    ratio = math.exp(min(epsilon, 60.0))
    far = max(1, min(math.floor(total * (1 - 2.0**-40) / (s * ratio + (k - s))), total // k))
    # The factor covers the rounding errors of the exponential and of the product.
    near = min(math.floor(far * ratio * (1 - 2.0**-48)), largest)
    return max(far, near), far


def staircase_law(near: Any, k: int, epsilon: float) -> Floats:
    """The exact probabilities of all k cells when these are the near ones, rounded to float64."""
    cells = np.asarray(near, dtype=np.int64)
    t, w = staircase_shares(epsilon, k, len(cells))
    total = len(cells) * t + (k - len(cells)) * w
    law = np.full(k, w / total)
    law[cells] = t / total
    return law


def nearest_cells(similarities: Floats32, s: int) -> Integers:
    """All cells of each row, the s with the largest similarity in the first s places (in no special order)."""
    order = np.argpartition(-similarities, [s - 1, s], axis=1)
    return np.asarray(order, dtype=np.int64)


def draw_cells(order: Integers, s: int, epsilon: float, source: Source) -> Integers:
    """One cell for each row of `order` (see `nearest_cells`), by the staircase."""
    rows, k = order.shape
    t, w = staircase_shares(epsilon, k, s)
    ticket = source.generator.integers(0, s * t + (k - s) * w, size=rows)
    place = np.where(ticket < s * t, ticket // t, s + (ticket - s * t) // w)
    return np.asarray(order[np.arange(rows), place])
