"""Binary randomized response on word codes (BRR; Carvalho et al. 2021a).

Each word has a public code of m bits: the signs of m fixed random projections of its centered vector. Each bit is
flipped with probability 1 / (1 + e^epsilon), independently; the output is the word whose code is nearest to the noisy
code (the earlier word where two are equally near).

Guarantee: epsilon-metric differential privacy in the Hamming distance of the codes. Each bit in which two codes differ
contributes a ratio of at most e^epsilon, equal bits contribute none; the decoding sees the noisy code only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids
from tacit.errors import NoGuaranteeError
from tacit.guarantee import Guarantee, MetricKind, Notion
from tacit.noise.response import flip_bits, response_matrix
from tacit.noise.source import Source, public_generator
from tacit.parameters import EpsilonRange, parameter
from tacit.vectors.distance import VectorDistance
from tacit.words.base import (
    BLOCK_CELLS,
    WordMechanism,
)

BLOCK_TOKENS = 8192
ENUMERABLE_BITS = 16


@dataclass(kw_only=True, eq=False)
class BinaryResponse(WordMechanism):
    """Randomized response on each bit of a word's binary code, then the word with the nearest code.

    epsilon   the budget of one bit of the code
    bits      the length of the code; more bits tell words apart better and cost more
    """

    bits: int = parameter(64, low=1, high=4096, service_most=512)

    name: ClassVar[str] = "brr"
    title: ClassVar[str] = "Binary randomized response"
    paper: ClassVar[str] = "Carvalho et al. 2021a"
    notion: ClassVar[str] = Notion.METRIC.value
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(1.0, 0.2, 4.0)

    @cached_property
    def codes(self) -> NDArray[np.bool_]:
        vectors = np.asarray(self.table.vectors, dtype=np.float64)
        directions = public_generator(seed=self.bits).standard_normal((self.table.dimension, self.bits))
        return np.asarray((vectors - vectors.mean(axis=0)) @ directions > 0)

    @cached_property
    def _columns(self) -> NDArray[np.float32]:
        """(bits + 1, words): the codes as columns, minus half their weight below. A noisy code q with a 1 appended has
        the product q.y - |y|/2 with them, largest where the fewest bits differ; exact, being small half integers."""
        columns = np.empty((self.bits + 1, len(self.table)), dtype=np.float32)
        columns[:-1] = self.codes.T
        columns[-1] = -0.5 * self.codes.sum(axis=1)
        return columns

    def decode(self, noisy: NDArray[np.bool_]) -> Ids:
        """The word with the nearest code, the earlier one of two that are equally near."""
        rows = max(1, BLOCK_CELLS // len(self.table))
        queries = np.ones((len(noisy), self.bits + 1), dtype=np.float32)
        queries[:, :-1] = noisy
        nearest = [(queries[i : i + rows] @ self._columns).argmax(axis=1) for i in range(0, len(queries), rows)]
        return np.concatenate(nearest) if nearest else np.empty(0, dtype=np.int64)

    def prepare(self) -> None:
        super().prepare()
        self._load("_columns")

    def draw(self, ids: Ids, source: Source) -> Ids:
        drawn = np.empty(len(ids), dtype=np.int64)
        for start in range(0, len(ids), BLOCK_TOKENS):
            block = slice(start, start + BLOCK_TOKENS)
            noisy = flip_bits(self.codes[ids[block]], self.epsilon, source)
            drawn[block] = self.decode(noisy)
        return drawn

    @property
    def has_law(self) -> bool:
        return self.bits <= ENUMERABLE_BITS

    def laws_of_draw(self, ids: Ids) -> Floats:
        """All 2^bits noisy codes, each decoded and weighted: only for short codes."""
        if self.bits > ENUMERABLE_BITS:
            raise NoGuaranteeError(
                "no-closed-law",
                "the law of brr is enumerated for at most {most} bits, not {bits}; it can be sampled",
                most=ENUMERABLE_BITS,
                bits=self.bits,
            )
        every = ((np.arange(2**self.bits)[:, None] >> np.arange(self.bits)) & 1).astype(bool)
        decoded = self.decode(every)
        flips = (every[None] != self.codes[ids][:, None]).sum(axis=2)
        keep, flip = response_matrix(self.epsilon)[0]
        chances = flip**flips * keep ** (self.bits - flips)
        result = np.zeros((len(ids), len(self.table)))
        for row in range(len(ids)):
            result[row] = np.bincount(decoded, weights=chances[row], minlength=len(self.table))
        return result

    def distance(self) -> VectorDistance:
        # Between 0/1 codes, the squared Euclidean distance counts the bits that differ.
        name = f"Hamming distance of {self.bits}-bit codes of {self.table.name} vectors"
        return VectorDistance(self.codes.astype(np.float32), name, squared=True, kind=MetricKind.HAMMING)

    def promise(self) -> Guarantee:
        return self._promise(Notion.METRIC, self.epsilon, metric=self.distance().metric(self.table.fingerprint))
