"""Blocks of features: public functions from a text to whole numbers of bounded length.

    EncoderBlock       the vector of a sentence encoder
    FourierBlock       random Fourier features of such a vector: the shape of a cloud, not only its center
    CommonWordsBlock   which of 200 very common words occur: the form of a text rather than its topic
    WordsBlock         which words of a large public vocabulary occur, weighted by their rarity

`tacit.matching.features` puts them together and proves their bounds.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np

from tacit.arrays import Floats, Floats32, Integers, Integers32
from tacit.encoders import Encoder, is_batch_independent, load_encoder
from tacit.errors import BadInputError, BadParameterError
from tacit.matching.common_words import known_common_words
from tacit.matching.geometry import known_geometry
from tacit.matching.whole_numbers import VECTOR_BITS, bound_of, bounded_steps, in_parts, root_above, whole_vectors
from tacit.matching.words import load_vocabulary, words_of
from tacit.noise.source import public_generator

ANGLE_BITS = 16
FREQUENCY_BITS = 20


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
            raise other_version(f"the geometry of the encoder '{self.encoder}'")
        bound = bound_of(self.weight)
        return in_parts(lambda part: bounded_steps(geometry.apply(part), bound), vectors)


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


@dataclass(frozen=True)
class CommonWordsBlock:
    """Which of the most common words occur, such as question words, negations and pronouns (`matching.common_words`).

    The form of a text, which a sentence encoder that adds up words hardly sees.
    """

    weight: float
    dimension: int
    digest: str

    kind: ClassVar[str] = "common words"

    @classmethod
    def of(cls, weight: float = 1.0) -> Self:
        common = known_common_words()
        return cls(weight, len(common), common.digest)

    def steps(self, texts: Sequence[str]) -> Integers32:
        """The features of texts; all zero for a text without any of the words."""
        common = known_common_words()
        if common.digest != self.digest:
            raise other_version("the list of common words")
        bound = bound_of(self.weight)
        return in_parts(lambda part: bounded_steps(common.geometry.apply(part), bound), common.occurrences(texts))


Block = EncoderBlock | FourierBlock | CommonWordsBlock | WordsBlock
KINDS: Mapping[str, type[Block]] = {
    kind.kind: kind for kind in (EncoderBlock, FourierBlock, CommonWordsBlock, WordsBlock)
}


# Fourier features ----------------------------------------------------------------------------------------------------


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


# Encoders ------------------------------------------------------------------------------------------------------------


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


def other_version(what: str) -> BadInputError:
    return BadInputError(
        "other-features", "{what} is not the one that this sketch was made with: use the same version", what=what
    )
