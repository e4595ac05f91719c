"""The Laplace mechanism: pure epsilon-DP for a vector of numbers.

Dwork, McSherry, Nissim & Smith, "Calibrating noise to sensitivity in private data analysis" (TCC 2006): if
one change of the input moves the vector by at most `l1_sensitivity` in l1 norm, independent noise with
density exp(-|z| / b) / (2 b), b = l1_sensitivity / epsilon, on every coordinate gives epsilon-DP.

`add_laplace` releases numbers on a public grid with the discrete Laplace distribution (two-sided geometric:
Ghosh, Roughgarden & Sundararajan, STOC 2009), sampled in integer arithmetic after Canonne, Kamath & Steinke,
"The discrete Gaussian for differential privacy" (NeurIPS 2020), Algorithm 2.

Proof of `add_laplace`. Let s be the step and r(x) the integer vector of the n values, divided by s and
rounded. Rounding moves each coordinate by at most 1/2, so for adjacent x, x'

    ||r(x) - r(x')||_1  <=  l1_sensitivity / s + n  =: D.

The release is r(x) + X with independent X_i, Pr[X_i = k] proportional to exp(-|k| / t), t an integer >= D /
epsilon. By the triangle inequality Pr[r(x) + X = z] <= exp(D / t) Pr[r(x') + X = z] <= exp(epsilon) Pr[r(x')
+ X = z] for every z. D and t are computed in exact rational arithmetic, and the sampler uses uniform integers
only: the epsilon is exact, without slack.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import BadParameterError
from tacit.noise.grid import finite_values, multiples, on_grid, step_below
from tacit.noise.parameters import positive
from tacit.noise.source import Source

LARGEST_INTEGER_SCALE = 1 << 54
"""Up to here a noise of 60 scales, probability below e**-60, still fits beside a clamped value in int64."""


@dataclass(frozen=True)
class LaplaceGrid:
    """Step of the grid and noise scale in steps: the release is a multiple of `step`."""

    step: float
    integer_scale: int

    @property
    def scale(self) -> float:
        """The noise scale actually used: the textbook one, enlarged for the rounding."""
        return self.step * self.integer_scale


def laplace_scale(epsilon: float, l1_sensitivity: float) -> float:
    """b = l1_sensitivity / epsilon."""
    return positive(l1_sensitivity, "the l1 sensitivity") / positive(epsilon, "epsilon")


def laplace_epsilon(scale: float, l1_sensitivity: float) -> float:
    """The inverse of `laplace_scale`: epsilon = l1_sensitivity / scale."""
    return positive(l1_sensitivity, "the l1 sensitivity") / positive(scale, "the scale")


def laplace_noise(scale: float, size: int | tuple[int, ...], source: Source) -> NDArray[np.float64]:
    """Continuous Laplace noise in double precision. Do not release a sum with it: use `add_laplace`."""
    return source.generator.laplace(0.0, positive(scale, "the scale"), size)


def laplace_grid(epsilon: float, l1_sensitivity: float, dimension: int) -> LaplaceGrid:
    """The public grid for `dimension` numbers: a millionth of the scale, and fine enough that the rounding of
    all coordinates together enlarges the sensitivity by at most 2**-16."""
    scale = laplace_scale(epsilon, l1_sensitivity)
    if dimension < 1:
        raise BadParameterError("nothing-to-release", "there is nothing to release: give at least one value")
    step = step_below(min(scale * 2.0**-20, l1_sensitivity * 2.0**-16 / dimension))
    distance = Fraction(l1_sensitivity) / Fraction(step) + dimension
    integer_scale = math.ceil(distance / Fraction(epsilon))
    if integer_scale > LARGEST_INTEGER_SCALE:
        raise BadParameterError(
            "epsilon-too-small",
            "epsilon {epsilon} for {dimension} numbers at once is too small for exact integer noise: raise epsilon "
            "or release fewer numbers",
            epsilon=epsilon,
            dimension=dimension,
        )
    return LaplaceGrid(step=step, integer_scale=integer_scale)


def add_laplace(values: ArrayLike, *, epsilon: float, l1_sensitivity: float, source: Source) -> NDArray[np.float64]:
    """Release all values together with pure epsilon-DP, on the grid of `laplace_grid`; proof above.

    `l1_sensitivity` is that of the whole array: the sum over its entries of how far one change can move them.
    """
    array = finite_values(values)
    grid = laplace_grid(epsilon, l1_sensitivity, array.size)
    rounded = np.rint(multiples(array, grid.step)).astype(np.int64)
    noise = discrete_laplace(grid.integer_scale, array.size, source).reshape(array.shape)
    return on_grid(rounded + noise, grid.step)


def discrete_laplace(scale: int, count: int, source: Source) -> NDArray[np.int64]:
    """Integers with Pr[k] = (e**(1/scale) - 1) / (e**(1/scale) + 1) * exp(-|k| / scale), sampled exactly.

    Canonne, Kamath & Steinke, Algorithm 2: a remainder u, uniform below `scale`, is kept with probability
    exp(-u / scale); a quotient v is geometric with success probability exp(-1); u + scale * v gets a random
    sign, and minus zero is drawn again, lest zero count twice.
    """
    if not 1 <= scale <= LARGEST_INTEGER_SCALE:
        raise BadParameterError(
            "impossible-scale", "the integer scale must lie between 1 and 2**54, not {scale}", scale=scale
        )
    generator = source.generator
    result = np.empty(count, dtype=np.int64)
    open_places = np.arange(count)
    while open_places.size:
        remainder = generator.integers(0, scale, size=open_places.size)
        kept = _bernoulli_exp(remainder, scale, generator)
        places, remainder = open_places[kept], remainder[kept]
        magnitude = remainder + scale * _geometric_e(places.size, generator)
        negative = generator.integers(0, 2, size=places.size).astype(bool)
        good = ~(negative & (magnitude == 0))
        result[places[good]] = np.where(negative, -magnitude, magnitude)[good]
        open_places = np.concatenate([open_places[~kept], places[~good]])
    return result


def _bernoulli_exp(
    numerators: NDArray[np.int64], denominator: int, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Independent coins with probability exp(-numerator / denominator), 0 <= numerator <= denominator: exact.

    Canonne, Kamath & Steinke, Algorithm 1: toss coins with probabilities g/1, g/2, g/3, ...; the number of
    the first failure is odd with probability 1 - g + g**2/2! - ... = exp(-g).
    """
    outcome = np.zeros(numerators.size, dtype=bool)
    running = np.arange(numerators.size)
    toss = 1
    while running.size:
        failed = generator.integers(0, denominator * toss, size=running.size) >= numerators[running]
        outcome[running[failed]] = toss % 2 == 1
        running = running[~failed]
        toss += 1
    return outcome


def _geometric_e(count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Number of successes before the first failure of coins with probability exp(-1)."""
    successes = np.zeros(count, dtype=np.int64)
    running = np.arange(count)
    while running.size:
        running = running[_bernoulli_exp(np.ones(running.size, dtype=np.int64), 1, generator)]
        successes[running] += 1
    return successes
