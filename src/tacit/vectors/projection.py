"""Random projection to fewer dimensions as a bounding map (Johnson & Lindenstrauss 1984)."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameterError
from tacit.noise.source import public_generator
from tacit.rounding import rounded_up
from tacit.vectors.bounding_maps import AdaptedUnit, Bounding, Sensitivity, UnitNorm, vocabulary_sensitivity


class JohnsonLindenstrauss(Bounding):
    """f(x) = A^T n(x): normalize, then project on m random directions, A (d, m) with iid N(0, 1/m) entries.

    m = ceil((w + sqrt(ln(1/delta)))^2 / beta^2) with w = sqrt(2 ln |X|) the Gaussian width of |X| points in
    the unit ball, |X| the size of the public vocabulary; 89 for |X| = 72,600 at beta = 0.9 and delta = 1e-6.
    `dimension` sets m by hand. A is drawn once, from a public seed.

    Sensitivity, always times that of the normalization (which the thesis leaves out):
    - bound "spectral" (default): the largest singular value of the drawn A, a proven Lipschitz constant of x
    -> A^T x, so metric DP stays pure; - bound "probabilistic": 1 + beta, except with
    probability delta over the public draw. The theorem behind m holds up to a constant that the thesis takes
    to be 1, so this is its claim, not our proof; - bound "vocabulary": the largest ratio over all pairs of the
    vocabulary, normalization included.
    """

    name = "jl"

    def __init__(
        self,
        beta: float = 0.9,
        delta: float = 1e-6,
        seed: int = 0,
        *,
        normalize: Literal["unit", "adapted"] = "unit",
        bound: Literal["spectral", "probabilistic", "vocabulary"] = "spectral",
        dimension: int | None = None,
    ) -> None:
        super().__init__()
        if beta <= 0 or not 0 < delta < 1:
            raise BadParameterError(
                "impossible-bounding",
                "beta must be above 0 and delta between 0 and 1, not {beta} and {delta}",
                beta=beta,
                delta=delta,
            )
        if normalize not in ("unit", "adapted"):
            raise BadParameterError(
                "impossible-bounding", "normalize must be 'unit' or 'adapted', not {normalize!r}", normalize=normalize
            )
        if bound not in ("spectral", "probabilistic", "vocabulary"):
            raise BadParameterError(
                "impossible-bounding",
                "bound must be 'spectral', 'probabilistic' or 'vocabulary', not {bound!r}",
                bound=bound,
            )
        if dimension is not None and dimension < 1:
            raise BadParameterError(
                "impossible-bounding", "the projection needs at least 1 dimension, not {dimension}", dimension=dimension
            )
        if dimension is not None and bound == "probabilistic":
            raise BadParameterError(
                "impossible-bounding", "the probabilistic bound sets the dimension itself: leave one of the two out"
            )
        self.beta, self.delta, self.seed = beta, delta, seed
        self.normalize, self.bound, self.dimension = normalize, bound, dimension
        self._normalization: Bounding = UnitNorm() if normalize == "unit" else AdaptedUnit()
        self.matrix: NDArray[np.float64] = np.empty((0, 0))

    def _learn(self, public: NDArray[np.floating]) -> None:
        n, d = public.shape
        m = self.dimension or projection_dimension(n, self.beta, self.delta)
        if m >= d:
            raise BadParameterError(
                "projection-too-large",
                "for {words:,} words the projection would have {dimensions} dimensions, no fewer than the "
                "{available} of the vectors: give a larger beta, or the dimension you want",
                words=n,
                dimensions=m,
                available=d,
            )
        self._normalization.fit(public)
        self.matrix = public_generator(self.seed).standard_normal((d, m)) / math.sqrt(m)

    def _map(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.asarray(self._normalization.transform(X) @ self.matrix)

    def sensitivity(self) -> Sensitivity:
        public = self._fitted()
        if self.bound == "vocabulary":
            return vocabulary_sensitivity(self.transform, public)
        inner = self._normalization.sensitivity()
        if self.bound == "probabilistic":
            delta = projection_delta(len(public), self.matrix.shape[1], self.beta)
            return Sensitivity(
                (1 + self.beta) * inner.value,
                "probabilistic",
                delta,
                f"1 + beta = {rounded_up(1 + self.beta)} for all pairs of words with probability "
                f"1 - {rounded_up(delta, 2)} over the drawn matrix, times {rounded_up(inner.value)} ({inner.how})",
            )
        norm = float(np.linalg.norm(self.matrix, 2))
        return Sensitivity(
            norm * inner.value,
            "proven",
            how=f"spectral norm {rounded_up(norm)} of the drawn matrix, times {rounded_up(inner.value)} ({inner.how})",
        )


def projection_delta(points: int, dimension: int, beta: float) -> float:
    """The chance that a random projection stretches some pair of `points` by more than 1 + beta.

    For a fixed direction u, m |A^T u|^2 is chi-square with m degrees of freedom; a union bound over all pairs gives
    points (points - 1) / 2 * P[chi-square_m > m (1 + beta)^2].
    """
    from scipy.stats import chi2

    return min(1.0, points * (points - 1) / 2.0 * float(chi2.sf(dimension * (1 + beta) ** 2, dimension)))


def projection_dimension(points: int, beta: float, delta: float) -> int:
    """m = ceil((sqrt(2 ln points) + sqrt(ln(1/delta)))^2 / beta^2)."""
    width = math.sqrt(2 * math.log(points))
    return math.ceil((width + math.sqrt(math.log(1 / delta))) ** 2 / beta**2)
