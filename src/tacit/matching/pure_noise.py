"""The release of sums under pure epsilon-differential privacy: discrete Laplace noise on whole numbers.

    released: the nearest multiple of a public step to  S + X,   X_i independent, Pr[X_i = k] ~ exp(-|k| / t),
    t = ceil(GRID / epsilon) in exact rational arithmetic

Guarantee: epsilon-differential privacy, delta = 0, for adding or removing one record (or one user). Proof. The sums S
and S' of neighbors are vectors of whole numbers of steps with sum of |S_i - S'_i| <= GRID (`tacit.matching.pure`; of a
user by `tacit.matching.sums`). By the triangle inequality the probability of any outcome changes by a factor of at most
exp(GRID / t) <= exp(epsilon). The sampler uses uniform integers only (`tacit.noise.laplace`), so the factor is exact.
Rounding to a coarser step is a function of the noisy numbers alone.

Merging. Whoever is in several parts has the sum of their epsilons (no better bound holds in general for Laplace noise);
whoever is in one has the largest. Variances add up as always.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tacit.arrays import Integers
from tacit.errors import BadParameterError
from tacit.matching.whole_numbers import GRID
from tacit.noise.laplace import LARGEST_INTEGER_SCALE, discrete_laplace
from tacit.noise.source import Source


def laplace_steps(epsilon: float) -> int:
    """The scale t of the noise in steps: the least whole number with GRID / t <= epsilon."""
    scale = math.ceil(Fraction(GRID) / Fraction(epsilon))
    if scale > LARGEST_INTEGER_SCALE:
        raise BadParameterError(
            "epsilon-too-small-for-laplace",
            "epsilon {epsilon:g} is too small for exact noise in whole numbers: raise {option.epsilon}",
            epsilon=epsilon,
        )
    return scale


def laplace_totals(totals: Integers, scale: int, step: int, source: Source) -> Integers:
    """Totals with noise, rounded to multiples of `step`, in units of the step."""
    noisy = totals + discrete_laplace(scale, totals.size, source).reshape(totals.shape)
    return np.asarray((noisy + step // 2) // step)


def laplace_variance(scale: int) -> float:
    """The variance of the noise in squared units: 2 a / (1 - a)^2 with a = exp(-1 / t), in squared steps."""
    return 2 * math.exp(-1 / scale) / math.expm1(-1 / scale) ** 2 / GRID**2
