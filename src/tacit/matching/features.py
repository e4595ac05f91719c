"""The feature map: what one text adds to the sums of a sketch, as whole numbers of bounded length.

A row adds one vector to the sums of its label: the features of its text, block by block, and at the end a number that
counts it. All of them are whole numbers of steps; one step is 1 / `GRID`.

    encoder   the vector of a sentence encoder
    fourier   random Fourier features of such a vector: the shape of a cloud, not only its center (Rahimi & Recht 2007)
    common    which of 200 very common words occur: the form of a text rather than its topic
    words     which words of a public vocabulary occur, weighted by their rarity

Theorem. Whatever the text, the length of the vector that a row adds is at most `GRID` steps, that is 1. So adding or
removing one row moves all sums together by at most 1 in Euclidean length, without any rounding slack.

Proof. Block b has a public weight w_b, and B_b = floor(w_b GRID) is its bound in steps; A = floor(a GRID) is what a row
adds to the count. `FeatureMap` refuses weights for which  A^2 + sum of B_b^2 > GRID^2, in integer arithmetic. It is
left to show that the whole numbers q of block b satisfy  sum q_i^2 <= B_b^2:

* encoder, common: q = trunc(B v); then s = sum q_i^2 is computed with integers. If s > B^2 every q_i is replaced by
  sign(q_i) floor(|q_i| B / r) with the integer r = floor(sqrt(s)) + 1 > sqrt(s), so the new sum of squares is at most
  s B^2 / r^2 < B^2. This holds for any numbers v that an encoder may give (what is not a number counts as 0).
* words: g_i are the positive integer weights of the words that occur, s = sum g_i^2 and r the integer with
  r >= sqrt(s). q_i = floor(B g_i / r), so the sum of squares is at most B^2 s / r^2 <= B^2.
* fourier: for each of F frequencies the pair (cos, sin) is looked up in a table of whole numbers at one of 65,536
  angles; the table is refused unless F (cos^2 + sin^2) <= B^2 at every angle, again with integers.

A row's vector must also be a function of the row alone, or a neighbor could change the rounding of other rows. It is:
the static encoder is exact in any batch; of an encoder that is not, `features` computes each text alone when told to
(`alone=True`, as the private step does); angles and topics come from products of whole numbers that double precision
adds without rounding.

Sums of whole numbers do not depend on their order, so sketches of parts add up to that of the whole.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from tacit.arrays import Floats32, Integers, Integers32
from tacit.encoders import Encoder, encoder_provenance
from tacit.errors import BadParameterError
from tacit.guarantee import Provenance
from tacit.matching.blocks import (
    KINDS,
    Block,
    CommonWordsBlock,
    EncoderBlock,
    FourierBlock,
    WordsBlock,
    encoder_digest,
    known_encoder,
    other_version,
    vectors_of,
)
from tacit.matching.common_words import known_common_words
from tacit.matching.whole_numbers import GRID, bound_of
from tacit.matching.words import load_vocabulary

LONGEST_CHARACTERS = 20_000
"""Of a longer text only the beginning is read."""
L1, L2 = "l1", "l2"
"""How the contribution of one row is measured: by the sum of its absolute values, or by its Euclidean length."""
COUNT_WEIGHT = 0.2
COMMON_WORDS_WEIGHT = 0.25
"""Weights of the usual map. They were chosen on public corpora (`docs/matching.md`)."""
COMMON, RARE = WORDS = CommonWordsBlock.kind, WordsBlock.kind


@dataclass(frozen=True)
class TextFeatures:
    """Features of some texts in steps: dense blocks side by side, then the words as (row, word, steps)."""

    dense: Integers32
    rows: Integers
    words: Integers
    word_steps: Integers
    vocabulary: int

    def __len__(self) -> int:
        return len(self.dense)

    def dense_values(self) -> Floats32:
        """The dense features as numbers."""
        return (self.dense * np.float32(1 / GRID)).astype(np.float32)

    def squared_lengths(self) -> Integers:
        """The exact squared length of each row, in steps."""
        dense = self.dense.astype(np.int64)
        squares = np.zeros(len(self), dtype=np.int64)
        np.add.at(squares, self.rows, self.word_steps**2)
        return np.asarray((dense * dense).sum(axis=1) + squares)


@dataclass(frozen=True)
class FeatureMap:
    """A public map from texts to bounded whole-number features.

    blocks         dense blocks first, then at most one words block
    count_weight   what a row adds to the count of its label
    """

    blocks: tuple[Block, ...]
    count_weight: float

    norm: ClassVar[str] = L2

    def __post_init__(self) -> None:
        kinds = [block.kind for block in self.blocks]
        if not kinds or RARE in kinds[:-1]:
            raise BadParameterError(
                "bad-blocks", "a feature map has at least one block, and the words block stands last"
            )
        weights = [self.count_weight, *(block.weight for block in self.blocks)]
        if not all(0 < weight <= 1 for weight in weights):
            raise BadParameterError("bad-weights", "all weights of a feature map lie between 0 and 1")
        if sum(bound_of(weight) ** 2 for weight in weights) > GRID**2 or min(map(bound_of, weights)) < 1:
            raise BadParameterError(
                "weights-too-large",
                "the squares of all weights of a feature map must add up to at most 1, or one row could move the sums "
                "by more than that",
            )

    @property
    def dense_dimension(self) -> int:
        return sum(block.dimension for block in self.blocks if block.kind != RARE)

    @property
    def vocabulary(self) -> int:
        """The number of words, 0 without a words block."""
        return sum(block.dimension for block in self.blocks if block.kind == RARE)

    @property
    def dimension(self) -> int:
        """All features of a row, without its count."""
        return self.dense_dimension + self.vocabulary

    @property
    def count_steps(self) -> int:
        """The steps that a row adds to the count of its label."""
        return bound_of(self.count_weight)

    def places(self) -> list[tuple[Block, slice]]:
        """The blocks with their columns."""
        ends = np.cumsum([0, *(block.dimension for block in self.blocks)]).tolist()
        return [(block, slice(start, end)) for block, start, end in zip(self.blocks, ends[:-1], ends[1:], strict=True)]

    def features(self, texts: Sequence[str], *, alone: bool = False) -> TextFeatures:
        """The features of texts. With `alone` each text is computed without the others wherever that can matter: the
        private step needs it, public sentences do not."""
        cut = [text[:LONGEST_CHARACTERS] for text in texts]
        vectors: dict[str, Floats32] = {}
        parts: list[Integers32] = [np.zeros((len(cut), 0), dtype=np.int32)]
        empty = np.zeros(0, dtype=np.int64)
        rows, words, steps = empty, empty, empty
        for block in self.blocks:
            if isinstance(block, WordsBlock):
                if load_vocabulary(block.size).digest != block.digest:
                    raise other_version("the vocabulary of the words block")
                rows, words, steps = block.entries(cut)
            elif isinstance(block, CommonWordsBlock):
                parts.append(block.steps(cut))
            else:
                if block.encoder not in vectors:
                    vectors[block.encoder] = vectors_of(self._encoder(block.encoder), cut, alone=alone)
                parts.append(block.steps(vectors[block.encoder]))
        return TextFeatures(np.concatenate(parts, axis=1), rows, words, steps, self.vocabulary)

    def _encoder(self, name: str) -> Encoder:
        """The encoder of that name, if it is the one that this map was made with."""
        encoder = known_encoder(name)
        for block in self.blocks:
            if isinstance(block, EncoderBlock) and block.encoder == name and block.digest != encoder_digest(encoder):
                raise other_version(f"the encoder '{name}'")
            if isinstance(block, FourierBlock) and block.encoder == name:
                again = FourierBlock.of(name, block.weight, block.frequencies, block.bandwidth, block.seed)
                if again.digest != block.digest:
                    raise other_version(f"the encoder '{name}' or its frequencies")
        return encoder

    def provenance(self) -> tuple[Provenance, ...]:
        """The lines of a card that uses this map."""
        names = dict.fromkeys(block.encoder for block in self.blocks if isinstance(block, EncoderBlock | FourierBlock))
        lines = [encoder_provenance(name) for name in names]
        if any(isinstance(block, CommonWordsBlock) for block in self.blocks):
            lines.append(known_common_words().provenance())
        if self.vocabulary:
            lines.append(
                Provenance(
                    "words", f"{self.vocabulary:,} words of GloVe 6B (PDDL 1.0), weights counted on the general pool"
                )
            )
        return tuple(lines)

    def to_dict(self) -> dict[str, object]:
        """The map as plain values; they say all that decides about the features of a text."""
        blocks = [{"kind": block.kind, **asdict(block)} for block in self.blocks]
        return {"grid": GRID, "characters": LONGEST_CHARACTERS, "count_weight": self.count_weight, "blocks": blocks}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        if values["grid"] != GRID or values["characters"] != LONGEST_CHARACTERS:
            raise other_version("the grid of its features")
        blocks = []
        for block in values["blocks"]:
            fields = dict(block)
            blocks.append(KINDS[fields.pop("kind")](**fields))
        return cls(tuple(blocks), values["count_weight"])

    @cached_property
    def digest(self) -> str:
        """A hash of everything that decides about the features of a text."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:32]


def default_map(encoders: Sequence[str] = ("static",), *, words: int = 0) -> FeatureMap:
    """The usual map: encoders, common words, and so many rare words of the vocabulary.

    No rare words by default: on public corpora a budget spent on them was missing in the vectors, which say more about
    a label (`docs/matching.md`).
    """
    parts = [*((name, 1.0) for name in encoders), (COMMON, COMMON_WORDS_WEIGHT)]
    return weighted_map([*parts, (RARE, 0.6)] if words else parts, count=COUNT_WEIGHT, words=words or None)


def weighted_map(weights: Sequence[tuple[str, float]], *, count: float, words: int | None = None) -> FeatureMap:
    """A map of encoders by name and the blocks "common words" and "words", whose weights are scaled to use all that
    `count` leaves."""
    scale = math.sqrt((1 - count**2) / math.fsum(weight**2 for _, weight in weights))
    blocks: list[Block] = [EncoderBlock.of(name, weight * scale) for name, weight in weights if name not in WORDS]
    blocks += [CommonWordsBlock.of(weight * scale) for name, weight in weights if name == COMMON]
    blocks += [WordsBlock.of(weight * scale, words) for name, weight in weights if name == RARE]
    return FeatureMap(tuple(blocks), count)
