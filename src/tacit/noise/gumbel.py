"""Gumbel noise, truncated Gumbel noise and the truncated Poisson count: the parts of the truncated Gumbel
mechanism.

Xu, Aggarwal, Feyisetan & Teissier, "On a utilitarian approach to privacy preserving text generation"
(PrivateNLP 2021) choose among a random number of neighbors the one with the smallest noisy distance. Here are
the random parts; the scale that gives a guarantee, and the range in which it exists, belong to the mechanism.

Gumbel (location 0, scale b):  F(x) = exp(-exp(-x / b)),  so exp(-X / b) is a standard exponential variable.
Truncated: conditioned on [-C, C] (not clamped, which would put atoms on the ends).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats
from tacit.errors import BadParameterError
from tacit.noise.parameters import positive
from tacit.noise.source import Source

Size = int | tuple[int, ...]


def gumbel(scale: float, size: Size, source: Source) -> Floats:
    """Gumbel noise with location 0."""
    return source.generator.gumbel(0.0, positive(scale, "the scale"), size)


def gumbel_cdf(x: ArrayLike, scale: float) -> Floats:
    """exp(-exp(-x / scale))."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-np.exp(-np.asarray(x, dtype=np.float64) / positive(scale, "the scale"))))


def gumbel_density(x: ArrayLike, scale: float) -> Floats:
    """exp(-x / scale - exp(-x / scale)) / scale."""
    y = np.asarray(x, dtype=np.float64) / positive(scale, "the scale")
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-y - np.exp(-y)) / scale)


def truncated_gumbel(scale: float, bound: float, size: Size, source: Source) -> Floats:
    """Gumbel noise conditioned on [-bound, bound], by the inverse distribution function.

    With c = bound / scale, E = exp(-X / scale) is a standard exponential conditioned on [exp(-c), exp(c)], an
    interval of width w = 2 sinh(c): E = exp(-c) - ln(1 - u (1 - exp(-w))) for a uniform u. For a small c the
    interval is a sliver around 1, and -ln E is computed from the distance to its end instead, without
    cancellation.
    """
    c = positive(bound, "the bound") / positive(scale, "the scale")
    uniform = np.atleast_1d(source.generator.random(size))
    with np.errstate(over="ignore", divide="ignore"):
        above = -np.log1p(uniform * np.expm1(-2 * np.sinh(c)))  # E - exp(-c)
        x = scale * (c - np.log1p(above * np.exp(c)) if c < 1 else -np.log(np.exp(-c) + above))
    return np.asarray(np.clip(x, -bound, bound)).reshape(size)


def truncated_gumbel_cdf(x: ArrayLike, scale: float, bound: float) -> Floats:
    """P[X <= x | |X| <= bound] = 1 - (1 - exp(-(E - exp(-c)))) / (1 - exp(-2 sinh c)), E = e**(-x/scale)."""
    inside = np.clip(np.asarray(x, dtype=np.float64), -bound, bound)
    above, width = _exponential_coordinates(inside, scale, bound)
    return np.asarray(1 - np.expm1(-above) / np.expm1(-width))


def truncated_gumbel_density(x: ArrayLike, scale: float, bound: float) -> Floats:
    """Density of the Gumbel variable conditioned on [-bound, bound]; zero outside."""
    points = np.asarray(x, dtype=np.float64)
    inside = np.clip(points, -bound, bound)
    above, width = _exponential_coordinates(inside, scale, bound)
    density = np.exp(-inside / scale - above) / (scale * -np.expm1(-width))
    return np.where(np.abs(points) > bound, 0.0, density)


def _exponential_coordinates(x: Floats, scale: float, bound: float) -> tuple[Floats, float]:
    """E - exp(-c) at x, and the width 2 sinh(c) of the interval of E; either may be infinite."""
    c = positive(bound, "the bound") / positive(scale, "the scale")
    y = x / scale
    with np.errstate(over="ignore"):
        above = np.exp(-c) * np.expm1(c - y) if c < 1 else np.exp(-y) - np.exp(-c)
        return np.asarray(above), float(2 * np.sinh(c))


def truncated_poisson_pmf(rate: float, upper: int) -> Floats:
    """P[K = k] for k = 1..upper of a Poisson variable conditioned on 1 <= K <= upper."""
    positive(rate, "the rate")
    if upper < 1:
        raise BadParameterError(
            "impossible-count", "no count lies between 1 and {upper}: give an upper end of at least 1", upper=upper
        )
    k = np.arange(1, upper + 1, dtype=np.float64)
    from scipy.special import gammaln, logsumexp

    logs = k * np.log(rate) - gammaln(k + 1)
    return np.asarray(np.exp(logs - logsumexp(logs)))


def truncated_poisson(rate: float, upper: int, size: Size, source: Source) -> NDArray[np.int64]:
    """A Poisson variable conditioned on 1..upper: drawn again until it fits, so that no count in the range is
    cut off; by the distribution function where fitting draws are rare."""
    pmf = truncated_poisson_pmf(rate, upper)
    generator = source.generator
    mode = min(max(int(rate), 1), upper)
    from scipy.special import gammaln

    log_unconditioned = mode * np.log(rate) - rate - gammaln(mode + 1)
    if np.exp(log_unconditioned) / pmf[mode - 1] < 0.1:
        drawn = np.searchsorted(np.cumsum(pmf[:-1]), generator.random(size), side="right") + 1
        return np.asarray(drawn, dtype=np.int64)
    counts = np.atleast_1d(np.asarray(generator.poisson(rate, size), dtype=np.int64))
    while (misfits := np.flatnonzero((counts < 1) | (counts > upper))).size:
        counts.flat[misfits] = generator.poisson(rate, misfits.size)
    return counts.reshape(size)
