"""The classifiers behind authorship and attribute inference: linear models, in three situations.

    non-private   trained on original texts, tried on original texts        the ceiling
    static        trained on original texts, tried on released texts        knows nothing about the rewriting
    adaptive      trained on released texts, tried on released texts        knows the mechanism and rewrites as well

Privacy that only holds against the static attacker is none: whoever can run the mechanism trains on rewritten text
(Riecker 2023, section 5, trains all attackers so). Every row is tried exactly once, by a classifier that was not
trained on it (stratified folds); with `groups`, no group (an author) stands on both sides, so that an attribute is not
learned by recognizing the author.

Features: TF-IDF of character n-grams within words and of words, or sentence vectors. Up to `MOST_CLASSES` classes a
linear support vector machine (one against the rest), beyond that the nearest class mean (Rocchio), whose cost does not
grow with the number of classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Ids
from tacit.auditing.text import scale
from tacit.auditing.text.scale import Success
from tacit.documents.encoder import Encoder
from tacit.errors import BadInputError, require
from tacit.noise.source import public_generator
from tacit.progress import StepProgress

FOLDS = 3
MOST_CLASSES = 200
MOST_FEATURES = 40_000
PURPOSE = "a classifier that attacks texts"


@dataclass(frozen=True)
class Identified:
    """The success of each attacker at naming the right class.

    top1 top5       by attacker ("static", "adaptive"); the ceiling of each is the non-private attacker
    macro_f1        by attacker, with "non-private" and the floor "majority"
    majority        rate of always naming the most frequent class
    random          rate of drawing a class by its frequency
    certain         rows that the stronger attacker named right with the largest margin, as indices
    """

    classes: int
    rows: int
    top1: dict[str, Success]
    top5: dict[str, Success]
    macro_f1: dict[str, float]
    majority: float
    random: float
    certain: list[int]


def identify(
    originals: Sequence[str],
    released: Sequence[str],
    labels: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> Identified:
    """Try all three attackers on every row. Rows of one cluster are not taken as independent in the intervals."""
    require("sklearn", extra="audit", purpose=PURPOSE)
    ready = {"original": _vectors(encoder, originals), "released": _vectors(encoder, released)}
    return _identified(originals, released, ready, labels, groups, clusters, seed, progress)


def identify_vectors(
    originals: NDArray[np.float32], released: NDArray[np.float32], labels: Sequence[str], *, seed: int = 0
) -> Identified:
    """Try all three attackers on vectors: those without noise, and those that were released."""
    require("sklearn", extra="audit", purpose=PURPOSE)
    none = [""] * len(labels)
    return _identified(none, none, {"original": originals, "released": released}, labels, None, None, seed, None)


def _identified(
    originals: Sequence[str],
    released: Sequence[str],
    ready: Mapping[str, NDArray[np.float32] | None],
    labels: Sequence[str],
    groups: Sequence[str] | None,
    clusters: Sequence[str] | None,
    seed: int,
    progress: StepProgress | None,
) -> Identified:
    names, y = np.unique(np.asarray(labels, dtype=object).astype(str), return_inverse=True)
    y = y.astype(np.int64)
    folds = folds_of(y, groups, seed)
    scores = {name: np.full((len(y), len(names)), -np.inf, dtype=np.float32) for name in _SITUATIONS}
    for fold in range(FOLDS):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        for trained_on, texts in (("original", originals), ("released", released)):
            represent, model = _trained(texts, ready[trained_on], y, train)
            for name, (learned, tried) in _SITUATIONS.items():
                if learned == trained_on and len(test):
                    shown = originals if tried == "original" else released
                    table = represent([shown[int(i)] for i in test], ready[tried], test)
                    scores[name][np.ix_(test, model.classes_)] = _scores(model, table)
        if progress is not None:
            progress(fold + 1, FOLDS)
    return _summary(scores, y, None if clusters is None else np.asarray(clusters, dtype=object).astype(str))


_SITUATIONS = {
    "non-private": ("original", "original"),
    "static": ("original", "released"),
    "adaptive": ("released", "released"),
}


# Who is tried when ---------------------------------------------------------------------------------------------------


def folds_of(y: Ids, groups: Sequence[str] | None, seed: int) -> Ids:
    """A fold for each row: the rows of a class, or the groups of a class, dealt out one after the other."""
    generator = public_generator(seed)
    folds = np.empty(len(y), dtype=np.int64)
    if groups is None:
        start = 0
        for label in range(int(y.max()) + 1):
            rows = generator.permutation(np.flatnonzero(y == label))
            folds[rows] = (np.arange(len(rows)) + start) % FOLDS
            start += len(rows)
        return folds
    _, owner = np.unique(np.asarray(groups, dtype=object).astype(str), return_inverse=True)
    first = np.unique(owner, return_index=True)[1]
    of_group = np.empty(len(first), dtype=np.int64)
    for label in range(int(y.max()) + 1):
        members = generator.permutation(np.flatnonzero(y[first] == label))
        of_group[members] = np.arange(len(members)) % FOLDS
    folds[:] = of_group[owner]
    return folds


def check_labels(labels: Sequence[str], what: str, rows: Sequence[int], *, least: int) -> None:
    """Every class needs enough rows, or no attacker can be trained and tried."""
    counts = Counter(labels)
    if len(counts) < 2:
        raise BadInputError(
            "too-few-classes",
            "the {what} column has one value only: an attacker needs at least two classes to tell apart",
            what=what,
        )
    for row, label in zip(rows, labels, strict=True):
        if counts[label] < least:
            has = "one text" if counts[label] == 1 else f"{counts[label]} texts"
            raise BadInputError(
                "too-few-of-a-label",
                "the {what} of row {row:,} has {has} only, and an attacker learns from one part and is tried on "
                "another: give at least {least} of each, or remove such rows from both files",
                what=what,
                row=row,
                has=has,
                least=least,
            )


# Features and models --------------------------------------------------------------------------------------------------


def _vectors(encoder: Encoder | None, texts: Sequence[str]) -> NDArray[np.float32] | None:
    return None if encoder is None else encoder.encode(texts)


def _trained(texts: Sequence[str], vectors: NDArray[np.float32] | None, y: Ids, train: Ids) -> tuple[Any, Any]:
    """The features of texts, and a classifier, both learned from the rows in `train`."""
    if vectors is not None:
        model = _model(len(np.unique(y[train]))).fit(vectors[train], y[train])
        return lambda _texts, table, rows: table[rows], model
    features = _features()
    try:
        table = features.fit_transform([texts[int(i)] for i in train])
    except ValueError:
        raise BadInputError(
            "no-words", "the texts hold no words that an attacker could learn from: check the column"
        ) from None
    model = _model(len(np.unique(y[train]))).fit(table, y[train])
    return lambda shown, _table, _rows: features.transform(shown), model


def _features() -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_union

    common: dict[str, Any] = {"sublinear_tf": True, "max_features": MOST_FEATURES, "dtype": np.float32}
    return make_union(
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), **common),
        TfidfVectorizer(token_pattern=r"\S+", ngram_range=(1, 2), **common),
    )


def _model(classes: int) -> Any:
    if classes > MOST_CLASSES:
        return NearestMean()
    from sklearn.svm import LinearSVC

    return LinearSVC(C=1.0, dual="auto", tol=1e-3, random_state=0)


class NearestMean:
    """The class whose mean has the largest cosine with a text (Rocchio)."""

    classes_: Ids

    def fit(self, table: Any, y: Ids) -> NearestMean:
        from scipy.sparse import csr_matrix
        from sklearn.preprocessing import normalize

        self.classes_, place = np.unique(y, return_inverse=True)
        choose = csr_matrix(
            (np.ones(len(y), dtype=np.float32), (place, np.arange(len(y)))), shape=(len(self.classes_), len(y))
        )
        self._means = normalize(choose @ normalize(table))
        return self

    def decision_function(self, table: Any) -> NDArray[np.float32]:
        scores = table @ self._means.T
        dense = scores.toarray() if hasattr(scores, "toarray") else scores
        return np.asarray(dense, dtype=np.float32)


def _scores(model: Any, table: Any) -> NDArray[np.float32]:
    scores = np.asarray(model.decision_function(table), dtype=np.float32)
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


# What came out --------------------------------------------------------------------------------------------------------


def _summary(scores: dict[str, NDArray[np.float32]], y: Ids, clusters: NDArray[np.generic] | None) -> Identified:
    classes = scores["static"].shape[1]
    ranks = {name: ranks_of(table, y) for name, table in scores.items()}
    shares = np.bincount(y, minlength=classes) / len(y)
    majority = float(shares.max())
    five = float(np.sort(shares)[-5:].sum())
    top1, top5 = {}, {}
    for name in ("static", "adaptive"):
        ceiling = float((ranks["non-private"] < 1).mean())
        top1[name] = scale.of_trials(ranks[name] < 1, floor=majority, ceiling=ceiling, rows=clusters, looks=2)
        ceiling = float((ranks["non-private"] < 5).mean())
        top5[name] = scale.of_trials(ranks[name] < 5, floor=five, ceiling=ceiling, rows=clusters, looks=2)
    f1 = {name: macro_f1(y, table.argmax(axis=1), classes) for name, table in scores.items()}
    f1["majority"] = macro_f1(y, np.full(len(y), int(shares.argmax())), classes)
    best = max(top1, key=lambda name: top1[name].rate)
    table = np.sort(scores[best], axis=1)
    margin = table[:, -1] - table[:, -2]
    margin[ranks[best] > 0] = -np.inf
    order = np.argsort(-margin, kind="stable")
    certain = [int(i) for i in order[:10] if np.isfinite(margin[i])]
    return Identified(classes, len(y), top1, top5, f1, majority, float((shares**2).sum()), certain)


def ranks_of(scores: NDArray[np.float32], y: Ids) -> Ids:
    """The number of classes that score higher than the right one, equal scores counted against the attacker."""
    own = scores[np.arange(len(y)), y]
    ranks: Ids = (scores >= own[:, None]).sum(axis=1) - 1
    return ranks


def macro_f1(y: Ids, guess: Ids, classes: int) -> float:
    """Mean over the classes of 2 TP / (2 TP + FP + FN)."""
    right = np.bincount(y[y == guess], minlength=classes)
    both = np.bincount(y, minlength=classes) + np.bincount(guess, minlength=classes)
    return float(np.mean(2 * right / np.maximum(both, 1)))
