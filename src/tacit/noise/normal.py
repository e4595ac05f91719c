"""Exact normal noise on a grid: the nearest integer to  offset + sigma * Z,  Z a normal variable of the real numbers.

A normal variable in floating point has an end. numpy's cannot exceed 12.2, and beyond 8 its values thin out: two inputs
that are more than that apart in units of sigma are told apart outright by the first number that only one of them can
give. Here Z is a real number of which as many bits are drawn as a question about it needs (Karney, "Sampling exactly
from the normal distribution", ACM TOMS 2016); the questions are comparisons, and every comparison is decided right.

1. k = 0, 1, 2, ... has probability c * exp(-k**2 / 2): a uniform U is compared with the sums of these.
2. x is uniform in [0, 1). The pair is kept if a uniform V is below exp(-x (2 k + x) / 2), else both are drawn again.
3. Z = +-(k + x), with a fair sign.

Law. A kept pair has the density c * exp(-k**2 / 2) * exp(-x (2 k + x) / 2) = c * exp(-(k + x)**2 / 2), so Z is normal.

Exactness. U, V and x are binary fractions whose first word (64 bits; 63 for x, whose last bit is the sign) is drawn at
once, and the rest only where the first word leaves a question open. The first words are compared in double precision.
Where the two sides differ by more than the arithmetic can be wrong, whatever the later bits are, the answer is right
for all of these, so they stay uniform and independent of everything decided so far. Anything closer (one pair of 2**42,
one rounding of 2**25) goes to `_Attempt` and `_rounded_exactly`, which work with integers and fractions, and draw more
bits until the answer is certain. What the doubles can be wrong by:

* V and exp(-x (2 k + x) / 2): each input is rounded once (2**-53) and known to one cell (2**-63). The exponent g gets
  three more roundings, a relative error of 2**-50, and g exp(-g) < 1/2, so that is 2**-51 in the exponential, whose own
  error of 4 units in the last place adds 2**-50 (`tacit.noise.choice` assumes the same; a test checks it). Together
  below 2**-48; the margin is `ACCEPTANCE_MARGIN` = 2**-44.
* offset + sigma * (k + x): four roundings of numbers of at most s = |result| + |offset| + 2 sigma + 1, and the cell of
  x: below 2**-50 s; the margin is twice that.

So the result is a function of offset + sigma * Z, Z exactly normal: whatever holds for normal noise of the real numbers
holds for it, for vectors of any length and inputs any number of sigmas apart, with no slack (post-processing). A
discrete Gaussian variable (Canonne, Kamath & Steinke, NeurIPS 2020) is as exact; but several of them together have no
closed form for delta, and the inputs would have to be rounded to the grid beforehand, which moves them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial
from itertools import count

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameterError
from tacit.noise.source import Source

Words = Callable[[int], NDArray[np.uint64]]
"""A source of so many independent uniform 64-bit words."""

WORD_BITS = 64
POSITION_BITS = 63
ALL_ONES = 2**WORD_BITS - 1
ACCEPTANCE_MARGIN = 2.0**-44
ROUNDING_MARGIN = 2.0**-49
LARGEST_SIGMA = 2.0**40
"""In steps of the grid; with more, double precision would decide hardly anything."""
TAIL = 4
"""From here on single precision is not trusted; a whole number beyond 3.654, where numpy's tail begins."""
CHUNK = 1 << 15
"""Numbers worked on at a time: the passes over them stay in the processor's cache."""


def uniform_words(source: Source) -> Words:
    """Words of the secure stream."""
    generator = source.generator

    def words(size: int) -> NDArray[np.uint64]:
        return generator.integers(0, ALL_ONES, size=size, dtype=np.uint64, endpoint=True)

    return words


def rounded_normal(
    offsets: NDArray[np.float64], sigma: float, words: Words, exact_offset: Callable[[int], Fraction] | None = None
) -> NDArray[np.int64]:
    """The nearest integers to offsets + sigma * Z, with an independent, exactly normal Z for each; law in the module.

    exact_offset   by its place, what an offset stands for, where the double may differ from it by at most 2**-60
    """
    if not 0 < sigma <= LARGEST_SIGMA:
        raise BadParameterError(
            "impossible-scale",
            "exact normal noise needs a sigma between 0 and 2**40 steps, not {sigma:g}: choose a coarser grid",
            sigma=sigma,
        )
    flat = offsets.ravel()
    result = np.empty(flat.size, dtype=np.int64)
    for start in range(0, flat.size, CHUNK):
        part = flat[start : start + CHUNK]
        exact = None if exact_offset is None else partial(_shifted, exact_offset, start)
        result[start : start + CHUNK] = _rounded(part, sigma, draw_normals(part.size, words), words, exact)
    return result.reshape(offsets.shape)


def _shifted(exact_offset: Callable[[int], Fraction], start: int, place: int) -> Fraction:
    return exact_offset(start + place)


