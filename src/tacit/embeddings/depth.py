"""The vector of a public sentence that lies deep among the sentences of a document (Meehan et al. 2022).

The choice is that of `tacit.documents.depth`, with its guarantee; the vector of the chosen candidate is public, so
releasing it says exactly what releasing its sentence says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.documents.depth import SentenceDepth, sentences_of
from tacit.embeddings.base import VectorMechanism, on_unit_grid
from tacit.guarantee import Guarantee, Notion
from tacit.noise.source import Source
from tacit.parameters import parameter


@dataclass(kw_only=True, eq=False)
class DepthVectors(VectorMechanism):
    """The vector of a public sentence near the middle of a long document; one sentence of it is the secret.

    epsilon      the budget of one sentence; a document of k sentences as a whole has k times that
    codebook     where the candidates come from: a codebook folder, "static" (the default, without torch) or "minilm"
    candidates   how many public sentences to choose among: one of the codebook's sizes
    directions   in how many public directions the depth is measured
    """

    codebook: str = "static"
    candidates: int = 512
    directions: int = parameter(8, low=1, high=4096, service_most=512)

    name: ClassVar[str] = "depth"
    title: ClassVar[str] = "Sentence depth"
    paper: ClassVar[str] = "Meehan et al. 2022"
    model_needed: ClassVar[str] = "codebook (included)"
    notion: ClassVar[str] = Notion.PURE.value
    unit: ClassVar[str] = "sentence"

    @cached_property
    def chooser(self) -> SentenceDepth:
        """The mechanism that chooses a candidate."""
        return SentenceDepth(
            epsilon=self.epsilon,
            codebook=self.codebook,
            candidates=self.candidates,
            directions=self.directions,
            batch_size=self.batch_size,
            device=self.device,
        )

    @property
    def dimension(self) -> int:
        return int(self.chooser.candidate_vectors.shape[1])

    def load_public(self) -> None:
        self.chooser.prepare()

    def count_units(self, texts: Sequence[str]) -> list[int]:
        return self.chooser.count_units(texts)

    def released_units(self, texts: Sequence[str], vectors: Sequence[Floats32]) -> list[int]:
        return self.count_units(texts)

    def clean_vectors(self, texts: Sequence[str]) -> Floats:
        """The mean of the vectors of a text's sentences, of length 1."""
        means = [self.chooser.sentence_encoder.encode(sentences_of(text)).mean(axis=0) for text in texts]
        wide = np.stack(means).astype(np.float64)
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
        return np.asarray(wide / np.where(lengths > 0, lengths, 1.0))

    def embed_texts(self, texts: Sequence[str], source: Source) -> list[Floats32]:
        released: list[Floats32] = []
        for start in range(0, len(texts), self.batch_size):
            drawn = self.chooser.draw(texts[start : start + self.batch_size], source)
            released += list(on_unit_grid(self.chooser.candidate_vectors[drawn].astype(np.float64)))
        return released

    def promise(self) -> Guarantee:
        return self.chooser.promise()
