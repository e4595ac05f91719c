"""The distance of two clouds of vectors: those of the originals and those of the release.

    D(P, Q) = 2 E|X - Y| - E|X - X'| - E|Y - Y'|       (energy distance; Székely & Rizzo 2013)

It is 0 if and only if the two laws are equal. It is estimated without bias from samples of equal size, so two samples
of the originals give about 0; how far from it, several random halves of the originals say (the floor). The other end of
the scale are public sentences that were drawn without regard to anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.evaluation.downstream import Labeled
from tacit.evaluation.vectors import TextVectors
from tacit.noise.source import public_generator

SAMPLE = 1_000
HALVES = 9
FEWEST = 20
"""Rows of a label on either side, for a distance of its own."""


@dataclass(frozen=True)
class CloudDistance:
    """A distance beside its floor: the largest between random halves of the originals.

    public   the distance of public sentences drawn at random, where there are any
    """

    distance: float
    floor: float
    public: float | None = None

    @property
    def way(self) -> float | None:
        """How far the release is from the originals, between their own halves (0) and random public text (1)."""
        if self.public is None or self.public <= self.floor:
            return None
        return (self.distance - self.floor) / (self.public - self.floor)


@dataclass(frozen=True)
class CloudDistances:
    """The distance of all rows, and those of single labels."""

    encoder: str
    rows: int
    together: CloudDistance
    labels: dict[str, CloudDistance]


def cloud_distances(
    original: Labeled, released: Labeled, public: Sequence[str] = (), *, encoder: str = "static", seed: int = 0
) -> CloudDistances:
    """Distances of a release from the originals, on at most 1,000 rows of each side."""
    vectors = TextVectors(encoder)
    generator = public_generator(seed)
    texts = [str(text) for text in original.texts]
    drawn = [str(text) for text in released.texts]
    together = _distance(vectors, texts, drawn, _sampled(public, SAMPLE, generator), generator)
    by_label: dict[str, CloudDistance] = {}
    for label in sorted(set(original.labels) & set(released.labels), key=str):
        own = [text for text, other in zip(texts, original.labels, strict=True) if other == label]
        made = [text for text, other in zip(drawn, released.labels, strict=True) if other == label]
        if min(len(own) // 2, len(made)) >= FEWEST:
            by_label[str(label)] = _distance(vectors, own, made, (), generator)
    return CloudDistances(vectors.name, min(SAMPLE, len(texts) // 2, len(drawn)), together, by_label)


def _distance(
    vectors: TextVectors,
    original: Sequence[str],
    released: Sequence[str],
    public: Sequence[str],
    generator: np.random.Generator,
) -> CloudDistance:
    size = min(SAMPLE, len(original) // 2, len(released))
    own = vectors(_sampled(original, 2 * size, generator)).astype(np.float64)
    made = vectors(_sampled(released, size, generator)).astype(np.float64)
    floors = []
    for _ in range(HALVES):
        order = generator.permutation(len(own))
        floors.append(energy_distance(own[order[:size]], own[order[size : 2 * size]]))
    far = None if not public else energy_distance(own[:size], vectors(public[:size]).astype(np.float64))
    return CloudDistance(energy_distance(own[:size], made), max(floors), far)


def _sampled(texts: Sequence[str], count: int, generator: np.random.Generator) -> list[str]:
    return [texts[place] for place in generator.permutation(len(texts))[:count].tolist()]


def energy_distance(first: Floats, second: Floats) -> float:
    """The energy distance of two samples (at least 2 rows each), without bias; it may come out below 0."""
    between = _distances(first, second).mean()
    return float(2 * between - _mean_within(first) - _mean_within(second))


def _mean_within(rows: Floats) -> float:
    """The mean distance of two different rows."""
    return float(_distances(rows, rows).sum()) / max(1, len(rows) * (len(rows) - 1))


def _distances(first: Floats, second: Floats) -> Floats:
    squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None, :] - 2 * first @ second.T
    distances: Floats = np.sqrt(np.maximum(squares, 0.0))
    if first is second:
        np.fill_diagonal(distances, 0.0)
    return distances