def rounded_normal_above(size: int, sigma: float, least: int, words: Words) -> NDArray[np.int64]:
    """The nearest integers to sigma * Z, Z exactly normal, given that they are at least `least`; independent.

    By rejection: Z with |Z| at least the whole number below (least - 1/2) / sigma is drawn exactly, and what is rounded
    below `least` is drawn again.
    """
    from_whole = max(0, int(Fraction(2 * least - 1, 2) / Fraction(sigma)))
    kept = [np.zeros(0, dtype=np.int64)]
    missing = size
    while missing > 0:
        zeros = np.zeros(min(CHUNK, 16 * missing + 64))
        drawn = _rounded(zeros, sigma, draw_normals(zeros.size, words, from_whole), words)
        kept.append(drawn[drawn >= least][:missing])
        missing -= kept[-1].size
    return np.concatenate(kept)


def _rounded(
    offsets: NDArray[np.float64],
    sigma: float,
    drawn: Normals,
    words: Words,
    exact_offset: Callable[[int], Fraction] | None = None,
) -> NDArray[np.int64]:
    """The nearest integers to offsets + sigma * Z for normal variables that were drawn."""
    noisy = offsets + sigma * drawn.doubles()
    nearest = np.rint(noisy)
    margin = (np.abs(noisy) + np.abs(offsets) + (2.0 * sigma + 1.0)) * ROUNDING_MARGIN
    doubtful = np.abs(noisy - nearest) >= 0.5 - margin
    doubtful[list(drawn.longer)] = True
    rounded = nearest.astype(np.int64)
    for place in np.flatnonzero(doubtful).tolist():
        exact = Fraction(float(offsets[place])) if exact_offset is None else exact_offset(place)
        rounded[place] = _rounded_exactly(exact, Fraction(sigma), drawn, place, words)
    return rounded


def normal_noise(size: int, source: Source) -> NDArray[np.float32]:
    """Normal noise in single precision whose tail has no end, for sums that live in single precision themselves.

    numpy's generator ends at 8.2 in single precision (24 bits of a uniform number decide about its tail). What lies at
    4 or beyond is drawn again here, exactly, given that it does: one number of 16,000. Below 4, and in what the sum
    does to the last bits, this is the usual idealization, not a proof; use `rounded_normal` for numbers on a grid.
    """
    noise = source.generator.standard_normal(size, dtype=np.float32)
    far = np.flatnonzero(np.abs(noise) >= TAIL)
    if far.size:
        tail = np.abs(draw_normals(far.size, uniform_words(source), TAIL).doubles())
        noise[far] = np.copysign(tail, noise[far])
    return noise


@dataclass
class _Uniform:
    """A uniform number of [0, 1), known to lie between numerator / 2**bits and (numerator + 1) / 2**bits."""

    numerator: int
    bits: int

    def extend(self, words: Words) -> None:
        self.numerator = (self.numerator << WORD_BITS) | int(words(1)[0])
        self.bits += WORD_BITS

    @property
    def low(self) -> Fraction:
        return Fraction(self.numerator, 1 << self.bits)

    @property
    def high(self) -> Fraction:
        return Fraction(self.numerator + 1, 1 << self.bits)


@dataclass
class Normals:
    """Normal variables, +-(whole + position / 2**63) and less than one unit of the last bit further from zero.

    `longer` has those that were drawn exactly, by their place: their whole part, and a position with more bits.
    """

    negative: NDArray[np.bool_]
    whole: NDArray[np.int64]
    position: NDArray[np.int64]
    longer: dict[int, tuple[int, _Uniform]]

    def doubles(self) -> NDArray[np.float64]:
        """Their doubles, each with a relative error below 2**-51, or one of 2**-53 near zero."""
        size = self.position * 2.0**-POSITION_BITS
        size += self.whole
        for place, (whole, position) in self.longer.items():
            size[place] = float(whole + position.low)
        return np.asarray(np.where(self.negative, -size, size))

    def exact(self, place: int) -> tuple[int, _Uniform]:
        known = self.longer.get(place)
        return known or (int(self.whole[place]), _Uniform(int(self.position[place]), POSITION_BITS))


def draw_normals(size: int, words: Words, least: int = 0) -> Normals:
    """Independent normal variables Z, given that |Z| is at least `least`; see the module for their law."""
    thresholds = _thresholds(least)
    normals = Normals(np.empty(size, dtype=bool), np.zeros(size, np.int64), np.zeros(size, np.int64), {})
    open_places = np.arange(size)
    while open_places.size:
        first, second, third = (words(open_places.size) for _ in range(3))
        cell = thresholds.searchsorted(first, side="left")
        whole = cell + least
        position = (second >> np.uint64(1)).view(np.int64)
        x = position * 2.0**-POSITION_BITS
        likelihood = np.exp(-0.5 * x * (2.0 * whole + x))
        test = (third >> np.uint64(1)).view(np.int64) * 2.0**-POSITION_BITS
        kept = test < likelihood
        normals.negative[open_places] = (second & np.uint64(1)).astype(bool)
        normals.whole[open_places] = whole
        normals.position[open_places] = position
        doubtful = (np.abs(test - likelihood) <= ACCEPTANCE_MARGIN) | (thresholds[cell] == first)
        for place in np.flatnonzero(doubtful).tolist():
            attempt = _Attempt(
                _Uniform(int(first[place]), WORD_BITS),
                _Uniform(int(position[place]), POSITION_BITS),
                _Uniform(int(third[place]), WORD_BITS),
                least,
            )
            kept[place] = attempt.kept(words)
            if kept[place]:
                normals.longer[int(open_places[place])] = (attempt.whole, attempt.position)
        open_places = open_places[~kept]
    return normals


