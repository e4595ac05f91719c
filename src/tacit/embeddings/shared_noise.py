"""Noisy word vectors with one noise level for the whole vocabulary (NADP, repaired).

The published form (neighborhood-aware, "NADP") cuts the vocabulary into connected components of near words and adds
Gaussian noise of a level of its own to each. Two flaws: between words of different components nothing is promised, and
the size of the noise tells the component. Here the level is one public number for all words:

    word x --> phi(x) / |phi(x)| + Z,   Z ~ N(0, sigma^2) on every number, on a public grid

Guarantee: (epsilon, delta) for one word against any other of the vocabulary. Proof. Vectors are forced into the unit
ball (`ClipL2`), so any two are at most 2 apart; sigma is the analytic one for that; the noise on the grid is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.documents.bounds import AnalyticGaussian, ClipL2, release
from tacit.embeddings.words import WordVectorMechanism
from tacit.guarantee import Guarantee, Notion
from tacit.noise.source import Source
from tacit.words.noisy import IDEALIZED_VECTORS

LARGEST_LENGTH = 1.0


@dataclass(kw_only=True, eq=False)
class SharedNoise(WordVectorMechanism):
    """Word vectors with Gaussian noise of one public size, for any two words.

    delta      of one word, well below one over the number of words
    """

    delta: float = 1e-8

    name: ClassVar[str] = "word-gaussian"
    title: ClassVar[str] = "Word vectors, one noise level"
    paper: ClassVar[str] = "NADP, repaired"
    notion: ClassVar[str] = Notion.APPROXIMATE.value

    def check_parameters(self) -> None:
        super().check_parameters()
        AnalyticGaussian(self.delta)

    @property
    def bounded_by(self) -> str:
        return "unit"

    @cached_property
    def bounded_vectors(self) -> Floats:
        """(words, dimension): every vector of the vocabulary, of length at most 1."""
        return ClipL2(LARGEST_LENGTH).apply(np.asarray(self.words.exact_space)[:, np.newaxis, :])[:, 0]

    def embed_texts(self, texts: Sequence[str], source: Source) -> list[Floats32]:
        ids, lengths = self.words.token_ids(texts)
        latents = self.bounded_vectors[ids][:, np.newaxis, :]
        noisy = release(latents, ClipL2(LARGEST_LENGTH), AnalyticGaussian(self.delta), self.epsilon, source)
        return [each.astype(np.float32) for each in np.split(noisy[:, 0], np.cumsum(lengths)[:-1])]

    @property
    def noise_scale(self) -> float:
        """sigma."""
        return AnalyticGaussian(self.delta).scale(ClipL2(LARGEST_LENGTH), self.dimension, self.epsilon)

    def promise(self) -> Guarantee:
        words = self.words.guarantee_of_vectors(secure=True)
        return replace(
            words,
            notion=Notion.APPROXIMATE,
            epsilon=self.epsilon,
            delta=self.delta,
            slack=0.0,
            metric=None,
            mechanism=f"{self.title} ({self.name}; {self.paper})",
            parameters={
                "vectors": self.words.table.name,
                "unknown": self.unknown,
                "bound": "l2",
                "C": LARGEST_LENGTH,
                "l2 sensitivity": ClipL2(LARGEST_LENGTH).l2_sensitivity(self.dimension),
                "noise scale": self.noise_scale,
            },
            assumptions=tuple(each for each in words.assumptions if each != IDEALIZED_VECTORS),
        )
