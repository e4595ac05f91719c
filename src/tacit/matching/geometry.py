"""The geometry of an encoder's vectors in a sketch: where noise of one size in every direction does the least harm.

    g(x) = u / |u|,   u = W (f(x) - mean),   W = C^power

with the mean and the covariance C of the vectors of public sentences. Vectors have a common part, which tells nothing
about a label and would use up most of the length that a row may have: the mean is always taken away. What to do about
directions that spread far beside those that spread little depends on what the vectors mean.

    common words, embeddings   power -1/4 takes half of the difference away: a fourth root, not the square root that
                               would make all alike
    static encoder             power 0, W = 1: it was trained until its angles are those of a sentence encoder, so the
                               directions in which it spreads are those that matter. Powers of -.08, -.15, -.25, -.35
                               and -.45 were tried, with a prototype of that encoder, on public corpora with 6 to 150
                               labels; 0 did best

Exactness. f(x) is taken as whole numbers of 2**-14, mean and W are whole numbers too, and their product is added in
double precision without rounding, so g(x) is the same bit for bit whatever else stands in the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from tacit.arrays import Floats, Floats32, Integers
from tacit.matching.whole_numbers import VECTOR_BITS, within_one

MATRIX_BITS = 12
PRODUCT_BITS = 8
"""Bits of a product that are dropped before its length is computed, so that squares are added without rounding."""
POWER = -0.25
ENCODER_POWER = 0.0
SMALLEST_SHARE = 1e-3
"""Directions with less than this share of the largest variance are treated as if they had it."""
ASSETS = Path(__file__).with_name("assets") / "geometry"


@dataclass(frozen=True)
class Geometry:
    """Mean (dimension,) in whole numbers of 2**-14, and matrix (dimension, dimension) in whole numbers of 2**-12."""

    mean: Integers
    matrix: Integers

    def apply(self, vectors: Floats32) -> Floats:
        """Unit vectors g(x) of vectors f(x); a vector of zeros stays one."""
        whole = np.trunc(within_one(vectors) * 2.0**VECTOR_BITS)
        turned = (whole - self.mean) @ self.matrix.astype(np.float64)
        short = np.trunc(turned * 2.0**-PRODUCT_BITS)
        length = np.sqrt(np.add.reduce(short * short, axis=1, keepdims=True))
        length[(length == 0) | ~whole.any(axis=1, keepdims=True)] = np.inf
        return np.asarray(short / length)


def fitted_geometry(vectors: Floats32, power: float = POWER) -> Geometry:
    """The geometry of public vectors."""
    wide = np.asarray(vectors, dtype=np.float64)
    spread, directions = np.linalg.eigh(np.cov(wide.T))
    kept = np.maximum(spread, spread[-1] * SMALLEST_SHARE)
    matrix = (directions * kept**power) @ directions.T
    mean = np.rint(wide.mean(axis=0) * 2.0**VECTOR_BITS)
    return Geometry(mean.astype(np.int64), np.rint(matrix * 2.0**MATRIX_BITS).astype(np.int64))


def save_geometry(geometry: Geometry, path: Path) -> None:
    """Write a geometry as an asset of the package."""
    np.savez_compressed(path, mean=geometry.mean.astype(np.int32), matrix=geometry.matrix.astype(np.int32))


@lru_cache(maxsize=4)
def known_geometry(digest: str) -> Geometry | None:
    """The geometry of the encoder with this digest, if it comes with Tacit."""
    path = ASSETS / f"{digest}.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as arrays:
        return Geometry(arrays["mean"].astype(np.int64), arrays["matrix"].astype(np.int64))
