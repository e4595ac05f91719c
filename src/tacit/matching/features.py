"""The feature map: what one text adds to the sums of a sketch, as whole numbers of bounded length.

A row adds one vector to the sums of its label: the features of its text, block by block, and at the end a number that
counts it. All of them are whole numbers of steps; one step is 1 / `GRID`.

    encoder   the vector of a sentence encoder
    fourier   random Fourier features of such a vector: the shape of a cloud, not only its center (Rahimi & Recht 2007)
    words     which words of a public vocabulary occur, weighted by their rarity

Theorem. Whatever the text, the length of the vector that a row adds is at most `GRID` steps, that is 1. So adding or
removing one row moves all sums together by at most 1 in Euclidean length, without any rounding slack.

Proof. Block b has a public weight w_b, and B_b = floor(w_b GRID) is its bound in steps; A = floor(a GRID) is what a row
adds to the count. `FeatureMap` refuses weights for which  A^2 + sum of B_b^2 > GRID^2, in integer arithmetic. It is
left to show that the whole numbers q of block b satisfy  sum q_i^2 <= B_b^2:

* encoder: q = trunc(B v); then s = sum q_i^2 is computed with integers. If s > B^2 every q_i is replaced by
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
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Floats32, Integers, Integers32
from tacit.encoders import Encoder, encoder_provenance, is_batch_independent, load_encoder
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Provenance
from tacit.matching.geometry import known_geometry
from tacit.matching.words import load_vocabulary, words_of
from tacit.noise.source import public_generator

GRID = 1 << 14
"""Steps of one unit."""
LONGEST_CHARACTERS = 20_000
"""Of a longer text only the beginning is read."""
ANGLE_BITS = 16
FREQUENCY_BITS = 20
L1, L2 = "l1", "l2"
"""How the contribution of one row is measured: by the sum of its absolute values, or by its Euclidean length."""
VECTOR_BITS = 14


# Blocks -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EncoderBlock:
    """The vector of a sentence encoder. `digest` and `dimension` say which; `EncoderBlock.of` finds them out.

    balanced   the vector is taken in the public geometry of its encoder (`tacit.matching.geometry`)
    """

    encoder: str
    weight: float
    dimension: int
    digest: str
    balanced: bool = False

    kind: ClassVar[str] = "encoder"

    @classmethod
    def of(cls, encoder: str = "static", weight: float = 1.0) -> Self:
        loaded = known_encoder(encoder)
        digest = encoder_digest(loaded)
        return cls(encoder, weight, loaded.dimension, digest, known_geometry(digest) is not None)

    def steps(self, vectors: Floats32) -> Integers32:
        """The features of texts with these vectors."""
        if not self.balanced:
            return bounded_steps(vectors, bound_of(self.weight))
        geometry = known_geometry(self.digest)
        if geometry is None:
            raise _other_version(f"the geometry of the encoder '{self.encoder}'")
        return bounded_steps(geometry.apply(vectors), bound_of(self.weight))


@dataclass(frozen=True)
class FourierBlock:
    """cos(w . v) and sin(w . v) of an encoder's vector v for random frequencies w ~ N(0, 1 / bandwidth^2)."""

    encoder: str
    weight: float
    frequencies: int
    bandwidth: float
    seed: int
    digest: str

    kind: ClassVar[str] = "fourier"

    @classmethod
    def of(
        cls,
        encoder: str = "static",
        weight: float = 1.0,
        frequencies: int = 256,
        bandwidth: float = 0.7,
        seed: int = 0,
    ) -> Self:
        if frequencies < 1 or not 0.01 <= bandwidth <= 100:
            raise BadParameterError(
                "bad-frequencies", "a Fourier block has at least 1 frequency and a bandwidth of 0.01 to 100"
            )
        loaded = known_encoder(encoder)
        drawn = _frequencies(loaded.dimension, frequencies, bandwidth, seed)
        digest = hashlib.sha256(encoder_digest(loaded).encode() + drawn.tobytes()).hexdigest()[:32]
        return cls(encoder, weight, frequencies, bandwidth, seed, digest)

    @property
    def dimension(self) -> int:
        return 2 * self.frequencies

    def steps(self, vectors: Floats32) -> Integers32:
        """The features of texts with these vectors; all zero for a text without one."""
        cosines, sines = _angle_tables(bound_of(self.weight), self.frequencies)
        drawn = _frequencies(vectors.shape[1], self.frequencies, self.bandwidth, self.seed)
        whole = whole_vectors(vectors)
        angles = turned(whole @ drawn)
        steps = np.concatenate([cosines[angles], sines[angles]], axis=1)
        steps[~whole.any(axis=1)] = 0
        return steps


