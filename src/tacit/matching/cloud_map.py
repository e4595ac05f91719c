"""A flat map of a release: public sentences, the rows drawn from them, and the noisy means of the labels.

The map is a linear projection to two orthogonal directions, found from the released rows and the pool alone: those that
lead from the pool to the labels of the released rows, measured by the spread of rows of one label. So it is a function
of what was released, and may be shared. Orthogonal directions keep the noise of a sum the same to all sides: it is
drawn as a circle, whose radius also covers the noise of the number by which the sum is divided (to first order).

Other rows, such as the private ones on a page for their holder only, are placed with `CloudMap.place`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.matching.corpus import pool_features
from tacit.matching.sketch import Sketch

RADIUS = 2.45
"""Standard deviations of a circle that holds 95 of 100 draws of normal noise in two dimensions."""
STEADY = 3.0
"""The mean of a label is shown if its number of rows is so many times the noise of that number."""
RIDGE = 0.3
"""Of the mean variance, added to the spread of rows of one label."""


@dataclass(frozen=True)
class LabelMean:
    """The noisy mean of a label on the map, and the radius within which the true one lies in 95 of 100 releases."""

    label: str
    place: Floats
    radius: float


@dataclass(frozen=True)
class CloudMap:
    """Places on the map.

    pool        (sentences, 2)
    rows        (released rows, 2)
    labels      one for each released row
    means       of the labels that have enough rows to be told from noise
    directions  (2, features)
    """

    pool: Floats
    rows: Floats
    labels: Sequence[str]
    means: Sequence[LabelMean]
    directions: Floats

    def place(self, features: Floats32) -> Floats:
        """The places of other texts by their features."""
        return np.asarray(features @ self.directions.T)


def cloud_map(sketch: Sketch, pool: Sequence[str], texts: Sequence[str], labels: Sequence[str]) -> CloudMap:
    """The map of released rows among public sentences."""
    around, rows = pool_features(sketch, pool), pool_features(sketch, texts)
    directions = _directions(around, rows, labels)
    placed = CloudMap(np.zeros((0, 2)), np.zeros((0, 2)), labels, (), directions)
    return CloudMap(
        pool=placed.place(around),
        rows=placed.place(rows),
        labels=labels,
        means=_means(sketch, directions),
        directions=directions,
    )


def _means(sketch: Sketch, directions: Floats) -> list[LabelMean]:
    sums = sketch.sums[:, : directions.shape[1]] @ directions.T
    means = []
    for label, total, count in zip(sketch.labels, sums, sketch.counts.tolist(), strict=True):
        if count > STEADY * sketch.count_deviation:
            place = total / count
            of_count = sketch.count_deviation**2 * float(place @ place)
            means.append(LabelMean(label, place, RADIUS * math.sqrt(sketch.noise_variance + of_count) / count))
    return means


def _directions(pool: Floats32, rows: Floats32, labels: Sequence[str]) -> Floats:
    """Two orthogonal directions of length 1."""
    names, members = np.unique(np.asarray(labels, dtype=object).astype(str), return_inverse=True)
    centers = np.stack([rows[members == place].mean(axis=0, dtype=np.float64) for place in range(len(names))])
    inside = np.cov((rows - centers[members]).T, dtype=np.float64)
    spread, axes = np.linalg.eigh(inside)
    whitened = axes / np.sqrt(np.maximum(spread, 0.0) + RIDGE * max(float(spread.mean()), 1e-9))
    apart = (centers - pool.mean(axis=0, dtype=np.float64)) @ whitened
    # Of equal length, so that one label far away does not take both directions for itself.
    apart /= np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-9)
    _, _, turned = np.linalg.svd(apart, full_matrices=False)
    best = turned[:2] @ whitened.T
    # Two labels and a pool span a plane; with one label the widest direction of the rows is the second.
    candidates = np.vstack([best, axes[:, ::-1].T[:2]])
    basis, _ = np.linalg.qr(candidates.T)
    return np.asarray(basis[:, :2].T)
