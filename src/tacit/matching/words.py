"""The public vocabulary of the words block, and the words of a text by a fixed rule.

Vocabulary: the words of letters and digits among the 30,000 most frequent of GloVe 6B (`tacit.vectors`), each with the
number of sentences of the general pool that hold it (`tacit.matching.pool_default` counts them). Its weights are
log((sentences + 1) / (count + 1)), at most 9, in steps of 1/256.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from tacit.arrays import Integers
from tacit.errors import BadParameterError
from tacit.vectors.formats import read_vocabulary
from tacit.vectors.load import ASSETS as VECTOR_ASSETS

VOCABULARY = Path(__file__).with_name("assets") / "words" / "vocabulary.tsv.gz"
WEIGHT_STEPS = 256
LARGEST_WEIGHT = 9.0

_WORD = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """The words of a text: runs of letters and digits, in lower case.

    >>> words_of("Don't go, it's 5 o'clock!")
    ['don', 't', 'go', 'it', 's', '5', 'o', 'clock']
    """
    return _WORD.findall(text.lower())


@dataclass(frozen=True)
class Vocabulary:
    """Public words by their place, the weight of each as a whole number, and a hash of both."""

    places: dict[str, int]
    weights: Integers
    digest: str

    def __len__(self) -> int:
        return len(self.places)

    @property
    def words(self) -> list[str]:
        return list(self.places)


@lru_cache(maxsize=4)
def load_vocabulary(size: int | None = None) -> Vocabulary:
    """The vocabulary that comes with Tacit, or its first (most frequent in GloVe) words."""
    with gzip.open(VOCABULARY, "rt", encoding="utf-8") as lines:
        sentences = int(next(lines))
        pairs = [line.rstrip("\n").split("\t") for line in lines][:size]
    if size is not None and not 1 <= size <= len(pairs):
        raise BadParameterError(
            "vocabulary-size", "the words block has 1 to {most:,} words, not {size:,}", most=len(pairs), size=size
        )
    counts = np.array([int(count) for _, count in pairs], dtype=np.float64)
    rarity = np.minimum(np.log((sentences + 1) / (counts + 1)), LARGEST_WEIGHT)
    weights = np.maximum(np.rint(rarity * WEIGHT_STEPS), 1).astype(np.int64)
    words = [word for word, _ in pairs]
    digest = hashlib.sha256("\n".join(words).encode("utf-8") + weights.tobytes()).hexdigest()[:32]
    return Vocabulary({word: place for place, word in enumerate(words)}, weights, digest)


def counted_vocabulary(sentences: Iterable[str]) -> list[tuple[str, int]]:
    """The words of the vocabulary, in the order of GloVe, with the number of sentences that hold each."""
    glove = read_vocabulary(VECTOR_ASSETS / "glove-6b-50d.vocab.txt")
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(set(words_of(sentence)))
    return [(word, counts[word]) for word in dict.fromkeys(glove) if words_of(word) == [word]]
