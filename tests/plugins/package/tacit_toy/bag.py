"""An autoencoder without a neural network: the latent says which of a few public words a text has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from tacit.documents.autoencoders import Autoencoder, Record


class BagAutoencoder(Autoencoder):
    kind: ClassVar[str] = "toy-bag"
    mechanisms: ClassVar[tuple[str, ...]] = ("adept",)

    def __init__(self, words: Sequence[str], record: Record) -> None:
        self.words = list(words)
        self.record = record

    @property
    def width(self) -> int:
        return len(self.words)

    def encode(self, texts: Sequence[str]) -> Any:
        tokens = [text.lower().split() for text in texts]
        bags = [[[float(word in row) for word in self.words]] for row in tokens]
        return np.array(bags, dtype=np.float32).reshape(len(texts), 1, self.width)

    def decode(self, latents: Any, *, beams: int = 1) -> list[str]:
        values = np.asarray(latents).reshape(len(latents), self.width)
        return [" ".join(word for word, value in zip(self.words, row, strict=True) if value > 0.5) for row in values]

    def save_weights(self, folder: Path) -> None:
        (folder / "words.txt").write_text("\n".join(self.words), encoding="utf-8")

    @classmethod
    def load_weights(cls, folder: str, record: Record) -> Self:
        return cls((Path(folder) / "words.txt").read_text(encoding="utf-8").split("\n"), record)


def save(folder: Path) -> None:
    """A model of this kind in a folder."""
    bound = {"kind": "l2", "C": 2.0}
    record = Record(kind=BagAutoencoder.kind, positions=1, corpora=["a list of words"], bound=bound)
    folder.mkdir(parents=True, exist_ok=True)
    made = BagAutoencoder(["good", "bad", "film", "long"], record)
    made.save_weights(folder)
    record.write(folder)
