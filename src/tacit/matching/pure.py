"""Features for a promise without delta: few whole numbers of a text whose absolute values add up to at most 1.

Noise that keeps pure epsilon-differential privacy (`tacit.matching.pure_noise`) is measured against the sum of absolute
values, and a vector of length 1 in 256 dimensions may have a sum of 16. So the vector of a text is first projected to
few public directions, only its largest entries are kept, and these are brought to the sum that is allowed:

    z = whole-number vector of the text x whole-number matrix        (96 directions)
    all but the 16 largest |z_i| become 0; of equal ones the first are kept
    q_i = sign(z_i) floor(|z_i| B / s),   s = sum of the |z_i| that are left

Theorem. Whatever the text, the absolute values of all that a row adds, count included, sum up to at most `GRID` steps,
that is 1. Proof. The count is A, B = GRID - A, and the sum of |q_i| is at most the sum of |z_i| B / s, which is B. All
of it is integer arithmetic on a vector that is a function of the row alone.

Directions. For the static encoder: the first 96 principal directions of public sentences, turned (varimax; Kaiser 1958)
so that a sentence needs few of them; they come with Tacit (`tacit.matching.pure_build`). For any other encoder: random
signs from a public seed, which need no table and do worse. Dimension, kept entries and the weight of the count were
chosen at epsilon 1 on public corpora (CLINC150, movie-review sentences, drug reviews, Reuters R8, 20 Newsgroups).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from tacit.arrays import Integers, Integers32
from tacit.errors import BadParameterError
from tacit.matching.blocks import Block, EncoderBlock, other_version
from tacit.matching.features import L1, FeatureMap, TextFeatures, weighted_map
from tacit.matching.whole_numbers import GRID
from tacit.noise.source import public_generator

DIRECTIONS = 96
KEPT = 16
COUNT_WEIGHT = 0.05
ASSETS = Path(__file__).with_name("assets") / "directions"


@dataclass(frozen=True)
class PureMap(FeatureMap):
    """A public map from texts to whole-number features whose absolute values are bounded together.

    blocks          encoders, whose vectors are projected side by side
    count_weight    what a row adds to the count of its label; the features have the rest
    directions      how many numbers a text has
    kept            how many of them are not 0, at most
    matrix          a hash of the directions
    """

    directions: int = DIRECTIONS
    kept: int = KEPT
    matrix: str = ""

    norm: ClassVar[str] = L1

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(not isinstance(block, EncoderBlock) for block in self.blocks):
            raise BadParameterError("bad-blocks", "features without delta are made of the vectors of encoders alone")
        if not 1 <= self.kept <= self.directions:
            raise BadParameterError("bad-directions", "of all directions at least 1 is kept, and at most all are")
        if self.feature_steps < 1:
            raise BadParameterError("bad-weights", "all weights of a feature map lie between 0 and 1")

    @property
    def feature_steps(self) -> int:
        """The largest sum of absolute values of the features of a row, in steps: what the count leaves."""
        return GRID - self.count_steps

    @property
    def dense_dimension(self) -> int:
        return self.directions

    def features(self, texts: Sequence[str], *, alone: bool = False) -> TextFeatures:
        """The features of texts, from whole-number vectors that depend on one text each."""
        vectors = super().features(texts, alone=alone).dense
        matrix = public_directions(blocks_digest(self.blocks), vectors.shape[1], self.directions)
        if matrix_digest(matrix) != self.matrix:
            raise other_version("the table of public directions")
        empty = np.zeros(0, dtype=np.int64)
        return TextFeatures(projected(vectors, matrix, self.kept, self.feature_steps), empty, empty, empty, 0)

    def to_dict(self) -> dict[str, object]:
        projection = {"directions": self.directions, "kept": self.kept, "matrix": self.matrix}
        return {**super().to_dict(), "norm": self.norm, "projection": projection}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        usual = FeatureMap.from_dict(values)
        return cls(usual.blocks, usual.count_weight, **values["projection"])


def pure_map(
    encoders: Sequence[str] = ("static",),
    *,
    directions: int = DIRECTIONS,
    kept: int = KEPT,
    count: float = COUNT_WEIGHT,
) -> PureMap:
    """The usual map for a promise without delta."""
    blocks = weighted_map([(name, 1.0) for name in encoders], count=count).blocks
    inputs = sum(block.dimension for block in blocks)
    matrix = public_directions(blocks_digest(blocks), inputs, directions)
    return PureMap(blocks, count, directions, kept, matrix_digest(matrix))


def projected(vectors: Integers32, matrix: Integers, kept: int, bound: int) -> Integers32:
    """Whole numbers (texts, directions), at most `kept` of a text not 0, with absolute values that sum up to `bound` at
    most; proof in the module."""
    # Products of whole numbers: below 2**53 in all, so that double precision adds them without rounding.
    whole = (vectors.astype(np.float64) @ matrix.astype(np.float64)).astype(np.int64)
    size = np.abs(whole)
    order = np.argsort(-size, axis=1, kind="stable")
    np.put_along_axis(size, order[:, kept:], 0, axis=1)
    total = np.maximum(size.sum(axis=1, keepdims=True), 1)
    return np.asarray(np.sign(whole) * (size * bound // total), dtype=np.int32)


# Directions ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def public_directions(blocks: str, inputs: int, directions: int) -> Integers:
    """The public matrix (inputs, directions) of whole numbers for the vectors of some encoders."""
    path = ASSETS / f"{blocks}.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as arrays:
            matrix = arrays["matrix"].astype(np.int64)
        if matrix.shape[0] == inputs and matrix.shape[1] >= directions:
            return np.asarray(matrix[:, :directions])
    signs = public_generator(0).integers(0, 2, size=(inputs, directions))
    return np.asarray(2 * signs - 1, dtype=np.int64)


def matrix_digest(matrix: Integers) -> str:
    """A hash of a matrix of whole numbers."""
    content = f"{matrix.shape}".encode() + np.ascontiguousarray(matrix, dtype="<i8").tobytes()
    return hashlib.sha256(content).hexdigest()[:32]


def blocks_digest(blocks: Sequence[Block]) -> str:
    """A hash of what decides about the vectors that are projected, their weights aside."""
    facts = [{**asdict(block), "weight": 1.0} for block in blocks]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]
