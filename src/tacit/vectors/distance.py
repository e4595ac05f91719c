"""Distances between inputs, by their numbers: what a metric guarantee is stated in, and what an audit measures with.

A distance knows its kind and how it is computed, so that nobody has to understand its name. `metric` is what a
guarantee says about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids
from tacit.errors import BadInputError
from tacit.guarantee import Metric, MetricKind
from tacit.vectors.geometry import closest_pairs, diameter, median_distance


class Distance(Protocol):
    """A distance between inputs, by their numbers."""

    @property
    def name(self) -> str:
        """The name of the distance on the card."""

    def between(self, left: Ids, right: Ids) -> Floats:
        """The distance of each pair, shape (pairs,)."""

    def closest(self, count: int) -> Ids:
        """The closest pairs, shape (count, 2)."""


@dataclass(frozen=True, eq=False)
class VectorDistance:
    """Euclidean distance of points, from their differences in double precision; its square for 0/1 codes, which
    counts the bits that differ.

    kind   what it is called: Euclidean, Hamming (`squared`), or another one in whose space the points already are
    """

    points: NDArray[np.floating]
    name: str = "Euclidean distance"
    squared: bool = False
    kind: MetricKind = MetricKind.EUCLIDEAN

    def between(self, left: Ids, right: Ids) -> Floats:
        result = np.empty(len(left))
        step = max(1, 1_000_000 // self.points.shape[1])
        for start in range(0, len(left), step):
            block = slice(start, start + step)
            difference = self.points[left[block]].astype(np.float64) - self.points[right[block]]
            result[block] = np.einsum("ij,ij->i", difference, difference)
        return result if self.squared else np.sqrt(result)

    def closest(self, count: int) -> Ids:
        return closest_pairs(self.points, count)[0]

    def metric(self, fingerprint: str | None = None) -> Metric:
        """The metric of a guarantee about this distance. The largest distance is rounded up by more than its arithmetic
        can be off; a number of bits is a whole one."""
        largest, typical = diameter(self.points), median_distance(self.points)
        if self.squared:
            largest, typical = float(round(largest**2)), float(round(typical**2))
        else:
            largest *= 1.0 + 1e-12
        return Metric(self.name, largest, typical, fingerprint, kind=self.kind)


@dataclass(frozen=True, eq=False)
class TableDistance:
    """Distances given as a square table."""

    values: Floats
    name: str = "the given distance"

    def __post_init__(self) -> None:
        table = self.values
        if table.ndim != 2 or table.shape[0] != table.shape[1]:
            raise BadInputError(
                "wrong-shape", "a table of distances has one row and one column for each input, in the same order"
            )
        if not (np.isfinite(table).all() and (table >= 0).all()):
            raise BadInputError(
                "not-finite", "a distance is negative or not a finite number: correct the table of distances"
            )

    def between(self, left: Ids, right: Ids) -> Floats:
        return np.asarray(self.values[left, right])

    def closest(self, count: int) -> Ids:
        i, j = np.triu_indices(len(self.values), 1)
        order = np.argsort(self.values[i, j], kind="stable")[:count]
        return np.stack([i[order], j[order]], axis=1).astype(np.int64)

    def metric(self, fingerprint: str | None = None) -> Metric:
        """The metric of a guarantee about this distance."""
        i, j = np.triu_indices(len(self.values), 1)
        largest = float(self.values.max(initial=0.0))
        typical = float(np.median(self.values[i, j])) if len(i) else None
        return Metric(self.name, largest, typical, fingerprint, kind=MetricKind.OTHER)
