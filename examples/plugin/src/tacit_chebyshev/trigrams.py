"""A sentence encoder without a model: how often each group of three characters stands in a text."""

from collections.abc import Callable, Sequence
from typing import ClassVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tacit.guarantee import Provenance
from tacit.needs import Ability

LONGEST_CHARACTERS = 20_000


class TrigramEncoder:
    """Unit vectors of counts of trigrams, each counted at a place that its hash says; the end of a long text is left
    out. A text of less than three characters has the vector 0.

    >>> TrigramEncoder().encode(["one", ""]).sum(axis=1).tolist()
    [1.0, 0.0]
    """

    name: ClassVar[str] = "trigrams"
    dimension: ClassVar[int] = 256
    digest: ClassVar[str] = "trigrams-1"
    """Changed with the vectors: codebooks and sketches of other vectors are then not taken for those of these."""
    batch_independent: ClassVar[bool] = True
    """A vector depends on its text alone, bit for bit."""
    abilities: ClassVar[tuple[Ability, ...]] = ()
    """What must be installed for it, named before any work begins: nothing."""

    def provenance(self) -> Provenance:
        """The line of a card: what the encoder was made from. It must never have been private text."""
        return Provenance("sentence encoder", "trigrams: counts of characters, learned from nothing")

    def encode(self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row] = self.encode_alone(text)
            if progress is not None:
                progress(row + 1, len(texts))
        return vectors

    def encode_alone(self, text: str) -> NDArray[np.float32]:
        characters = text[:LONGEST_CHARACTERS].lower()
        places = [crc32(characters[i : i + 3].encode()) % self.dimension for i in range(len(characters) - 2)]
        counts = np.bincount(places, minlength=self.dimension).astype(np.float64) if places else np.zeros(256)
        return (counts / max(1.0, float(np.linalg.norm(counts)))).astype(np.float32)
