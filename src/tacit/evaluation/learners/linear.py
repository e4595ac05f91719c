"""Linear probes: what can be read off frozen features with one matrix (Alain & Bengio 2016).

No tuning: C = 1 on sentence vectors and C = 10 on tf-idf words, the same for original and rewritten text, so that a
difference between the two is a difference between the texts. Both are deterministic.

    classification   f(x)
    pairs            u, v, |u - v|, u * v     (Conneau et al., InferSent, 2017)
    similarity       ridge regression on |u - v|, u * v and the cosine
    tagging          one decision per token, from its state in the encoder or from the words around it
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from tacit.documents.encoder import SentenceEncoder
from tacit.errors import require
from tacit.evaluation.learners.base import Task, Text, check_trainable, flat_labels
from tacit.evaluation.vectors import TextVectors, plain_pieces, token_states, with_pieces
from tacit.text.tokens import normalize, split

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

ITERATIONS = 300
PURPOSE = "a linear probe"


class LinearLearner(ABC):
    """Features, then one linear model."""

    name: str
    random = False
    strength: float

    def __init__(self, task: Task) -> None:
        self.task = task

    def fit(self, texts: Sequence[Text], labels: Sequence[Any], seed: int = 0) -> Self:
        check_trainable(texts, labels, self.task)
        require("sklearn", extra="audit", purpose=PURPOSE)
        from sklearn.linear_model import LogisticRegression, Ridge

        targets = flat_labels(self.task, labels)
        features = self._features(texts, learn=True)
        if self.task == "similarity":
            self._model = Ridge(alpha=1.0).fit(features, np.asarray(targets, dtype=np.float64))
            return self
        model = LogisticRegression(C=self.strength, max_iter=ITERATIONS, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # stopping after a fixed number of steps is part of the probe
            self._model = model.fit(features, np.asarray(targets, dtype=object).astype(str))
        return self

    def predict(self, texts: Sequence[Text]) -> list[Any]:
        if not len(texts):
            return []
        if self.task == "tagging" and not any(len(tokens) for tokens in texts):
            return [[] for _ in texts]
        predicted = self._model.predict(self._features(texts, learn=False)).tolist()
        if self.task != "tagging":
            return list(predicted)
        tags = iter(predicted)
        return [[next(tags) for _ in tokens] for tokens in texts]

    @abstractmethod
    def _features(self, texts: Sequence[Text], *, learn: bool) -> NDArray[np.floating] | csr_matrix: ...


class VectorProbe(LinearLearner):
    """On the sentence vectors of an encoder, or on the states of its word pieces for tagging."""

    strength = 1.0

    def __init__(self, task: Task, vectors: TextVectors) -> None:
        super().__init__(task)
        self.vectors = vectors
        self.name = f"linear probe on {vectors.name}"

    def _features(self, texts: Sequence[Text], *, learn: bool) -> NDArray[np.float32]:
        if self.task == "classification":
            return self.vectors(cast("Sequence[str]", texts))
        if self.task == "tagging":
            return word_states(with_pieces(self.vectors.encoder, "tagging"), texts)
        both = self.vectors([text for pair in texts for text in pair])
        u, v = both[0::2], both[1::2]
        if self.task == "similarity":
            return np.hstack([np.abs(u - v), u * v, 4 * (u * v).sum(axis=1, keepdims=True)])
        return np.hstack([u, v, np.abs(u - v), u * v])


def word_states(encoder: SentenceEncoder, texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
    """One row per token: the state of its first word piece in its text. A token the encoder cannot reach gets zeros."""
    flat = [token for tokens in texts for token in tokens]
    pieces = iter(plain_pieces(encoder.tokenizer, flat, 8))
    unknown = encoder.tokenizer.unk_token_id or 0
    rows, firsts = [], []
    for tokens in texts:
        row: list[int] = []
        places = []
        for _ in tokens:
            places.append(len(row))
            row += next(pieces) or [unknown]
        rows.append(row)
        firsts.append(places)
    states = token_states(encoder, rows)
    states_of_words = np.zeros((len(flat), encoder.dimension), dtype=np.float32)
    at = 0
    for places, vectors in zip(firsts, states, strict=True):
        reached = [place for place in places if place < len(vectors)]
        states_of_words[at : at + len(reached)] = vectors[reached]
        at += len(places)
    return states_of_words


class WordProbe(LinearLearner):
    """On tf-idf weights of words and word pairs; for tagging on the word, its neighbors and its endings."""

    name = "linear probe on words (tf-idf)"
    strength = 10.0

    def _features(self, texts: Sequence[Text], *, learn: bool) -> NDArray[np.floating] | csr_matrix:
        if self.task == "tagging":
            return self._around(texts, learn)
        if self.task == "classification":
            return self._weights(cast("Sequence[str]", texts), learn)
        from scipy.sparse import csr_matrix, hstack

        both = self._weights([text for pair in texts for text in pair], learn)
        u, v = both[0::2], both[1::2]
        if self.task == "pairs":
            return hstack([u, v, abs(u - v), u.multiply(v)]).tocsr()
        overlaps = [_overlaps(*pair) for pair in texts]
        cosines = np.asarray(u.multiply(v).sum(axis=1)).ravel()
        return csr_matrix(np.column_stack([cosines, overlaps])).toarray()

    def _weights(self, texts: Sequence[str], learn: bool) -> csr_matrix:
        from sklearn.feature_extraction.text import TfidfVectorizer

        if learn:
            self._words = TfidfVectorizer(
                tokenizer=_tokens, token_pattern=None, lowercase=False, ngram_range=(1, 2), sublinear_tf=True
            )
            return self._words.fit_transform(texts)
        return self._words.transform(texts)

    def _around(self, texts: Sequence[Sequence[str]], learn: bool) -> csr_matrix:
        from sklearn.feature_extraction import DictVectorizer

        rows = [_surroundings(tokens, place) for tokens in texts for place in range(len(tokens))]
        if learn:
            self._places = DictVectorizer()
            return self._places.fit_transform(rows)
        return self._places.transform(rows)


def _tokens(text: str) -> list[str]:
    """A text without any word keeps one mark, so that a release of empty texts is a result and not an error."""
    return split(text) or [""]


def _surroundings(tokens: Sequence[str], place: int) -> dict[str, str]:
    words = ["<", *(normalize(token) for token in tokens), ">"]
    word = words[place + 1]
    surroundings = {"word": word, "before": words[place], "after": words[place + 2], "start": word[:2]}
    return surroundings | {f"end {n}": word[-n:] for n in (1, 2, 3) if len(word) > n}


def _overlaps(first: str, second: str) -> tuple[float, float]:
    """Shared words and shared character triples, as shares of all."""
    sets = [(set(split(text)), {text[i : i + 3].lower() for i in range(len(text) - 2)}) for text in (first, second)]
    words, triples = (len(a & b) / max(len(a | b), 1) for a, b in zip(*sets, strict=True))
    return words, triples
