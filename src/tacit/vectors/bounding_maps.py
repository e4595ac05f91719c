"""Bounding maps: what is done to a word vector before noise, and by how much it can stretch a distance.

A mechanism that is eps-metric-DP after a map f is (eps * s)-metric-DP with respect to the original distance,
where s = max |f(x) - f(y)| / |x - y| is the sensitivity of the map (Riecker 2023, chapter on sensitivity
bounding). Each map says how its s is known:

- "proven": a Lipschitz constant, for every input there is;
- "exact over this vocabulary": the largest ratio over all pairs of the public vocabulary, for inputs from it;
- "probabilistic": holds except with probability delta over a public random draw;
- "estimated": nothing better is known.

The thesis divides the diameter of the output by the smallest distance of the input instead
(`diameter_bounds`), which is valid for the vocabulary behind that distance and looser than either.

Maps are fitted on public vectors only. They return float64 where they compute, because rounding to float32
can stretch the distance of two close words.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameterError
from tacit.rounding import rounded_down, rounded_up
from tacit.vectors.distance_rows import Vectors, matrix_of
from tacit.vectors.geometry import largest_ratio

Kind = Literal["proven", "exact over this vocabulary", "probabilistic", "estimated"]
Bound = Literal["lipschitz", "vocabulary"]


@dataclass(frozen=True)
class Sensitivity:
    """By how much a map can stretch a Euclidean distance, and how that is known."""

    value: float
    kind: Kind
    delta: float = 0.0
    how: str = ""


def vocabulary_sensitivity(f: Callable[[NDArray[np.floating]], NDArray[np.floating]], table: Vectors) -> Sensitivity:
    """The largest ratio |f(x) - f(y)| / |x - y| over all pairs of this vocabulary, in blocks, exact."""
    vectors = matrix_of(table)
    return Sensitivity(
        largest_ratio(vectors, f(vectors)),
        "exact over this vocabulary",
        how=f"largest ratio over all pairs of the {len(vectors):,} public vectors",
    )


class Bounding(ABC):
    """One bounding map: `fit` on public vectors, then `transform` anything of the same dimension."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self._public: NDArray[np.floating] | None = None

    def fit(self, public_table: Vectors) -> Bounding:
        """Learn what the map needs (a norm, a range, a matrix) from public vectors."""
        self._public = matrix_of(public_table)
        self._learn(self._public)
        return self

    def transform(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        """The bounded vectors, one row per row of X."""
        public = self._fitted()
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != public.shape[1]:
            raise BadParameterError(
                "vectors-of-another-kind",
                "the map was fitted on {dimensions} dimensions, the vectors have the shape {given}: fit it on "
                "vectors of the same kind",
                dimensions=public.shape[1],
                given=X.shape,
            )
        return self._map(X)

    @abstractmethod
    def sensitivity(self) -> Sensitivity: ...

    def _learn(self, public: NDArray[np.floating]) -> None:  # noqa: B027
        """Learn parameters from the public vectors; most maps have none."""

    @abstractmethod
    def _map(self, X: NDArray[np.floating]) -> NDArray[np.floating]: ...

    def _fitted(self) -> NDArray[np.floating]:
        if self._public is None:
            raise BadParameterError(
                "map-not-fitted", "the map '{name}' is not fitted: call fit with public vectors first", name=self.name
            )
        return self._public


class NoBound(Bounding):
    """f(x) = x. Its sensitivity is 1 (the thesis calls it unbounded, which mixes up ratio and diameter)."""

    name = "none"

    def _map(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        return X

    def sensitivity(self) -> Sensitivity:
        return Sensitivity(1.0, "proven", how="the identity keeps every distance")


class UnitNorm(Bounding):
    """f(x) = x / max(|x|, m), with m the smallest norm of the public vocabulary: every word gets norm 1.

    f is the projection on the ball of radius m, divided by m. A projection on a convex set stretches no
    distance, so 1/m is a Lipschitz constant everywhere, also for vectors shorter than m (they keep their
    direction and get a norm below 1; the zero vector stays zero). On the vocabulary f is the plain x / |x|.
    """

    name = "unit"

    def __init__(self, *, bound: Bound = "lipschitz") -> None:
        super().__init__()
        self.bound = _checked_bound(bound)
        self.smallest_norm = math.nan

    def _learn(self, public: NDArray[np.floating]) -> None:
        norms = np.sqrt(np.einsum("ij,ij->i", public, public, dtype=np.float64))
        if not norms.any():
            raise BadParameterError(
                "vectors-are-zero", "all public vectors are zero: a unit norm needs at least one that is not"
            )
        self.smallest_norm = float(norms[norms > 0].min())

    def _map(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        return _shorten(X, self.smallest_norm) / self.smallest_norm

    def sensitivity(self) -> Sensitivity:
        public = self._fitted()
        if self.bound == "vocabulary":
            return vocabulary_sensitivity(self.transform, public)
        return Sensitivity(
            1.0 / self.smallest_norm,
            "proven",
            how=f"1 / {rounded_down(self.smallest_norm)}, the smallest norm of the public vectors",
        )


class AdaptedUnit(Bounding):
    """f(x) = x if |x| <= 1, else x / |x|: the projection on the unit ball, which stretches no distance."""

    name = "adapted-unit"

    def _map(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        return _shorten(X, 1.0)

    def sensitivity(self) -> Sensitivity:
        return Sensitivity(1.0, "proven", how="projection on a convex set")


def _shorten(X: NDArray[np.floating], radius: float) -> NDArray[np.float64]:
    """The projection on the ball of this radius around 0."""
    rows = np.asarray(X, dtype=np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    scale = np.ones(len(rows))
    np.divide(radius, norms, out=scale, where=norms > radius)
    return np.asarray(rows * scale[:, None])


class MinusOneToOne(Bounding):
    """f(x) = 2 (x - mid) / max(range, r) per vector: its smallest coordinate becomes -1, its largest 1.

    mid and range are those of the coordinates of x itself; r is the smallest range of a public vector that is
    not constant, so that on the vocabulary f is the plain 2 (x - min) / (max - min) - 1. A constant vector
    has no range and becomes 0, the middle.

    Lipschitz constant 2 sqrt(d - 1) / r everywhere. Where range > r, with i the largest and j the smallest
    coordinate, row k of the derivative is (2 / range) (e_k - (1 - t_k) e_j - t_k e_i), 0 <= t_k <= 1, and 0
    for k = i, j. Hence |Df v| <= (2 / range) (|v_rest| + sqrt(d - 2) |(v_i, v_j)|) <= (2 / range) sqrt(d - 1)
    |v|. Where range < r, f is (2 / r) (x - mid), whose squared norm is at most max(1, d / 2, 4/3 if d = 3) <=
    d - 1 times (2 / r)^2. f is continuous and piecewise smooth, so the larger constant holds across pieces.
    The exact number over the vocabulary, which is the default, is usually several times smaller.
    """

    name = "minus-one-to-one"

    def __init__(self, *, bound: Bound = "vocabulary") -> None:
        super().__init__()
        self.bound = _checked_bound(bound)
        self.smallest_range = math.nan

    def _learn(self, public: NDArray[np.floating]) -> None:
        ranges = np.ptp(np.asarray(public, dtype=np.float64), axis=1)
        if not ranges.any():
            raise BadParameterError(
                "vectors-are-constant", "all public vectors are constant: a range needs at least one that is not"
            )
        self.smallest_range = float(ranges[ranges > 0].min())

    def _map(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        rows = np.asarray(X, dtype=np.float64)
        low, high = rows.min(axis=1, keepdims=True), rows.max(axis=1, keepdims=True)
        width = np.maximum(high - low, self.smallest_range)
        # Twice the distance from the middle, over the range: exactly 1 and -1 at the two ends.
        return np.asarray(((rows - low) - (high - rows)) / width)

    def sensitivity(self) -> Sensitivity:
        public = self._fitted()
        if self.bound == "vocabulary":
            return vocabulary_sensitivity(self.transform, public)
        dimension = public.shape[1]
        return Sensitivity(
            2.0 * math.sqrt(dimension - 1) / self.smallest_range,
            "proven",
            how=f"2 sqrt({dimension} - 1) / {rounded_down(self.smallest_range)}, the smallest coordinate range",
        )


class ObservedRange(MinusOneToOne):
    """f(x) = low + (x - min x)(high - low) / (max x - min x): min-max per vector, to a public range.

    The range is that of all public coordinates, unless given. It is `MinusOneToOne` times (high - low) / 2,
    moved to the middle of the range, and so is its sensitivity. A constant vector becomes the middle.
    """

    name = "observed-range"

    def __init__(self, low: float | None = None, high: float | None = None, *, bound: Bound = "vocabulary") -> None:
        super().__init__(bound=bound)
        self._given = _checked_range(low, high)
        self.low, self.high = self._given or (math.nan, math.nan)

    def _learn(self, public: NDArray[np.floating]) -> None:
        super()._learn(public)
        self.low, self.high = self._given or (float(public.min()), float(public.max()))

    def _map(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        mapped = super()._map(X)
        return np.asarray((self.low + self.high) / 2 + (self.high - self.low) / 2 * mapped)

    def sensitivity(self) -> Sensitivity:
        inner = super().sensitivity()
        if self.bound == "vocabulary":
            return inner  # computed on the stretched vectors themselves
        factor = (self.high - self.low) / 2
        return Sensitivity(factor * inner.value, "proven", how=f"{rounded_up(factor)} times ({inner.how})")


class ClipToRange(Bounding):
    """f(x) = x with each coordinate clipped to [low, high], the range of all public coordinates unless given.

    Clipping a coordinate brings two values no farther apart, so the sensitivity is 1. On a vocabulary inside
    the range it changes nothing, bit for bit.
    """

    name = "clip"

    def __init__(self, low: float | None = None, high: float | None = None) -> None:
        super().__init__()
        self._given = _checked_range(low, high)
        self.low, self.high = self._given or (math.nan, math.nan)

    def _learn(self, public: NDArray[np.floating]) -> None:
        self.low, self.high = self._given or (float(public.min()), float(public.max()))

    def _map(self, X: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.asarray(np.clip(X, self.low, self.high))

    def sensitivity(self) -> Sensitivity:
        return Sensitivity(1.0, "proven", how="clipping a coordinate stretches no distance")


def diameter_bounds(
    dimension: int, smallest_distance: float, low: float, high: float, *, beta: float = 0.9
) -> dict[str, float]:
    """The bounds of the thesis (Riecker 2023, bounding functions): output diameter / smallest distance.

    They hold for inputs that are at least `smallest_distance` apart. With the constants printed there (300,
    0.7890, -3.0639, 2.6668) they give 2.5349, 43.9050 and 125.8031. For jl the thesis states 1 + beta and
    leaves out its own normalization; here it is included.
    """
    unit = 2 / smallest_distance
    return {
        "none": 1.0,
        "unit": unit,
        "adapted-unit": 1.0,
        "minus-one-to-one": 2 * math.sqrt(dimension) / smallest_distance,
        "observed-range": (high - low) * math.sqrt(dimension) / smallest_distance,
        "clip": 1.0,
        "jl": (1 + beta) * unit,
    }


def _checked_bound(bound: Bound) -> Bound:
    if bound not in ("lipschitz", "vocabulary"):
        raise BadParameterError(
            "impossible-bounding", "bound must be 'lipschitz' or 'vocabulary', not {bound!r}", bound=bound
        )
    return bound


def _checked_range(low: float | None, high: float | None) -> tuple[float, float] | None:
    if low is None and high is None:
        return None
    if low is None or high is None or not low < high:
        raise BadParameterError(
            "impossible-bounding", "a range needs both ends, low below high, not {low} and {high}", low=low, high=high
        )
    return float(low), float(high)
