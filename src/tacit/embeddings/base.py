"""The base of mechanisms that release vectors: a text becomes a vector, or one for each of its words.

    text -- public function -> bounded vector -- draw -> noisy vector, on a public grid, in single precision

The engines treat them as they treat any mechanism: blocks, workers, resuming, ledger and card are the same, and the
vectors of a block stand where its texts would (`tacit.mechanism.Rewritten`). They have a registry of their own, because
`tacit rewrite` writes texts and `tacit embed` vectors. A plug-in registers one by deriving from this class.

What leaves are numbers, so they lie on a public grid that depends on the parameters alone (`tacit.noise.grid`);
rounding to single precision afterwards sees nothing but the released number.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.documents.base import DocumentMechanism
from tacit.errors import BadInputError, NoGuaranteeError
from tacit.mechanism import Mechanism, Release, Releases, Rewritten, as_texts
from tacit.noise.source import Source, new_source
from tacit.parameters import EpsilonRange

UNIT_GRID_BITS = 20
"""Numbers of at most 1 are released as multiples of 2**-20, which single precision holds exactly."""


@dataclass(frozen=True, repr=False)
class VectorRelease(Release):
    """Released vectors, which may be shared, and the guarantee about them. A notebook shows its card."""

    vectors: list[Floats32] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def matrix(self) -> Floats32:
        """The vectors as rows of one matrix, where every text has one."""
        if any(vector.ndim != 1 for vector in self.vectors):
            raise BadInputError(
                "vectors-of-words", "a vector for each word is no matrix: use the list of vectors, one item per text"
            )
        return np.stack(self.vectors) if self.vectors else np.empty((0, 0), dtype=np.float32)


@dataclass(kw_only=True, eq=False)
class VectorMechanism(DocumentMechanism):
    """Parameters of all mechanisms that release vectors.

    epsilon      the budget of one text (of one word or sentence, where the mechanism says so)
    batch_size   how many texts are worked on together; no influence on the law of the output
    """

    releases: ClassVar[Releases] = "vector"
    registry: ClassVar[dict[str, type[Mechanism]]] = {}
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(10.0, 1.0, 100.0)

    # To write in a mechanism --------------------------------------------------------------------------------

    @abstractmethod
    def embed_texts(self, texts: Sequence[str], source: Source) -> list[Floats32]:
        """The only private step: for each text a vector (dimension,), or one for each word (words, dimension)."""

    def clean_vectors(self, texts: Sequence[str]) -> Floats:
        """The vectors of texts without noise, (texts, dimension), for texts that need no protection and for audits by
        their holder; where a text has one vector."""
        raise NoGuaranteeError(
            "no-clean-vectors", "{mechanism} has no vector of a text that is free of noise", mechanism=self.name
        )

    @property
    @abstractmethod
    def dimension(self) -> int:
        """How many numbers a released vector has."""

    # The pipeline -------------------------------------------------------------------------------------------

    def rewrite_texts(self, texts: Sequence[str], source: Source) -> Rewritten:
        self.prepare()
        vectors = self.embed_texts(texts, source) if texts else []
        return Rewritten([], self.released_units(texts, vectors), vectors=vectors)

    def released_units(self, texts: Sequence[str], vectors: Sequence[Floats32]) -> list[int]:
        """How many units each text has released."""
        return [1] * len(vectors)

    def rewrite_batch(self, texts: Sequence[str], source: Source) -> list[str]:
        raise self._no_texts()

    # For users ----------------------------------------------------------------------------------------------

    def embed(self, texts: str | Iterable[str]) -> VectorRelease:
        """Release the vectors of texts; every call draws new noise, so embedding the same text twice spends the budget
        twice."""
        items = as_texts(texts)
        source = new_source(self.seed)
        self.prepare()
        result = self.rewrite_texts(items, source)
        return VectorRelease([], self.guarantee(secure=source.secure), result.units, result.vectors or [])

    def rewrite(self, texts: str | Iterable[str]) -> Release:
        raise self._no_texts()

    def transform(self, X: Any) -> Any:
        """Released vectors as a matrix (a list of matrices for words), for a pipeline of scikit-learn."""
        released = self.embed(as_texts(X))
        return released.vectors if self.releases == "vectors" else released.matrix

    def _no_texts(self) -> NoGuaranteeError:
        return NoGuaranteeError(
            "releases-vectors", "{mechanism} releases vectors, not texts: call embed()", mechanism=self.name
        )


def on_unit_grid(vectors: Floats) -> Floats32:
    """Vectors of length 1 on the public grid, in single precision."""
    return (np.rint(vectors * 2.0**UNIT_GRID_BITS) * 2.0**-UNIT_GRID_BITS).astype(np.float32)
