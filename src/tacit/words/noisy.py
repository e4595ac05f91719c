"""Noise on the vector, then a word near the noisy vector.

    word x --> phi(x) + noise --> mapping --> word

Only the noise is private; the mapping sees the noisy vector and public data, never the input word, so it is
post-processing and costs nothing. (Published code that excludes the input word from the candidates is not.)

Mappings:
    nearest           the nearest vocabulary word
    first-or-second   one of the two nearest n1, n2 (distances d1, d2), P(n1) = (1 - t) d2 / (t d1 + (1 - t) d2);
                      with more `neighbors`, one of k with probability proportional to exp(-t d_i)
    none              the noisy vectors themselves (`release_vectors`)

Noise is drawn in single precision. Only a word leaves, so the fine structure of floating-point numbers is not visible;
what stays idealized is said in docs/floating-point.md and on the card.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Ids
from tacit.checks import Check, MadeUpWords, VectorSamples, WordSamples
from tacit.guarantee import Guarantee
from tacit.mechanism import as_texts
from tacit.needs import SEARCH, Ability
from tacit.noise.multivariate import multivariate_laplace
from tacit.noise.source import Source, new_source
from tacit.parameters import EpsilonRange, parameter
from tacit.vectors.search import Neighbors
from tacit.words.base import (
    WordMechanism,
)

BLOCK_TOKENS = 8192
GRID_BITS = 20
IDEALIZED = (
    "the computed noise follows its mathematical distribution (drawn in single precision; only words are released, see "
    "the page on floating point)"
)


IDEALIZED_VECTORS = (
    "the computed noise follows its mathematical distribution (drawn in double precision, released on a public grid)"
)


MAPPINGS = ("nearest", "first-or-second")


def _needs_of_approximate(value: str) -> list[Ability]:
    return [SEARCH] if value.lower() in ("yes", "true", "1", "on") else []


@dataclass(kw_only=True, eq=False)
class NoisyWords(WordMechanism):
    """Parameters of the mapping from a noisy vector to a word.

    mapping       "nearest" or "first-or-second"
    t             with first-or-second: 0 always takes the first, 1 always the second
    neighbors     with first-or-second: how many nearest words to choose among
    approximate   search with an approximate index (faster for very large vocabularies; free of privacy cost)
    """

    mapping: str = parameter("nearest", choices=MAPPINGS)
    t: float = parameter(0.75, low=0.0, high=1.0)
    neighbors: int = parameter(2, low=2, service_most=100)
    approximate: bool = parameter(False, needs=_needs_of_approximate)

    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(8.0, 2.0, 40.0)

    def checks(self) -> tuple[Check, ...]:
        return (WordSamples(), VectorSamples(), MadeUpWords())

    @abstractmethod
    def promise_assuming(self, idealized: str) -> Guarantee:
        """The guarantee of one token, with what it assumes of the arithmetic of the noise."""

    def promise(self) -> Guarantee:
        return self.promise_assuming(IDEALIZED)

    @property
    @abstractmethod
    def exact_space(self) -> NDArray[np.floating]:
        """The vocabulary in the space where the noise is the same in all directions."""

    @cached_property
    def space(self) -> NDArray[np.float32]:
        """The same in single precision, which is what the noise is added to."""
        return np.asarray(self.exact_space, dtype=np.float32)

    @cached_property
    def rounding(self) -> float:
        """The distance by which single precision moves a vector at most: two words may be twice that farther apart."""
        moved = np.subtract(self.exact_space, self.space, dtype=np.float64)
        return float(np.sqrt(np.einsum("ij,ij->i", moved, moved).max()))

    def _slack(self) -> float:
        return 2.0 * self.noise_epsilon * self.rounding

    @property
    def told_elsewhere(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset() if self.mapping == "first-or-second" else frozenset({"t", "neighbors"})

    @property
    @abstractmethod
    def noise_epsilon(self) -> float:
        """epsilon of the noise density exp(-epsilon |z|) in that space."""

    @cached_property
    def search(self) -> Neighbors:
        return Neighbors(self.space, approximate=self.approximate)

    def prepare(self) -> None:
        super().prepare()
        self._load("search")

    def draw(self, ids: Ids, source: Source) -> Ids:
        drawn = np.empty(len(ids), dtype=np.int64)
        for start in range(0, len(ids), BLOCK_TOKENS):
            block = slice(start, start + BLOCK_TOKENS)
            drawn[block] = self._map(self._noisy(ids[block], source), source)
        return drawn

    def release_vectors(self, texts: str | Iterable[str]) -> tuple[list[NDArray[np.float64]], Guarantee]:
        """No mapping: the noisy vectors of each text, (tokens, dimensions), and the guarantee they carry.

        Released numbers lie on a public grid (multiples of a power of two far below the noise), so that their low
        bits say nothing about the word.
        """
        source = new_source(self.seed)
        self.prepare()
        vectors = self.vectors_of_texts(as_texts(texts), source)
        return vectors, self.guarantee_of_vectors(secure=source.secure)

    def vectors_of_texts(self, texts: Sequence[str], source: Source) -> list[NDArray[np.float64]]:
        """The noisy vectors of each text, (tokens, dimensions), on the public grid."""
        ids, lengths = self.token_ids(texts)
        return np.split(self.noisy_vectors(ids, source), np.cumsum(lengths)[:-1]) if texts else []

    def guarantee_of_vectors(self, *, secure: bool | None = None) -> Guarantee:
        """The guarantee of `noisy_vectors` for one token."""
        return self._unless_seeded(self.promise_assuming(IDEALIZED_VECTORS), secure)

    def noisy_vectors(self, ids: Ids, source: Source) -> NDArray[np.float64]:
        """The noisy vector of each word, on the public grid."""
        noise = multivariate_laplace(len(ids), self.space.shape[1], self.noise_epsilon, source, dtype=np.float64)
        grid = 2.0 ** (np.floor(np.log2(1.0 / self.noise_epsilon)) - GRID_BITS)
        return np.asarray(np.rint((self.space[ids] + noise) / grid) * grid)

    def _noisy(self, ids: Ids, source: Source) -> NDArray[np.float32]:
        noise: NDArray[np.float32] = multivariate_laplace(len(ids), self.space.shape[1], self.noise_epsilon, source)
        noise += self.space[ids]
        return noise

    def _map(self, noisy: NDArray[np.float32], source: Source) -> Ids:
        if self.mapping == "nearest":
            return self.search.nearest(noisy)
        k = min(self.neighbors, len(self.table))
        nearest, distances = self.search.nearest_two(noisy) if k == 2 else self.search.nearest_k(noisy, k)
        chances = first_or_second(distances, self.t) if k == 2 else softened(distances, self.t)
        thresholds = np.cumsum(chances, axis=1)
        uniform = source.generator.random((len(noisy), 1)) * thresholds[:, -1:]
        pick = np.minimum((uniform >= thresholds).sum(axis=1), k - 1)
        chosen: Ids = nearest[np.arange(len(noisy)), pick]
        return chosen


def first_or_second(distances: NDArray[np.float64], t: float) -> NDArray[np.float64]:
    """Chances (n, 2) of the first and the second neighbor (Xu et al. 2021)."""
    first = (1.0 - t) * distances[:, 1]
    second = t * distances[:, 0]
    # Both distances zero: two words with the same vector, chosen by t alone.
    tied = distances[:, 1] == 0.0
    first[tied], second[tied] = 1.0 - t, t
    return np.stack([first, second], axis=1)


def softened(distances: NDArray[np.float64], t: float) -> NDArray[np.float64]:
    """Weights exp(-t d_i) of k neighbors, the nearest scaled to 1."""
    return np.exp(-t * (distances - distances[:, :1]))