@dataclass
class _Attempt:
    """One pair (k, x) and the uniform numbers that decide about it, compared without any rounding."""

    choice: _Uniform
    position: _Uniform
    test: _Uniform
    least: int
    whole: int = 0

    def kept(self, words: Words) -> bool:
        """Whether the pair is kept; its k is in `whole` afterwards."""
        self.whole = next(k for k in count(self.least) if self._below_sum(k + 1, words))
        while True:
            shortest = exp_bounds(self._exponent(self.position.high), self.test.bits)[0]
            longest = exp_bounds(self._exponent(self.position.low), self.test.bits)[1]
            if self.test.high <= shortest:
                return True
            if self.test.low >= longest:
                return False
            self.test.extend(words)
            self.position.extend(words)

    def _exponent(self, x: Fraction) -> Fraction:
        return x * (2 * self.whole + x) / 2

    def _below_sum(self, terms: int, words: Words) -> bool:
        while True:
            low, high = sum_bounds(terms, self.choice.bits, self.least)
            if self.choice.high <= low:
                return True
            if self.choice.low >= high:
                return False
            self.choice.extend(words)


def _rounded_exactly(offset: Fraction, sigma: Fraction, drawn: Normals, place: int, words: Words) -> int:
    whole, position = drawn.exact(place)
    sign = -1 if drawn.negative[place] else 1
    while True:
        ends = [offset + sign * sigma * (whole + x) + Fraction(1, 2) for x in (position.low, position.high)]
        if ends[0] // 1 == ends[1] // 1:
            return int(ends[0] // 1)
        position.extend(words)


# Constants and functions to any number of bits ----------------------------------------------------------------------


def exp_bounds(exponent: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """Two fractions with exp(-exponent), for an exponent >= 0, between them: less than 2**-bits apart.

    Python's decimal numbers are divided and raised with one correct rounding each. With d digits that is a relative
    error of 10**(1 - d) in the exponent and as much in the result: together (exponent + 1) 10**(1 - d), times 1.01 for
    what is of second order.
    """
    digits = bits // 3 + 10 + len(str(int(exponent)))
    context = Context(prec=digits)
    quotient = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    estimate = Fraction(context.exp(quotient.copy_negate()))
    error = estimate * (exponent + 1) * Fraction(101, 100) / 10 ** (digits - 1)
    return estimate - error, estimate + error


@lru_cache(maxsize=256)
def sum_bounds(terms: int, bits: int, least: int = 0) -> tuple[Fraction, Fraction]:
    """Two fractions with Pr[k < terms | k >= least], Pr[k] = c exp(-k**2 / 2), between them: less than 2**-bits apart.

    That is head / (head + tail), both divided by exp(-least**2 / 2). The tail is added up until its terms are below
    2**-bits / 1000; what is missing is less than its last term.
    """
    head = [exp_bounds(Fraction(i * i - least * least, 2), bits + 16) for i in range(least, terms)]
    tail: list[tuple[Fraction, Fraction]] = []
    while not tail or tail[-1][1] * 1000 > Fraction(1, 1 << bits):
        tail.append(exp_bounds(Fraction((terms + len(tail)) ** 2 - least * least, 2), bits + 16))
    head_low, tail_low = (sum((low for low, _ in part), Fraction(0)) for part in (head, tail))
    head_high = sum((high for _, high in head), Fraction(0))
    tail_high = sum((high for _, high in tail), tail[-1][1])
    return head_low / (head_low + tail_high), head_high / (head_high + tail_low)


@lru_cache(maxsize=4)
def _thresholds(least: int = 0) -> NDArray[np.uint64]:
    """floor(2**64 Pr[k < least + j | k >= least]) for j = 1, 2, ... up to the first that is 2**64 - 1.

    A first word that equals one of them leaves k open, and no first word is above the last.
    """
    thresholds: list[int] = []
    while not thresholds or thresholds[-1] < ALL_ONES:
        low, high = (
            value * 2**WORD_BITS // 1 for value in sum_bounds(least + len(thresholds) + 1, WORD_BITS + 32, least)
        )
        assert low == high, "the sums are irrational, and 32 bits more than needed tell them from their floors"
        thresholds.append(int(low))
    return np.array(thresholds, dtype=np.uint64)
