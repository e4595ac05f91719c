"""The static encoder without the part that all texts share.

    f(x) = g(s(x))     s: `tacit.matching.encoder`,   g: `tacit.matching.geometry`

The near sentences of a codebook are those with the largest products, and with the plain vectors of the static encoder
most of a product is a part that all texts share. Like the static encoder it is the same bit for bit in every batch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from tacit.arrays import Floats32
from tacit.errors import BadInputError
from tacit.guarantee import Provenance
from tacit.matching.encoder import StaticEncoder
from tacit.matching.geometry import Geometry, known_geometry
from tacit.progress import StepProgress


class BalancedEncoder:
    """Unit vectors of texts by the static encoder, in the geometry that comes with Tacit; a text without any known word
    piece has the vector 0."""

    name = "static-balanced"
    batch_independent = True

    def __init__(self) -> None:
        self._static = StaticEncoder()

    @property
    def dimension(self) -> int:
        return self._static.dimension

    @property
    def digest(self) -> str:
        """By which the table, its tokenizer and the geometry are recognized."""
        geometry = self._geometry()
        numbers = geometry.mean.tobytes() + geometry.matrix.tobytes()
        return hashlib.sha256(self._static.digest.encode() + numbers).hexdigest()[:32]

    def provenance(self) -> Provenance:
        """The line of a card that uses the encoder."""
        own = self._static.provenance()
        return Provenance("sentence encoder", f"{self.name}: {own.source}, in the geometry of public sentences")

    def encode(self, texts: Sequence[str], progress: StepProgress | None = None) -> Floats32:
        """Unit vectors (texts, dimension), float32, in the order of the texts."""
        return self._geometry().apply(self._static.encode(texts, progress)).astype(np.float32)

    def encode_alone(self, text: str) -> Floats32:
        """The vector of one text: the same as in any batch."""
        return np.asarray(self.encode([text])[0])

    def _geometry(self) -> Geometry:
        geometry = known_geometry(self._static.digest)
        if geometry is None:
            raise BadInputError(
                "no-geometry", "the geometry of the static encoder is missing: install Tacit again, as a whole"
            )
        return geometry
