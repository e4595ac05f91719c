"""Membership from a synthetic corpus alone: no model, no sketch, only the texts that were released.

Meeus, Wutschitz, Zanella-Beguelin, Tople & Shokri, "The canary's echo: auditing privacy risks of LLM-generated
synthetic text" (ICML 2025). A text that was trained on leaves an echo in what the model writes: some of its word pairs
come more often, some synthetic texts come nearer to it. Two signals, larger for what looks trained on:

    2-gram    mean over the words of ln p(w | v), p the 2-gram model of the synthetic corpus,
              p(w | v) = (c(v, w) + M p(w)) / (c(v) + M),    p(w) = (c(w) + 1) / (n + V + 1)
              The paper smooths with Laplace's rule; backing off to the counts of single words wastes less on pairs
              that no corpus of this size can hold. Of a canary in the distribution only its secret is counted: its
              prefix stands in other texts too.
    similar   the mean of the 25 largest Jaccard similarities of its set of words with those of synthetic texts

With a reference corpus, made in the same way without the texts in question, its signal is subtracted: a likelihood
ratio (Zarifzadeh et al. 2024, as the paper does it).

What the signals prove is bounded by `models/one_run`: whatever the attack is, it saw the coins through the corpus only,
and the corpus is what the card promises.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from scipy.sparse import csr_array

from tacit.arrays import Floats
from tacit.errors import BadInputError
from tacit.progress import StepProgress
from tacit.text.tokens import split

NEAREST: Final = 25
BACK_OFF: Final = 4.0
AT_ONCE: Final = 200
START: Final = "\n"
"""Stands before the first word; no token holds white space."""

SIGNALS: Final = ("2-gram", "similar")


@dataclass
class CorpusEcho:
    """A synthetic corpus, ready to be asked how much it sounds like a text."""

    texts: Sequence[str]
    _pairs: Counter[tuple[str, str]] = field(init=False, repr=False)
    _words: Counter[str] = field(init=False, repr=False)
    _firsts: Counter[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows = [split(text) for text in self.texts]
        if not any(rows):
            raise BadInputError("no-rows", "the synthetic corpus holds no text")
        self._pairs = Counter(pair for row in rows for pair in zip([START, *row], row, strict=False))
        self._words = Counter(word for row in rows for word in row)
        self._firsts = Counter(word for row in rows for word in [START, *row[:-1]])
        self._total = sum(self._words.values())
        self._places = {word: place for place, word in enumerate(self._words)}
        self._sets = self._incidence(rows)
        self._sizes = np.asarray(self._sets.sum(axis=1)).ravel()

    def two_gram(self, texts: Sequence[str], prefixes: Sequence[str] | None = None) -> Floats:
        """The mean log probability of the words of each text, those of its prefix left out."""
        starts = [""] * len(texts) if prefixes is None else prefixes
        return np.array([self._mean_log(text, prefix) for text, prefix in zip(texts, starts, strict=True)])

    def _mean_log(self, text: str, prefix: str) -> float:
        words = split(text)
        before = len(split(prefix)) if prefix else 0
        counted = list(zip([START, *words], words, strict=False))[before:]
        if not counted:
            return 0.0
        return float(np.mean([self._log_probability(first, second) for first, second in counted]))

    def _log_probability(self, first: str, second: str) -> float:
        alone = (self._words[second] + 1) / (self._total + len(self._words) + 1)
        return math.log((self._pairs[first, second] + BACK_OFF * alone) / (self._firsts[first] + BACK_OFF))

    def similar(self, texts: Sequence[str], progress: StepProgress | None = None) -> Floats:
        """The mean of the largest Jaccard similarities of each text with synthetic texts."""
        means = np.zeros(len(texts))
        for start in range(0, len(texts), AT_ONCE):
            rows = [split(text) for text in texts[start : start + AT_ONCE]]
            sizes = np.array([len(set(row)) for row in rows], dtype=np.float64)
            shared = (self._incidence(rows) @ self._sets.T).toarray()
            union = sizes[:, None] + self._sizes[None, :] - shared
            similarity = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
            most = min(NEAREST, similarity.shape[1])
            largest = np.partition(similarity, similarity.shape[1] - most, axis=1)[:, -most:]
            means[start : start + len(rows)] = largest.mean(axis=1)
            if progress is not None:
                progress(start + len(rows), len(texts))
        return means

    def _incidence(self, rows: Sequence[Sequence[str]]) -> csr_array:
        """Rows x words of the corpus, 1 where a word stands in a row."""
        places = [sorted({self._places[word] for word in row if word in self._places}) for row in rows]
        ends = np.cumsum([0, *(len(some) for some in places)])
        columns = np.array([place for some in places for place in some], dtype=np.int64)
        return csr_array((np.ones(len(columns)), columns, ends), shape=(len(rows), len(self._places)))


def echo_signals(
    corpus: CorpusEcho,
    texts: Sequence[str],
    *,
    prefixes: Sequence[str] | None = None,
    reference: CorpusEcho | None = None,
    progress: StepProgress | None = None,
) -> dict[str, Floats]:
    """Both signals of each text, by name; less those of the reference if there is one."""
    signals = {"2-gram": corpus.two_gram(texts, prefixes), "similar": corpus.similar(texts, progress)}
    if reference is not None:
        signals["2-gram"] = signals["2-gram"] - reference.two_gram(texts, prefixes)
        signals["similar"] = signals["similar"] - reference.similar(texts)
    return signals
