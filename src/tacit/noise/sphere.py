"""Noise on a sphere: a unit vector turned by a random angle, metric DP in the angle.

For a unit vector u in d dimensions, y has the density  c exp(-epsilon * angle(u, y))  on the sphere (the Purkayastha
mechanism of Weggenmann & Kerschbaum, CCS 2021; Du et al. 2023a). c is the same for every u, because a rotation takes
one law to the other, and angle(u, y) - angle(u', y) <= angle(u, u'): so the loss is at most epsilon * angle(u, u'),
without the factor 2 of a choice whose normalizer depends on u.

    y = cos(t) u + sin(t) v,   v uniform on the unit sphere orthogonal to u,   t in [0, pi] with the density
                               proportional to  g(t) = exp(-epsilon t) sin(t)^(d - 2)

Sampling t. [0, pi] is cut into `CELLS` equal cells. A cell is drawn by its weight, the integral of g over it, and t
within the cell by rejection against the largest value of g there, which is log-concave: at an end of the cell, or at
the mode. So the density of t is g itself in every cell, up to one factor for the cell: the relative error of its
weight. The weights are whole numbers of 53 bits, shifted as far as their size asks for: cells near the poles of a
sphere in 384 dimensions weigh 2**-4000 of the others, and are as exact as they. A uniform integer below their sum is
compared with them, so the cell is drawn exactly by these weights.

Error. A weight is a sum of positive terms by Gauss's rule of (d - 2) / 2 + 24 nodes, exact for polynomials of degree
d + 45, where sin(t)^(d - 2) is one but for a factor that hardly changes in a cell. Each term is the exponential of a
logarithm of size at most L, computed with a few roundings of 2**-53 each: a relative error of at most (L + 64) 2**-48,
with a wide margin. `slack` is twice that, since one weight stands above and another below the quotient; it is some
1e-11. Within a cell, and in the product that makes y, the numbers are doubles: what a card calls idealized.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from typing import Final

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.errors import BadParameterError
from tacit.noise.normal import WORD_BITS, uniform_words
from tacit.noise.parameters import positive
from tacit.noise.source import Source

CELLS: Final = 4_096
FEWEST_NODES: Final = 24
MANTISSA_BITS: Final = 53


class AngularNoise:
    """Random angles around unit vectors of one dimension at one epsilon; `slack` is what rounding can add to a loss,
    `cell_ends` the running sums of the whole weights of the cells."""

    def __init__(self, epsilon: float, dimension: int) -> None:
        self.epsilon = positive(epsilon, "epsilon")
        if dimension < 2:
            raise BadParameterError(
                "impossible-dimension", "an angle needs at least 2 dimensions, not {dimension}", dimension=dimension
            )
        self.dimension = dimension
        self.width = math.pi / CELLS
        logarithms, largest = self._cell_integrals()
        self.slack = 2.0 * (largest + 64.0) * 2.0**-48
        self.cell_ends = list(accumulate(_whole_weights(logarithms)))

    def log_density(self, angles: Floats) -> Floats:
        """ln g(t), without its normalizer."""
        with np.errstate(divide="ignore"):
            powers = (self.dimension - 2) * np.log(np.sin(angles)) if self.dimension > 2 else 0.0
        return np.asarray(powers - self.epsilon * angles)

    def _cell_integrals(self) -> tuple[Floats, float]:
        """The logarithm of the integral of g over each cell, and the largest size of a logarithm on the way."""
        nodes, weights = np.polynomial.legendre.leggauss((self.dimension - 2) // 2 + FEWEST_NODES)
        starts = np.arange(CELLS)[:, np.newaxis] * self.width
        values = self.log_density(starts + (nodes + 1.0) * (self.width / 2.0))
        tops = values.max(axis=1, keepdims=True)
        sums = tops[:, 0] + np.log(np.exp(values - tops) @ weights)
        return sums, float(np.abs(values).max())

    def angles(self, count: int, source: Source) -> Floats:
        """Independent angles t."""
        cells = self._cells(count, source)
        result = np.empty(count)
        waiting = np.arange(count)
        generator = source.generator
        while waiting.size:
            proposed = (cells[waiting] + generator.random(waiting.size)) * self.width
            accepted = (
                np.log1p(-generator.random(waiting.size)) <= self.log_density(proposed) - self._tops[cells[waiting]]
            )
            result[waiting[accepted]] = proposed[accepted]
            waiting = waiting[~accepted]
        return result

    @property
    def _tops(self) -> Floats:
        """The largest ln g of each cell: at the mode where that is inside, else at the nearer end."""
        mode = math.atan2(self.dimension - 2, self.epsilon) if self.dimension > 2 else 0.0
        starts = np.arange(CELLS) * self.width
        return self.log_density(np.clip(mode, starts, starts + self.width))

    def _cells(self, count: int, source: Source) -> Integers:
        """Cells by their whole weights: uniform integers below the sum, drawn until they are below it."""
        total, words = self.cell_ends[-1], uniform_words(source)
        bits = total.bit_length()
        size = -(-bits // WORD_BITS)
        shift = size * WORD_BITS - bits
        cells = np.empty(count, dtype=np.int64)
        for place in range(count):
            while (ticket := int.from_bytes(words(size).tobytes(), "little") >> shift) >= total:
                pass
            cells[place] = bisect_right(self.cell_ends, ticket)
        return cells

    def around(self, units: Floats, source: Source) -> Floats:
        """A random vector of length 1 around each unit vector (rows, dimension)."""
        angles = self.angles(len(units), source)[:, np.newaxis]
        return np.cos(angles) * units + np.sin(angles) * orthogonal_directions(units, source)


def orthogonal_directions(units: Floats, source: Source) -> Floats:
    """Uniform unit vectors orthogonal to each of these unit vectors."""
    result = np.empty_like(units)
    waiting = np.arange(len(units))
    while waiting.size:
        base = units[waiting]
        drawn = source.generator.standard_normal(base.shape)
        for _ in range(2):  # the second pass takes away what rounding left of the first
            drawn -= np.einsum("ij,ij->i", drawn, base)[:, np.newaxis] * base
        lengths = np.sqrt(np.einsum("ij,ij->i", drawn, drawn))
        good = lengths > 1e-9
        result[waiting[good]] = drawn[good] / lengths[good, np.newaxis]
        waiting = waiting[~good]
    return result


def _whole_weights(logarithms: Floats) -> list[int]:
    """exp of each logarithm in whole numbers, with one common factor and 53 significant bits each."""
    binary = logarithms / math.log(2.0)
    powers = np.floor(binary)
    lowest = int(powers.min())
    mantissas = np.rint(np.exp2(binary - powers) * 2.0 ** (MANTISSA_BITS - 1)).astype(np.int64)
    return [
        mantissa << (int(power) - lowest) for mantissa, power in zip(mantissas.tolist(), powers.tolist(), strict=True)
    ]


@lru_cache(maxsize=16)
def angular_noise(epsilon: float, dimension: int) -> AngularNoise:
    """The noise for an epsilon and a dimension; its table is made once."""
    return AngularNoise(epsilon, dimension)
