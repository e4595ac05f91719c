"""Exponential choice, drawn exactly with integer thresholds.

An outcome y is chosen with probability proportional to exp(-e_y), where the exponent e_y >= 0 is, for
example, epsilon * d(x, y) / 2 (metric DP) or epsilon * (max score - score_y) / (2 * sensitivity) (McSherry &
Talwar, FOCS 2007). Done with floating-point sums and a floating-point uniform, the rare outcomes get
probability zero, so that one observed outcome excludes an input for certain: the real epsilon is then
infinite (Mironov, CCS 2012). Here

1. each exponent is capped at a public constant, so that no weight falls below 2**20;
2. each weight is an integer, floor(2**K * exp(-min(e_y, cap))), and their sum stays below 2**62;
3. the draw compares an unbiased uniform integer with exact integer sums.

The law that is sampled is therefore exactly weights / sum(weights), and the audit can compute with it.

Capping costs nothing. Let every e_y be L-Lipschitz in the input, |e_y(x) - e_y(x')| <= L * d(x, x'). The map
t -> min(t, cap) is 1-Lipschitz, so min(e_y, cap) is L-Lipschitz too: the weights move by at most a factor
exp(L * d), their sum by at most exp(L * d), and every probability by at most exp(2 * L * d), just as without
the cap. The same holds when the exponents are first shifted by their minimum m(x), or any other L-Lipschitz
m: multiplying all weights of x by exp(-m) does not change the law and turns them into
exp(-min(e_y, cap + m)), and the minimum of two L-Lipschitz functions is L-Lipschitz.

Rounding costs at most `rounding_slack`, an additive term on the log-ratio of the probabilities of an outcome
under any two inputs. It belongs on the privacy card.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Integers
from tacit.errors import BadParameterError
from tacit.noise.parameters import positive
from tacit.noise.source import Source

SUM_BITS = 62
"""The sum of all weights of a row is below 2**62, so int64 sums are exact."""

SMALLEST_WEIGHT_BITS = 20
"""At the cap a weight is 2**20: flooring it changes it by less than one part in a million."""

CHUNK_CELLS = 1 << 16
"""Cells worked on at a time: half a megabyte, so that the passes over them stay in the processor's cache."""

GROUP_CELLS = 128
MANY_DRAWS = 32
"""From so many draws of one row on, the running sum of all its cells is worth while."""

NEGATIVE_TOLERANCE = 1e-9
"""How far below zero an exponent may fall by rounding: the sum of the weights still fits."""


def weight_bits(outcomes: int) -> int:
    """The largest K with outcomes * 2**K < 2**62: the weight of an outcome with exponent zero is 2**K."""
    if outcomes < 1:
        raise BadParameterError("no-outcomes", "a choice needs at least one outcome: give a list that is not empty")
    bits = SUM_BITS - int(outcomes).bit_length()
    if bits <= SMALLEST_WEIGHT_BITS:
        raise BadParameterError(
            "too-many-outcomes",
            "{outcomes} outcomes are too many for exact 62-bit thresholds: choose among fewer than {most}",
            outcomes=outcomes,
            most=2 ** (SUM_BITS - SMALLEST_WEIGHT_BITS - 1),
        )
    return bits


def exponent_cap(outcomes: int) -> float:
    """The exponent (K - 20) ln 2 from which on all outcomes get the same weight, 2**20. It is public: it
    depends on the number of outcomes only."""
    return (weight_bits(outcomes) - SMALLEST_WEIGHT_BITS) * math.log(2.0)


def rounding_slack(outcomes: int) -> float:
    """Bound on what rounding adds to the log-ratio of the probabilities of one outcome under any two inputs.

    Write t = 2**K * exp(-min(e, cap)) for the ideal weight, t >= 2**20. The computed one is
    W = floor(t * (1 + h)), where |h| <= 2**-45, because

    * the difference K ln 2 - e lies below 64 and is rounded once, which moves the weight by a factor within
      1 +- 2**-48 (the rounded constant K ln 2 is common to all outcomes and cancels), and an exponent that is
      itself the result of a few operations on numbers below 64 adds some 2**-47;
    * numpy's float64 exponential is within 4 units in the last place, a factor within 1 +- 2**-50.

    At the cap, t may miss 2**20 by the same factor, so flooring takes off less than 1 <= t * 2**-20 *
    (1 + 2**-44). Hence W / t lies between 1 - a and 1 + 2**-45 with a = 2**-20 + 2**-43, and ln(W / t) in an
    interval of length at most a + a**2 + 2**-45 < r = 2**-20 + 2**-39. The ratio W(x) / W(x') differs
    from the ideal one by a factor within exp(+-r), and so does the ratio of the two sums, since each sum divided
    by its ideal value is an average of such quotients: 2 * r in total, about 1.9e-6.

    The exponents are taken as given. If the caller computes them in single precision, the error of its own
    arithmetic is the caller's to bound.
    """
    weight_bits(outcomes)
    return 2.0 * (2.0**-20 + 2.0**-39)