@dataclass(frozen=True)
class WordsBlock:
    """Which of the first `size` words of the public vocabulary occur, by their rarity, brought to one length."""

    weight: float
    size: int
    digest: str

    kind: ClassVar[str] = "words"

    @classmethod
    def of(cls, weight: float = 1.0, size: int | None = None) -> Self:
        vocabulary = load_vocabulary(size)
        return cls(weight, len(vocabulary), vocabulary.digest)

    @property
    def dimension(self) -> int:
        return self.size

    def entries(self, texts: Sequence[str]) -> tuple[Integers, Integers, Integers]:
        """(row, word, steps) of all features that are not zero, row by row."""
        vocabulary = load_vocabulary(self.size)
        places = vocabulary.places
        known = [sorted({places[word] for word in words_of(text) if word in places}) for text in texts]
        rows = np.repeat(np.arange(len(texts)), [len(words) for words in known])
        words = np.fromiter((word for each in known for word in each), dtype=np.int64, count=len(rows))
        rarity = vocabulary.weights[words]
        squares = np.bincount(rows, weights=rarity * rarity, minlength=len(texts)).astype(np.int64)
        return rows, words, bound_of(self.weight) * rarity // np.maximum(root_above(squares), 1)[rows]


Block = EncoderBlock | FourierBlock | WordsBlock
KINDS: Mapping[str, type[EncoderBlock] | type[FourierBlock] | type[WordsBlock]] = {
    kind.kind: kind for kind in (EncoderBlock, FourierBlock, WordsBlock)
}


# The map ------------------------------------------------------------------------------------------------------------


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

    def word_values(self) -> Any:
        """The words features as a sparse matrix of numbers (scipy, CSR)."""
        from scipy.sparse import csr_matrix

        values = (self.word_steps / GRID).astype(np.float32)
        return csr_matrix((values, (self.rows, self.words)), shape=(len(self), self.vocabulary))

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
        if not kinds or "words" in kinds[:-1]:
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
        return sum(block.dimension for block in self.blocks if block.kind != "words")

    @property
    def vocabulary(self) -> int:
        """The number of words, 0 without a words block."""
        return sum(block.dimension for block in self.blocks if block.kind == "words")

    @property
    def dimension(self) -> int:
        """All features of a row, without its count."""
        return self.dense_dimension + self.vocabulary

    @property
    def count_steps(self) -> int:
        """What a row adds to the count of its label, in steps."""
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
                    raise _other_version("the vocabulary of the words block")
                rows, words, steps = block.entries(cut)
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
                raise _other_version(f"the encoder '{name}'")
            if isinstance(block, FourierBlock) and block.encoder == name:
                again = FourierBlock.of(name, block.weight, block.frequencies, block.bandwidth, block.seed)
                if again.digest != block.digest:
                    raise _other_version(f"the encoder '{name}' or its frequencies")
        return encoder

    def provenance(self) -> tuple[Provenance, ...]:
        """The lines of a card that uses this map."""
        names = dict.fromkeys(block.encoder for block in self.blocks if not isinstance(block, WordsBlock))
        lines = [encoder_provenance(name) for name in names]
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
            raise _other_version("the grid of its features")
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
    """The usual map: encoders, and so many words of the vocabulary.

    No words by default: on public corpora a budget spent on words was missing in the vectors, which say more about a
    label (`docs/matching.md`).
    """
    return weighted_map(
        [*((name, 1.0) for name in encoders), *([("words", 0.6)] if words else [])], count=0.2, words=words or None
    )


def weighted_map(weights: Sequence[tuple[str, float]], *, count: float, words: int | None = None) -> FeatureMap:
    """A map of encoders by name and the block "words", whose weights are scaled to use all that `count` leaves."""
    scale = math.sqrt((1 - count**2) / math.fsum(weight**2 for _, weight in weights))
    dense = [EncoderBlock.of(name, weight * scale) for name, weight in weights if name != "words"]
    last = [WordsBlock.of(weight * scale, words) for name, weight in weights if name == "words"]
    return FeatureMap((*dense, *last), count)


# Whole numbers ------------------------------------------------------------------------------------------------------


