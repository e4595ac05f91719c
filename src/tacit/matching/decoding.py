"""Collective decoding: what many local releases of a codebook say together about each label.

A single release of the codebook (`tacit.documents.codebook`) says next to nothing, by design. But its law is known, so
sums over all records of a label can be estimated from all releases without bias, and their noise is known as well.

The law has two weights: a near cell has probability a, any other b, and near(x) has exactly s cells. With any numbers
phi_c of the cells that add up to zero,

    E[ phi_c ] = sum over c in near(x) of a phi_c + sum over the others of b phi_c = (a - b) s H(x),
    H(x) = mean of phi_c over near(x)

so phi_c / ((a - b) s) is an unbiased estimate of H(x), a public feature of a text, which every public sentence has too.
phi are the vectors of the cells, centered and brought to covariance 1 / dimension in every direction, so that the noise
is nearly the same in every direction. What labels add:

    joint code      E[ 1(z = y) phi_c ] = 1(label = y) (a - b) s H(x),   E[ 1(z = y) ] = 1(label = y) (a - b) s + b k
    copied label    it is the label
    own response    1(z = y) is replaced by (1(z = y) - q) / (p - q), with p and q for the true and a false answer

All of them are  weights[z, y] phi_c  with a public matrix of weights, and so are the counts but for a constant. Records
are released independently, so the covariance of a sum is the sum of their covariances, and

    sum over releases of weights[z, y]^2 phi_c phi_c'        (the covariance, plus the squares of what is estimated)

estimates it without looking at anything but the releases. Nothing is spent: this is post-processing, and the promise of
the release is that of everything made here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.account.shuffling import TwoWeights
from tacit.arrays import Floats, Floats32, Ids
from tacit.errors import BadInputError

SMALLEST_SHARE = 1e-3
"""Directions with less than this share of the largest variance of cells are treated as if they had it."""
LEAST_DEVIATION = 1e-6
"""Of a count; copied labels are counted exactly, and nothing may be divided by zero."""


@dataclass(frozen=True)
class CellFeatures:
    """Public numbers of the cells of a codebook, (cells, dimension), adding up to zero in every column."""

    values: Floats32

    @classmethod
    def of(cls, centers: Floats32) -> CellFeatures:
        """The vectors of the cells with the same variance in every direction; about length 1."""
        wide = centers.astype(np.float64)
        centered = wide - wide.mean(axis=0)
        spread, directions = np.linalg.eigh(centered.T @ centered / len(centered))
        kept = np.maximum(spread, spread[-1] * SMALLEST_SHARE)
        white = centered @ (directions / np.sqrt(kept * len(kept)))
        return cls((white - white.mean(axis=0)).astype(np.float32))

    def of_texts(self, products: Floats32, s: int) -> Floats32:
        """H(x) of texts, from their products with the cells."""
        k = products.shape[1]
        least = np.partition(products, k - s, axis=1)[:, k - s]
        near = (products >= least[:, None]).astype(np.float32)
        mean: Floats32 = (near @ self.values) / near.sum(axis=1, keepdims=True)
        return mean


@dataclass(frozen=True)
class LabelChannel:
    """How released labels tell about the true ones: E[weights[z, y]] = 1(label = y) over released labels z, for text
    and label together; the same for counts, minus a constant for each release.

    text_weights, count_weights   (released labels, labels)
    count_offset                  of each release, for every label
    """

    text_weights: Floats
    count_weights: Floats
    count_offset: float

    @classmethod
    def joint(cls, labels: int, law: TwoWeights) -> LabelChannel:
        """Label and text are one choice of the law, whose outcomes are pairs."""
        gain, cells = (law.t - law.w) / law.total, law.outcomes // labels
        scale = 1.0 / (gain * law.near)
        offset = cells * law.w / law.total * scale
        return cls(np.eye(labels) * scale, np.eye(labels) * scale, offset)

    @classmethod
    def copied(cls, labels: int, law: TwoWeights) -> LabelChannel:
        """Labels stand beside the text as they are."""
        return cls(np.eye(labels) * _text_scale(law), np.eye(labels), 0.0)

    @classmethod
    def response(cls, labels: int, law: TwoWeights, truth: float, lie: float) -> LabelChannel:
        """Labels were randomized on their own: `truth` and `lie` are the probabilities of the true and of each false
        answer."""
        signed = (np.eye(labels) - lie) / (truth - lie)
        return cls(signed * _text_scale(law), np.eye(labels) / (truth - lie), lie / (truth - lie))


def _text_scale(law: TwoWeights) -> float:
    return law.total / ((law.t - law.w) * law.near)


@dataclass(frozen=True)
class LabelSums:
    """Unbiased estimates for every label, from which `tacit.matching.discriminant` makes a classifier as from a sketch.

    dense_sums   (labels, dimension): of H(x) over the records of a label
    counts       (labels,): records of a label
    table        (released labels, cells): how often each pair was released
    """

    labels: tuple[str, ...]
    dense_sums: Floats
    counts: Floats
    table: Floats
    channel: LabelChannel
    features: CellFeatures
    names: Floats

    def name_features(self) -> Floats:
        """How H of the labels' names differs from each other; zeros where names were not read."""
        return self.names

    @property
    def noise_variance(self) -> float:
        """The mean variance of a number of `dense_sums`."""
        return float(self.noise.mean())

    @property
    def count_deviation(self) -> float:
        """The standard deviation of the noise in `counts`, the same for all labels on average."""
        return max(LEAST_DEVIATION, math.sqrt(float(self.count_variance.mean())))

    @cached_property
    def noise(self) -> Floats:
        """The mean variance of a number of `dense_sums`, for every label."""
        lengths = (self.features.values.astype(np.float64) ** 2).mean(axis=1)
        return np.asarray((self.table @ lengths) @ self.channel.text_weights**2)

    def covariance(self, label: int) -> Floats:
        """The covariance of the sums of a label, (dimension, dimension); slightly too large rather than too small."""
        weights = (self.channel.text_weights[:, label] ** 2) @ self.table
        wide = self.features.values.astype(np.float64)
        return np.asarray((wide * weights[:, None]).T @ wide)

    @cached_property
    def count_variance(self) -> Floats:
        """The variance of each of `counts`, the numbers of releases being public."""
        released = self.table.sum(axis=1)
        total = released.sum()
        return np.asarray((released * (1 - released / total)) @ self.channel.count_weights**2) * (
            self.channel.count_offset > 0
        )


def label_sums(
    cells: Ids,
    labels: Ids,
    names: tuple[str, ...],
    channel: LabelChannel,
    features: CellFeatures,
    of_names: Floats32 | None = None,
) -> LabelSums:
    """The estimates from released cells and labels, as numbers.

    of_names   H of the names of the labels, read as public texts
    """
    if len(cells) == 0:
        raise BadInputError("no-rows", "{name} has no rows", name="the release")
    known, k = len(channel.text_weights), len(features.values)
    table = np.bincount(labels * k + cells, minlength=known * k).reshape(known, k).astype(np.float64)
    sums = channel.text_weights.T @ (table @ features.values.astype(np.float64))
    counts = channel.count_weights.T @ table.sum(axis=1) - channel.count_offset * len(cells)
    if of_names is None:
        differences = np.zeros((len(names), features.values.shape[1]))
    else:
        differences = of_names.astype(np.float64) - of_names.mean(axis=0, dtype=np.float64)
    return LabelSums(names, sums, counts, table, channel, features, differences)
