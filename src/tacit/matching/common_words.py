"""Very common words as features: question words, negations, pronouns, the marks ? and !.

    v(x) = W (u - mean),  u_i = 1 / sqrt(k) for each of the k listed words that occur in x, 0 for the others

brought to length 1, in the geometry of public sentences as for encoders (`tacit.matching.geometry`). A sum of word
vectors is ruled by the rare words of a text and says little about its form; "who", "how many", "not" decide what a
question asks for or whether a review is good. There are few of them and they are in almost every text, so noise of the
size that hides a record hardly touches their averages: on TREC questions a classifier made of noisy averages at epsilon
1 rises from a macro-F1 of .54 to .58, with nearly nothing lost elsewhere (`benchmarks/discriminant.py`).

Exactness: which words occur is counted with integers, and the rest is exact as in `tacit.matching.geometry`, so v(x) is
the same bit for bit whatever else stands in the batch.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np

from tacit.arrays import Floats32
from tacit.guarantee import Provenance
from tacit.matching.geometry import Geometry

ASSET = Path(__file__).with_name("assets") / "words" / "common.npz"
_TOKEN = re.compile(r"[^\W_]+|[?!]")


@dataclass(frozen=True)
class CommonWords:
    """A public list of words with the geometry of their occurrences, and a hash of both."""

    words: tuple[str, ...]
    geometry: Geometry
    digest: str

    def __len__(self) -> int:
        return len(self.words)

    def occurrences(self, texts: Sequence[str]) -> Floats32:
        """u of texts; zeros for a text without any of the words."""
        return occurrences(texts, self.words)

    def provenance(self) -> Provenance:
        """The line of a card that uses the words."""
        return Provenance("common words", f"the {len(self):,} most common words of the public pools")


def tokens_of(text: str) -> list[str]:
    """Words in lower case, and the marks that tell a question or a call.

    >>> tokens_of("Isn't it, Ann?")
    ['isn', 't', 'it', 'ann', '?']
    """
    return _TOKEN.findall(text.lower())


def occurrences(texts: Sequence[str], words: Sequence[str]) -> Floats32:
    """For each text, 1 / sqrt(k) for each of its k listed words."""
    places = {word: place for place, word in enumerate(words)}
    present = [{places[token] for token in tokens_of(text) if token in places} for text in texts]
    counts = np.fromiter(map(len, present), dtype=np.int64, count=len(present))
    rows = np.repeat(np.arange(len(present)), counts)
    columns = np.fromiter(chain.from_iterable(present), dtype=np.int64, count=len(rows))
    vectors = np.zeros((len(present), len(words)), dtype=np.float32)
    vectors[rows, columns] = 1.0 / np.sqrt(counts[rows])
    return vectors


def save_common_words(words: Sequence[str], geometry: Geometry) -> None:
    """Write the list as an asset of the package."""
    mean, matrix = geometry.mean.astype(np.int32), geometry.matrix.astype(np.int32)
    np.savez_compressed(ASSET, words=np.array(words), mean=mean, matrix=matrix)


@lru_cache(maxsize=1)
def known_common_words() -> CommonWords:
    """The list that comes with Tacit."""
    with np.load(ASSET, allow_pickle=False) as arrays:
        words = tuple(str(word) for word in arrays["words"])
        geometry = Geometry(arrays["mean"].astype(np.int64), arrays["matrix"].astype(np.int64))
    content = "\n".join(words).encode() + geometry.mean.tobytes() + geometry.matrix.tobytes()
    return CommonWords(words, geometry, hashlib.sha256(content).hexdigest()[:32])