def integer_weights(exponents: Floats, out: Integers | None = None) -> Integers:
    """floor(2**K * exp(-min(exponent, cap))) for exponents >= 0 of shape (rows, outcomes).

    `exponents` is used up: its memory serves as scratch space, and holds the result when `out` is None. Every
    weight is at least 2**20 - 1, so every outcome keeps a positive probability; see the module for the proof
    that the cap leaves the guarantee as it is, and `rounding_slack` for the price of the floor.
    """
    if exponents.ndim != 2 or exponents.dtype != np.float64:
        raise BadParameterError(
            "wrong-shape", "exponents are a float64 array of shape (rows, outcomes): convert them first"
        )
    rows, outcomes = exponents.shape
    top = weight_bits(outcomes) * math.log(2.0)
    floor = SMALLEST_WEIGHT_BITS * math.log(2.0)
    weights: Integers = exponents.view(np.int64) if out is None else out
    if weights.shape != exponents.shape or weights.dtype != np.int64:
        raise BadParameterError("wrong-shape", "`out` must be an int64 array of the shape of the exponents")
    step = max(1, CHUNK_CELLS // outcomes)
    for start in range(0, rows, step):
        chunk = exponents[start : start + step]
        np.subtract(top, chunk, out=chunk)
        # Written so that NaN, which compares false, is refused as well.
        if not chunk.max() <= top + NEGATIVE_TOLERANCE:
            raise BadParameterError(
                "not-finite",
                "an exponent is negative or not a number: subtract the smallest one of the row, and check the "
                "distances or scores it came from",
            )
        np.maximum(chunk, floor, out=chunk)
        np.exp(chunk, out=chunk)
        np.copyto(weights[start : start + step], chunk, casting="unsafe")
    return weights


def integer_weights_of_squares(squares: Floats, cap: float = math.inf) -> Integers:
    """`integer_weights` of min(sqrt(squares), cap), for squares of shape (rows, outcomes) that rounding may have left
    slightly below zero.

    One sweep while the cells are in the processor's cache, instead of several over the whole block: this is where the
    exponential mechanisms spend their time. `squares` must be finite; they are used up and hold the result.
    """
    rows, outcomes = squares.shape
    top = weight_bits(outcomes) * math.log(2.0)
    largest = min(cap, exponent_cap(outcomes)) ** 2
    weights: Integers = squares.view(np.int64)
    step = max(1, CHUNK_CELLS // outcomes)
    for start in range(0, rows, step):
        chunk = squares[start : start + step]
        np.clip(chunk, 0.0, largest, out=chunk)
        np.sqrt(chunk, out=chunk)
        np.subtract(top, chunk, out=chunk)
        np.exp(chunk, out=chunk)
        np.copyto(weights[start : start + step], chunk, casting="unsafe")
    return weights


def draw_rows(weights: Integers, counts: ArrayLike, source: Source) -> Integers:
    """Draw counts[i] outcomes, independent and with probability weights / sum, for each row i; rows in order.

    `weights` (rows, outcomes) is used up: some rows hold their running sums afterwards. A uniform integer u in
    [0, sum of the row) selects the first outcome whose running sum exceeds u; numpy's bounded integers are
    free of modulo bias, so the law is exact.
    """
    repeats = np.asarray(counts, dtype=np.int64)
    if weights.ndim != 2 or repeats.shape != (weights.shape[0],):
        raise BadParameterError("wrong-shape", "give weights of shape (rows, outcomes) and one count per row")
    if repeats.size == 0:
        return np.empty(0, dtype=np.int64)
    if repeats.min() < 0:
        raise BadParameterError("impossible-count", "a number of draws cannot be negative: give counts of zero or more")
    grouped = weights.shape[1] >= 8 * GROUP_CELLS
    if grouped:
        # Running sums of groups of cells are enough to find the group; only there are the cells themselves added up.
        sums = np.add.reduceat(weights, np.arange(0, weights.shape[1], GROUP_CELLS), axis=1)
        np.cumsum(sums, axis=1, out=sums)
    else:
        sums = np.cumsum(weights, axis=1, out=weights)
    totals = sums[:, -1]
    if totals.min() <= 0:
        raise BadParameterError(
            "weights-are-zero", "the weights of a row add up to nothing: make them with integer_weights"
        )
    uniform: Integers = source.generator.integers(0, np.repeat(totals, repeats))
    drawn = np.empty_like(uniform)
    stop = 0
    for row, count in enumerate(repeats.tolist()):
        start, stop = stop, stop + count
        if grouped and count >= MANY_DRAWS:
            np.cumsum(weights[row], out=weights[row])
            drawn[start:stop] = weights[row].searchsorted(uniform[start:stop], side="right")
        elif count:
            drawn[start:stop] = sums[row].searchsorted(uniform[start:stop], side="right")
    if grouped:
        row_of = np.repeat(np.arange(len(weights)), repeats)
        unfinished = np.flatnonzero(repeats[row_of] < MANY_DRAWS)  # these have a group so far
        drawn[unfinished] = _in_groups(weights, sums, row_of[unfinished], drawn[unfinished], uniform[unfinished])
    return drawn


def _in_groups(weights: Integers, sums: Integers, rows: Integers, groups: Integers, uniform: Integers) -> Integers:
    """The first outcome of each group whose running sum exceeds the uniform integer."""
    last = weights.shape[1] - 1
    chosen = np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), CHUNK_CELLS // GROUP_CELLS):
        block = slice(start, start + CHUNK_CELLS // GROUP_CELLS)
        row, group = rows[block], groups[block]
        rest = uniform[block] - np.where(group > 0, sums[row, group - 1], 0)
        cells = group[:, None] * GROUP_CELLS + np.arange(GROUP_CELLS)
        # Beyond the end of a short last group the last cell repeats: the uniform integer is exceeded before that, and
        # 127 more cells of at most 2**62 / 1024 do not overflow.
        running = np.cumsum(weights[row[:, None], np.minimum(cells, last)], axis=1)
        chosen[block] = group * GROUP_CELLS + (running <= rest[:, None]).sum(axis=1)
    return chosen


def probabilities(weights: Integers) -> Floats:
    """The law of `draw_rows`, rounded to float64: weights / sum of the row. Call it before drawing."""
    totals = weights.sum(axis=-1, keepdims=True)
    result: Floats = weights / totals
    return result


def _choice_weights(scores: ArrayLike, epsilon: float, sensitivity: float) -> Integers:
    positive(epsilon, "epsilon")
    positive(sensitivity, "the sensitivity of the score")
    table = np.array(scores, dtype=np.float64)
    if table.ndim != 1 or not np.isfinite(table).all():
        raise BadParameterError(
            "not-finite", "scores are one list of finite numbers: give every outcome exactly one score"
        )
    weight_bits(table.size)
    exponents = (table.max() - table) * (epsilon / (2.0 * sensitivity))
    return integer_weights(exponents[np.newaxis])


def exponential_choice(scores: ArrayLike, *, epsilon: float, sensitivity: float, source: Source) -> int:
    """The exponential mechanism: outcome y with probability proportional to exp(epsilon * q_y / (2 *
    sensitivity)).

    McSherry & Talwar (FOCS 2007). Pure epsilon-DP (plus `rounding_slack`) if one record changes every score
    by at most `sensitivity`: each weight and the sum each change by at most exp(epsilon / 2). Shifting by the
    largest score, itself that Lipschitz, changes nothing (see the module).
    """
    weights = _choice_weights(scores, epsilon, sensitivity)
    return int(draw_rows(weights, np.ones(1, dtype=np.int64), source)[0])


def exponential_probabilities(scores: ArrayLike, *, epsilon: float, sensitivity: float) -> Floats:
    """The exact law of `exponential_choice`."""
    law: Floats = probabilities(_choice_weights(scores, epsilon, sensitivity))[0]
    return law
