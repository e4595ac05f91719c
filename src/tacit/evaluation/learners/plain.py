"""Learners of a plain installation: logistic regression by numpy and scipy on three unrelated views of a text.

    words     tf-idf weights of words and pairs of neighbors
    letters   tf-idf weights of runs of four letters
    vectors   the vector of a sentence encoder; `static` comes with Tacit

Words and letters are counted in 32,768 columns, by a public hash, so that memory does not grow with the vocabulary.
Nothing is tuned: the strength is that of the tf-idf probe (C = 10), the same for all rows, and a fit ends after a fixed
number of steps. All are deterministic.
"""

from __future__ import annotations

import itertools
import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.evaluation.learners.base import Text, check_trainable

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from tacit.evaluation.vectors import TextVectors

COLUMNS = 1 << 15
STEPS = 40
PENALTY = 0.05
"""Half of 1 / C."""
LETTERS = 4
LONGEST_CHARACTERS = 5_000
"""Of a longer text the counting views read only the beginning."""


class PlainLearner(ABC):
    """A view of texts, then logistic regression."""

    name: str
    random = False

    def fit(self, texts: Sequence[Text], labels: Sequence[Any], seed: int = 0) -> Self:
        check_trainable(texts, labels, "classification")
        self._classes = sorted(set(labels), key=str)
        place = {label: number for number, label in enumerate(self._classes)}
        targets = np.array([place[label] for label in labels], dtype=np.int64)
        self._weights, self._offsets = logistic_regression(self.learned(_strings(texts)), targets, len(place))
        return self

    def predict(self, texts: Sequence[Text]) -> list[Any]:
        if not len(texts):
            return []
        scores = np.asarray(self.features(_strings(texts)) @ self._weights) + self._offsets
        return [self._classes[place] for place in scores.argmax(axis=1)]

    def learned(self, texts: Sequence[str]) -> csr_matrix | Floats:
        """The features of training texts, after what the view learns from them."""
        return self.features(texts)

    @abstractmethod
    def features(self, texts: Sequence[str]) -> csr_matrix | Floats: ...


class CountedPieces(PlainLearner):
    """On tf-idf weights of pieces of a text."""

    @abstractmethod
    def pieces(self, text: str) -> list[str]: ...

    def learned(self, texts: Sequence[str]) -> csr_matrix:
        counts = self._counts(texts)
        rows_with = np.bincount(counts.indices, minlength=COLUMNS)
        self._rarity = np.log((1 + len(texts)) / (1 + rows_with)) + 1
        return self._weighted(counts)

    def features(self, texts: Sequence[str]) -> csr_matrix:
        return self._weighted(self._counts(texts))

    def _counts(self, texts: Sequence[str]) -> csr_matrix:
        from scipy.sparse import csr_matrix

        known: dict[str, int] = {}
        columns: list[int] = []
        ends = [0]
        for text in texts:
            for piece in self.pieces(text[:LONGEST_CHARACTERS].lower()):
                if piece not in known:
                    known[piece] = zlib.crc32(piece.encode("utf-8", "surrogatepass")) % COLUMNS
                columns.append(known[piece])
            ends.append(len(columns))
        matrix = csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(texts), COLUMNS))
        matrix.sum_duplicates()
        return matrix

    def _weighted(self, counts: csr_matrix) -> csr_matrix:
        """Logarithms of counts by rarity, each row of length 1."""
        weighted = counts.copy()
        weighted.data = (1 + np.log(weighted.data)) * self._rarity[weighted.indices]
        squares = np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel()
        weighted.data /= np.repeat(np.maximum(np.sqrt(squares), 1e-12), np.diff(weighted.indptr))
        return weighted


class WordLearner(CountedPieces):
    """On words and pairs of neighbors."""

    name = "words"

    def pieces(self, text: str) -> list[str]:
        words = re.findall(r"\w+", text)
        return [*words, *(f"{first} {second}" for first, second in itertools.pairwise(words))]


class LetterLearner(CountedPieces):
    """On all runs of four letters."""

    name = "letters"

    def pieces(self, text: str) -> list[str]:
        return [text[start : start + LETTERS] for start in range(max(1, len(text) - LETTERS + 1))]


class VectorLearner(PlainLearner):
    """On the vectors of a sentence encoder."""

    def __init__(self, vectors: TextVectors) -> None:
        self.vectors = vectors
        self.name = f"{vectors.name} vectors"

    def features(self, texts: Sequence[str]) -> Floats:
        return self.vectors(texts).astype(np.float64)


def logistic_regression(features: csr_matrix | Floats, targets: Integers, classes: int) -> tuple[Floats, Floats]:
    """Weights (features, classes) and offsets (classes,) of multinomial logistic regression (L-BFGS)."""
    from scipy.optimize import minimize

    rows, columns = features.shape
    truth = np.zeros((rows, classes))
    truth[np.arange(rows), targets] = 1.0
    turned = features.T.tocsr() if hasattr(features, "tocsr") else features.T

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat[classes:].reshape(columns, classes)
        scores = np.asarray(features @ weights) + flat[:classes]
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        errors = np.exp(logs) - truth
        value = -float(logs[np.arange(rows), targets].sum()) + PENALTY * float((weights * weights).sum())
        slopes = np.asarray(turned @ errors) + 2 * PENALTY * weights
        return value, np.concatenate([errors.sum(axis=0), slopes.ravel()])

    start = np.zeros(classes * (columns + 1))
    flat = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
    return flat[classes:].reshape(columns, classes), flat[:classes]


def _strings(texts: Sequence[Text]) -> Sequence[str]:
    """Texts of a classification, which are plain strings."""
    return cast("Sequence[str]", texts)
