"""A noisy vector for each word (Feyisetan et al. 2020; Qu et al. 2021, token representations without a mapping).

    word x --> f(phi(x)) + z,   density of z proportional to exp(-e |z|),   on a public grid

This is the mechanism 'laplace' of `tacit rewrite` without its last step, the nearest word: the noisy vector itself is
released. Its guarantee is the same, metric differential privacy for one word (`tacit.words.multivariate_laplace`),
since the nearest word is a function of the vector. A model that reads vectors learns more from them than from that
word. How many words a text has is visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from tacit.arrays import Floats32
from tacit.embeddings.base import VectorMechanism
from tacit.guarantee import Guarantee, Notion
from tacit.mechanism import Releases
from tacit.noise.source import Source
from tacit.parameters import EpsilonRange, parameter
from tacit.text.lexicon import RULES
from tacit.vectors import KNOWN_VECTORS
from tacit.words.multivariate_laplace import MultivariateLaplace


@dataclass(kw_only=True, eq=False)
class WordVectorMechanism(VectorMechanism):
    """Parameters of mechanisms that release a vector for each word.

    epsilon    the budget of one word
    vectors    public word vectors: a name ("default", "minilm"), or a file
    limit      how many of the most frequent words to use
    unknown    what a word outside the vocabulary is treated as: "spelling" or "hash"
    """

    vectors: str = parameter("default", service_values=tuple(KNOWN_VECTORS))
    limit: int | None = None
    unknown: str = parameter("spelling", choices=RULES)

    releases: ClassVar[Releases] = "vectors"
    level: ClassVar[str] = "word"
    unit: ClassVar[str] = "token"
    model_needed: ClassVar[str] = "word vectors (included)"
    block_characters: ClassVar[int] = 50_000
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(20.0, 2.0, 100.0)

    @cached_property
    def words(self) -> MultivariateLaplace:
        """The mechanism on words that has vocabulary, vectors and tokens."""
        return MultivariateLaplace(
            epsilon=self.epsilon, vectors=self.vectors, limit=self.limit, unknown=self.unknown, bounding=self.bounded_by
        )

    @property
    def bounded_by(self) -> str:
        """The bounding map of the vectors before the noise."""
        return "none"

    @property
    def dimension(self) -> int:
        return int(self.words.exact_space.shape[1])

    def load_public(self) -> None:
        _ = self.words.space

    def count_units(self, texts: Sequence[str]) -> list[int]:
        return self.words.count_units(texts)

    def released_units(self, texts: Sequence[str], vectors: Sequence[Floats32]) -> list[int]:
        return [len(each) for each in vectors]


@dataclass(kw_only=True, eq=False)
class WordLaplace(WordVectorMechanism):
    """Word vectors with noise in all directions: the nearer two words are, the better each hides the other.

    bounding   map applied to the vectors first: none, unit, adapted-unit, minus-one-to-one, observed-range, clip, jl
    """

    bounding: str = parameter("none", service_any=True)

    name: ClassVar[str] = "word-laplace"
    title: ClassVar[str] = "Noisy word vectors"
    paper: ClassVar[str] = "Qu et al. 2021"
    notion: ClassVar[str] = Notion.METRIC.value

    @property
    def bounded_by(self) -> str:
        return self.bounding

    def embed_texts(self, texts: Sequence[str], source: Source) -> list[Floats32]:
        return [each.astype(np.float32) for each in self.words.vectors_of_texts(texts, source)]

    def promise(self) -> Guarantee:
        words = self.words.guarantee_of_vectors(secure=True)
        of_texts = ("punctuation", "joining", "mapping", "approximate")
        return replace(
            words,
            mechanism=f"{self.title} ({self.name}; {self.paper})",
            parameters={name: value for name, value in words.parameters.items() if name not in of_texts},
        )
