"""Linear heads on vectors: of released ones without further cost, of private ones from noisy sums.

Released vectors (`tacit embed`) may be used in any way: a head learned from them is post-processing, a function of the
released file alone. The noise is known, so it is taken out of the covariance: a linear discriminant with

    W_c = S^-1 m_c,   b_c = - m_c . W_c / 2,   S = (covariance within classes) - sigma^2 I, its eigenvalues at least
                                                    `SMALLEST_SHARE` of their mean

m_c being the mean of class c. Averages of n noisy vectors have noise sigma / sqrt(n), which is why many weak releases
make a good classifier of clean texts.

Private vectors pay once, for the sums of all classes together (`private_head`): each record adds its vector, cut to
length 1, to the sum of its class, and 1 to the count of its class. So the sums of two data sets that differ by one
record are at most sqrt(2) apart, and at most 2 if one record is replaced: in its own class two vectors are at most 2
apart and the counts are equal; between classes 1 + 1 + 1 + 1 is the square. Gaussian noise for that on all numbers, on
a public grid, is the only look at the records; the head is that of the nearest mean. Vectors are rounded towards 0 to
multiples of 2^-20, so that their sums are exact in any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Floats32, Ids
from tacit.documents.bounds import ClipL2
from tacit.guarantee import Adjacency
from tacit.noise.gaussian import add_gaussian, analytic_gaussian_sigma
from tacit.noise.source import Source

SMALLEST_SHARE = 3.0
SUM_GRID_BITS = 20
ADD_REMOVE_SENSITIVITY = math.nextafter(math.sqrt(2.0), 2.0)
REPLACE_SENSITIVITY = 2.0


@dataclass(frozen=True)
class VectorHead:
    """A linear classifier of vectors: weights (labels, dimension) and offsets (labels,)."""

    labels: tuple[str, ...]
    weights: Floats
    offsets: Floats

    def predict(self, vectors: Floats) -> list[str]:
        """The label of each vector."""
        scores = np.asarray(vectors, dtype=np.float64) @ self.weights.T + self.offsets
        return [self.labels[place] for place in scores.argmax(axis=1).tolist()]


def class_numbers(labels: Sequence[str], names: Sequence[str]) -> Ids:
    """The place of each label in the list of names."""
    places = {name: place for place, name in enumerate(names)}
    return np.array([places[label] for label in labels], dtype=np.int64)


def released_head(vectors: Floats32, labels: Ids, names: Sequence[str], sigma: float = 0.0) -> VectorHead:
    """The discriminant of released vectors whose numbers have noise of standard deviation sigma."""
    wide = np.asarray(vectors, dtype=np.float64)
    dimension = wide.shape[1]
    means = np.stack([wide[labels == place].mean(axis=0) for place in range(len(names))])
    centered = wide - means[labels]
    spread, directions = np.linalg.eigh(centered.T @ centered / len(wide) - sigma**2 * np.eye(dimension))
    floor = SMALLEST_SHARE * max(1.0 / dimension, float(spread.clip(0).mean()))
    weights = means @ (directions / np.maximum(spread, floor)) @ directions.T
    return VectorHead(tuple(names), weights, -0.5 * np.einsum("ij,ij->i", weights, means))


def private_head(
    vectors: Floats32,
    labels: Ids,
    names: Sequence[str],
    *,
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    source: Source,
) -> tuple[VectorHead, float]:
    """The head of private vectors from noisy sums, and the standard deviation of their noise."""
    sensitivity = REPLACE_SENSITIVITY if adjacency is Adjacency.REPLACE_ONE else ADD_REMOVE_SENSITIVITY
    sigma = analytic_gaussian_sigma(epsilon, delta, sensitivity)
    noisy = add_gaussian(exact_class_sums(vectors, labels, len(names)), sigma=sigma, source=source)
    counts = np.maximum(noisy[:, -1], 1.0 + sigma)
    means = noisy[:, :-1] / counts[:, np.newaxis]
    return VectorHead(tuple(names), means, -0.5 * np.square(means).sum(axis=1)), sigma


def exact_class_sums(vectors: Floats32, labels: Ids, classes: int) -> Floats:
    """Sums of the bounded vectors of each class and, last, how many there are: (classes, dimension + 1)."""
    bounded = ClipL2(1.0).apply(np.asarray(vectors, dtype=np.float64)[:, np.newaxis, :])[:, 0]
    whole = np.trunc(bounded * 2.0**SUM_GRID_BITS).astype(np.int64)
    sums = np.zeros((classes, whole.shape[1] + 1), dtype=np.int64)
    np.add.at(sums[:, :-1], labels, whole)
    sums[:, -1] = np.bincount(labels, minlength=classes) << SUM_GRID_BITS
    return np.asarray(sums * 2.0**-SUM_GRID_BITS)
