"""Hyperbolic distance of vectors inside the unit ball (the Poincaré model), in rows, with a proven bound on its error.

    d(x, y)  =  arcosh(1 + 2 |x - y|^2 / ((1 - |x|^2)(1 - |y|^2)))  =  2 arsinh(|x - y| / sqrt((1 - |x|^2)(1 - |y|^2)))

Words near the border are far from each other, which suits hierarchies. Published noise for this space comes from a
Markov chain and has no exact law; over a finite vocabulary the exponential mechanism needs the distances only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids
from tacit.errors import BadInputError
from tacit.guarantee import Metric, MetricKind
from tacit.noise.source import public_generator
from tacit.vectors.distance_rows import UNIT_ROUNDOFF, DistanceRows, Vectors, matrix_of

BLOCK_ROWS = 64
LARGEST_ERROR = 1e-3
LONGEST = 100.0
"""No distance of vectors that pass the check of the error reaches this."""

SAMPLED_PAIRS = 20_000


class HyperbolicRows:
    """Rows of the matrix of hyperbolic distances, on demand, from those of the Euclidean one.

    Error. With e the bound on a squared Euclidean distance (eta^2), a the smallest 1 - |x|^2 and u the unit roundoff:
    arsinh is 1-Lipschitz and t arsinh'(t) <= 1, so the root of e / a^2 enters twice, eta / a; a relative error of the
    product of the two factors, at most 2 (d + 4) u / a, enters once; arsinh, the scale, squares and roots add less than
    16 u times the distance.
    """

    def __init__(self, vectors: Vectors, *, columns: NDArray[np.integer] | None = None) -> None:
        self._euclidean = DistanceRows(vectors, columns=columns)
        self.columns = self._euclidean.columns
        self._factors = factors_of(matrix_of(vectors))
        chosen = slice(None) if self.columns is None else self.columns
        self._inverse = 1.0 / self._factors[chosen]
        smallest = float(self._factors.min())
        dimension = matrix_of(vectors).shape[1]
        self.error_bound = (
            2.0 * self._euclidean.error_bound / smallest
            + 2.0 * (dimension + 4) * UNIT_ROUNDOFF / smallest
            + 16.0 * UNIT_ROUNDOFF * LONGEST
        )
        if self.error_bound > LARGEST_ERROR:
            raise BadInputError(
                "vectors-at-the-border",
                "some vectors lie so near to the border of the unit ball that their hyperbolic distances cannot be "
                "computed well enough: multiply all vectors by a number a little below 1",
            )

    @property
    def width(self) -> int:
        """Distances per row."""
        return self._euclidean.width

    def rows(self, ids: NDArray[np.integer], out: Floats | None = None) -> Floats:
        """Distances (len(ids), width) from these words, exactly 0 from a word to itself."""
        squares = self.squares(ids, out)
        return np.sqrt(squares, out=squares)

    def squares(self, ids: NDArray[np.integer], out: Floats | None = None, scale: float | Floats = 1.0) -> Floats:
        """The squares (scale * distance)^2. One scale, or one per row."""
        ids = np.asarray(ids, dtype=np.int64)
        result = self._curved(self._euclidean.squares(ids, out), ids, 0)
        result *= np.broadcast_to(np.square(scale), (len(ids),))[:, None]
        return result

    def squares_from(self, ids: NDArray[np.integer], first: int, out: Floats) -> Floats:
        """Squared distances from these words to the columns `first`, `first` + 1, ..."""
        return self._curved(self._euclidean.squares_from(ids, first, out), ids, first)

    def _curved(self, squares: Floats, ids: NDArray[np.integer], first: int) -> Floats:
        np.maximum(squares, 0.0, out=squares)
        squares *= self._inverse[first:]
        squares /= self._factors[ids][:, None]
        np.sqrt(squares, out=squares)
        np.arcsinh(squares, out=squares)
        squares *= 2.0
        return np.square(squares, out=squares)


def factors_of(vectors: NDArray[np.floating]) -> Floats:
    """1 - |x|^2 of each vector, all of them inside the unit ball."""
    rows = vectors.astype(np.float64)
    factors: Floats = 1.0 - np.einsum("ij,ij->i", rows, rows)
    if factors.min() <= 0.0:
        raise BadInputError(
            "vectors-outside-the-ball",
            "hyperbolic distances are defined inside the unit ball, and the longest vector has the length "
            "{length:.4g}: use Poincaré vectors, or the Euclidean distance",
            length=math.sqrt(1.0 - float(factors.min())),
        )
    return factors


@dataclass(frozen=True, eq=False)
class HyperbolicDistance:
    """Hyperbolic distance of points, from their differences in double precision."""

    points: NDArray[np.floating]
    name: str = "hyperbolic distance"

    def between(self, left: Ids, right: Ids) -> Floats:
        factors = factors_of(np.asarray(self.points))
        difference = self.points[left].astype(np.float64) - self.points[right]
        squares = np.einsum("ij,ij->i", difference, difference)
        result: Floats = 2.0 * np.arcsinh(np.sqrt(squares / (factors[left] * factors[right])))
        return result

    def closest(self, count: int) -> Ids:
        rows = HyperbolicRows(np.asarray(self.points))
        best = np.empty((0, 3))
        for start in range(0, len(self.points), BLOCK_ROWS):
            ids = np.arange(start, min(start + BLOCK_ROWS, len(self.points)))
            block = rows.rows(ids)
            block[np.arange(len(self.points))[None, :] <= ids[:, None]] = math.inf
            kept = np.argpartition(block.ravel(), min(count, block.size) - 1)[:count]
            i, j = np.divmod(kept, block.shape[1])
            best = np.concatenate([best, np.column_stack([ids[i], j, block[i, j]])])
            best = best[np.lexsort((best[:, 1], best[:, 0], best[:, 2]))][:count]
        return best[np.isfinite(best[:, 2]), :2].astype(np.int64)

    def metric(self, fingerprint: str | None = None) -> Metric:
        """The metric of a guarantee about this distance. Its largest value is rounded up by its error."""
        rows = HyperbolicRows(np.asarray(self.points))
        count = len(self.points)
        starts = range(0, count, BLOCK_ROWS)
        largest = max(float(rows.rows(np.arange(start, min(start + BLOCK_ROWS, count))).max()) for start in starts)
        generator = public_generator(0)
        left = generator.integers(count, size=SAMPLED_PAIRS)
        right = (left + generator.integers(1, count, size=SAMPLED_PAIRS)) % count
        typical = float(np.median(self.between(left, right)))
        return Metric(self.name, largest + rows.error_bound, typical, fingerprint, kind=MetricKind.OTHER)
