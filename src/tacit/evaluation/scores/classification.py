"""Scores of predicted classes, and their floors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence, Sized
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.errors import BadInputError

Label = Hashable


@dataclass(frozen=True)
class ClassScore:
    label: Label
    precision: float
    recall: float
    f1: float
    support: int
    predicted: int


@dataclass(frozen=True)
class ClassificationScores:
    """Everything that follows from a confusion matrix (rows: truth, columns: predictions)."""

    labels: tuple[Label, ...]
    confusion: Integers
    classes: tuple[ClassScore, ...]
    macro_f1: float
    accuracy: float

    @property
    def items(self) -> int:
        return int(self.confusion.sum())

    @property
    def never_predicted(self) -> tuple[Label, ...]:
        return tuple(c.label for c in self.classes if c.support and not c.predicted)


def label_order(*groups: Sequence[Label]) -> tuple[Label, ...]:
    """All labels of these groups, in an order that does not depend on the order of the rows."""
    labels = {label for group in groups for label in group}
    return tuple(sorted(labels, key=lambda label: (str(type(label)), label if _is_number(label) else 0, str(label))))


def confusion_matrix(truth: Sequence[Label], predicted: Sequence[Label], labels: Sequence[Label]) -> Integers:
    same_length(truth, predicted)
    place = {label: i for i, label in enumerate(labels)}
    cells = codes(truth, place) * len(place) + codes(predicted, place)
    counts: Integers = np.bincount(cells, minlength=len(place) ** 2).reshape(len(place), len(place)).astype(np.int64)
    return counts


def codes(values: Sequence[Label], place: Mapping[Label, int]) -> Integers:
    return np.fromiter((place[value] for value in values), dtype=np.int64, count=len(values))


def class_f1(confusion: Integers) -> Floats:
    """F1 of each class; NaN for a class that is neither there nor predicted."""
    hits = np.diagonal(confusion, axis1=-2, axis2=-1).astype(np.float64)
    total = confusion.sum(axis=-1) + confusion.sum(axis=-2)
    scores: Floats = np.divide(2 * hits, total, out=np.full(hits.shape, np.nan), where=total > 0)
    return scores


def macro_f1(confusion: Integers) -> float:
    """The mean over the classes that occur; 0 of nothing."""
    scores = class_f1(confusion)
    occurring = scores[~np.isnan(scores)]
    return float(occurring.mean()) if occurring.size else 0.0


def scores_of_confusion(confusion: Integers, labels: Sequence[Label]) -> ClassificationScores:
    counts = np.asarray(confusion, dtype=np.int64)
    hits, support, predicted = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    f1 = np.nan_to_num(class_f1(counts))
    classes = tuple(
        ClassScore(
            label,
            precision=float(hits[i] / predicted[i]) if predicted[i] else 0.0,
            recall=float(hits[i] / support[i]) if support[i] else 0.0,
            f1=float(f1[i]),
            support=int(support[i]),
            predicted=int(predicted[i]),
        )
        for i, label in enumerate(labels)
    )
    total = int(counts.sum())
    return ClassificationScores(
        tuple(labels), counts, classes, macro_f1(counts), float(hits.sum() / total) if total else 0.0
    )


def classification_scores(
    truth: Sequence[Label], predicted: Sequence[Label], labels: Sequence[Label] | None = None
) -> ClassificationScores:
    order = label_order(truth, predicted) if labels is None else tuple(labels)
    return scores_of_confusion(confusion_matrix(truth, predicted, order), order)


@dataclass(frozen=True)
class Floor:
    """The score that can be had without looking at the text. A floor that is not known is NaN."""

    majority: float
    random: float
    majority_label: Label = None

    @property
    def value(self) -> float:
        """The better of the two: a score has to beat both to mean anything."""
        return self.majority if math.isnan(self.random) else max(self.majority, self.random)


def most_frequent(labels: Sequence[Label]) -> Label:
    """Ties go to the label that comes first in `label_order`, so that the answer does not depend on the rows' order."""
    counts = Counter(labels)
    return max(label_order(labels), key=lambda label: counts[label])


def expected_random_f1(truth: Sequence[Label], guesses: Mapping[Label, float]) -> float:
    """The exact expected macro-F1 of guessing class c with probability guesses[c], whatever the text is.

    A class that may be guessed but does not occur counts with 0 whether it comes up or not.
    """
    from scipy.stats import binom

    counts, n = Counter(truth), len(truth)
    times = np.arange(n + 1)
    scores = []
    for label in label_order(truth, tuple(guesses)):
        support, q = counts[label], guesses.get(label, 0.0)
        f1 = np.divide(2.0 * times * support, n * (times + support), out=np.zeros(n + 1), where=times + support > 0)
        scores.append(float(binom.pmf(times, n, q) @ f1) if q > 0 else 0.0)
    return float(np.mean(scores))


def classification_floor(train: Sequence[Label], truth: Sequence[Label]) -> Floor:
    """Macro-F1 without looking at the text: the training majority for all, or a fair draw among its classes."""
    majority = most_frequent(train)
    classes = label_order(train)
    uniform = dict.fromkeys(classes, 1.0 / len(classes))
    return Floor(
        classification_scores(truth, [majority] * len(truth)).macro_f1, expected_random_f1(truth, uniform), majority
    )


def macro_f1_of_items(truth: Sequence[Label], runs: Sequence[Sequence[Label]]) -> Callable[[Integers], float]:
    """Macro-F1 on some of the items, mean over the runs."""
    order = label_order(truth, *runs)
    place = {label: i for i, label in enumerate(order)}
    k = len(order)
    rows = codes(truth, place) * k
    cells = [rows + codes(run, place) for run in runs]

    def statistic(at: Integers) -> float:
        matrices = (np.bincount(cell[at], minlength=k * k).reshape(k, k).astype(np.int64) for cell in cells)
        return float(np.mean([macro_f1(matrix) for matrix in matrices]))

    return statistic


def confusion_of_items(
    truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> tuple[list[Label], Callable[[Integers], Integers]]:
    """The labels, and the confusion of them in some of the texts, each of which has one label or several."""
    order = label_order([tag for tags in truth for tag in tags], [tag for tags in predicted for tag in tags])
    place, k = {label: i for i, label in enumerate(order)}, len(order)
    for t, p in zip(truth, predicted, strict=True):
        same_length(t, p)
    flat, predicted_codes = (
        codes([label for labels in some for label in labels], place) for some in (truth, predicted)
    )
    cells, text = flat * k + predicted_codes, np.repeat(np.arange(len(truth)), [len(labels) for labels in truth])

    def confusion(at: Integers) -> Integers:
        times = np.bincount(at, minlength=len(truth))
        matrix: Integers = np.bincount(cells, weights=times[text], minlength=k * k).astype(np.int64).reshape(k, k)
        return matrix

    return list(order), confusion


def same_length(first: Sized, second: Sized) -> None:
    if len(first) != len(second):
        raise BadInputError(
            "wrong-number-of-predictions",
            "there are {truth:,} true values but {predicted:,} predictions: give one for each",
            truth=len(first),
            predicted=len(second),
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)