def bound_of(weight: float) -> int:
    """The largest whole number of steps that a weight allows."""
    return math.floor(weight * GRID)


def root_above(squares: Integers) -> Integers:
    """The least whole numbers whose squares are at least these (below 2**52)."""
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    roots -= roots * roots >= squares
    roots = np.maximum(roots, 0)
    while (low := roots * roots < squares).any():
        roots += low
    return roots


def bounded_steps(values: NDArray[np.floating], bound: int) -> Integers32:
    """Rows of numbers as whole steps, none longer than `bound`; proof in the module."""
    wide = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, posinf=1.0, neginf=-1.0)
    steps = np.trunc(np.clip(wide, -1.0, 1.0) * bound).astype(np.int64)
    return shortened(steps, bound).astype(np.int32)


def shortened(steps: Integers, bound: int) -> Integers:
    """Rows of whole numbers, those longer than `bound` brought below it; all in integer arithmetic.

    Exact for rows whose squared length is below 2**62.
    """
    squares = (steps * steps).sum(axis=1)
    long = np.flatnonzero(squares > bound * bound)
    if long.size:
        above = np.array([math.isqrt(int(square)) + 1 for square in squares[long]], dtype=np.int64)[:, None]
        part = steps[long]
        steps = steps.copy()
        steps[long] = np.sign(part) * (np.abs(part) * bound // above)
    return steps


def whole_vectors(vectors: NDArray[np.floating]) -> Floats:
    """Unit vectors as whole numbers of 2**-14, in doubles: products with whole numbers are added without rounding."""
    return bounded_steps(vectors, 1 << VECTOR_BITS).astype(np.float64)


def turned(products: Floats) -> Integers:
    """Angles in 65,536ths of a turn, from whole numbers of 2**-34 turns."""
    shift = VECTOR_BITS + FREQUENCY_BITS - ANGLE_BITS
    whole = products.astype(np.int64) + (1 << (shift - 1))
    return np.asarray((whole >> shift) & ((1 << ANGLE_BITS) - 1))


@lru_cache(maxsize=8)
def _frequencies(dimension: int, count: int, bandwidth: float, seed: int) -> Floats:
    """Frequencies in whole numbers of 2**-20 turns per unit, one column each; at most 64 turns."""
    drawn = public_generator(seed).standard_normal((dimension, count)) / (bandwidth * 2 * math.pi)
    return np.clip(np.rint(drawn * 2.0**FREQUENCY_BITS), -(2.0**26), 2.0**26)


@lru_cache(maxsize=8)
def _angle_tables(bound: int, frequencies: int) -> tuple[Integers32, Integers32]:
    """Cosine and sine at every angle in steps, so short that all pairs together are no longer than `bound`."""
    size = 1 << ANGLE_BITS
    scale = bound / math.sqrt(frequencies)
    turns = np.arange(size) * (2 * math.pi / size)
    cosines = np.trunc(scale * np.cos(turns)).astype(np.int64)
    sines = np.trunc(scale * np.sin(turns)).astype(np.int64)
    while int((cosines**2 + sines**2).max()) * frequencies > bound * bound:
        # Rounding put a value one step too far: take one step off the longest ones.
        far = (cosines**2 + sines**2) * frequencies > bound * bound
        cosines[far] -= np.sign(cosines[far])
        sines[far] -= np.sign(sines[far])
    return cosines.astype(np.int32), sines.astype(np.int32)


# Encoders -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def known_encoder(name: str) -> Encoder:
    """The encoder of that name, kept for the next block of texts."""
    return load_encoder(name)


def encoder_digest(encoder: Encoder) -> str:
    """By which an encoder is recognized: its own digest, or its name."""
    return str(getattr(encoder, "digest", encoder.name))


def vectors_of(encoder: Encoder, texts: Sequence[str], *, alone: bool) -> Floats32:
    """The vectors of texts; empty texts have the vector 0, whatever the encoder says."""
    if not texts:
        return np.zeros((0, encoder.dimension), dtype=np.float32)
    if alone and not is_batch_independent(encoder):
        vectors = np.stack([encoder.encode_alone(text) for text in texts])
    else:
        vectors = np.array(encoder.encode(texts))
    vectors[[not text.strip() for text in texts]] = 0.0
    return vectors


def _other_version(what: str) -> BadInputError:
    return BadInputError(
        "other-features", "{what} is not the one that this sketch was made with: use the same version", what=what
    )
