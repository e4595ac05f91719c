"""Multivariate Laplace noise: metric DP for the Euclidean distance.

Noise z in d dimensions with density proportional to exp(-epsilon * ||z||_2) gives, by the triangle
inequality, Pr[x + z in S] <= exp(epsilon * ||x - x'||_2) Pr[x' + z in S]: epsilon-metric DP, whatever is done
with the sum afterwards (Chatzikokolakis et al., PETS 2013; for words, Fernandes, Dras & McIver, POST 2019,
and Feyisetan et al., WSDM 2020). In polar coordinates the density factors: the direction is uniform on the
sphere, the length has density proportional to r**(d-1) * exp(-epsilon * r), which is Gamma(d, 1/epsilon) with
mean d / epsilon and standard deviation sqrt(d) / epsilon.

The samplers are floating-point ones. That is accepted only because such a sum is never released: the
mechanisms release the nearest word, which a change in the last digit does not move (see
docs/floating-point.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameterError
from tacit.noise.parameters import positive
from tacit.noise.source import Source


def multivariate_laplace(
    count: int, dimension: int, epsilon: float, source: Source, dtype: type[np.floating[Any]] = np.float32
) -> NDArray[Any]:
    """`count` noise vectors of shape (count, dimension) with density ~ exp(-epsilon * ||z||_2)."""
    positive(epsilon, "epsilon")
    if dimension < 1 or count < 0:
        raise BadParameterError(
            "impossible-count", "multivariate noise needs at least one dimension and no negative count"
        )
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise BadParameterError(
            "wrong-number-type", "noise is made in float32 or float64, not {given}", given=np.dtype(dtype).name
        )
    generator = source.generator
    noise = np.empty((count, dimension), dtype=dtype)
    generator.standard_normal(out=noise, dtype=dtype)
    squared = np.einsum("ij,ij->i", noise, noise)
    while not squared.all():  # no direction: happens in practice for one dimension in float32 only
        empty = np.flatnonzero(squared == 0)
        noise[empty] = generator.standard_normal((empty.size, dimension), dtype=dtype)
        squared[empty] = np.einsum("ij,ij->i", noise[empty], noise[empty])
    factor = generator.standard_gamma(dimension, count)
    factor /= epsilon
    factor /= np.sqrt(squared, dtype=np.float64)
    noise *= factor.astype(dtype)[:, np.newaxis]
    return noise
