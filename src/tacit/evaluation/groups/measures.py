"""Measures of predictions whose scores follow from sums over rows, so that many test sets are scored at once.

Each measure is a matrix of counts, one line for each row; the score of some rows, drawn once or several times, is a
function of the sum of their lines. `CountedMeasure.sections` is the number of blocks of columns: one for a measure of
rows, one for each class where classes are the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import coo_array, csr_array

from tacit.arrays import Floats, Integers
from tacit.errors import BadInputError, BadParameterError, require
from tacit.evaluation.scores import codes, entity_counts, label_order, marks_entities
from tacit.evaluation.scores.answers import scores_of_answer

Score = Callable[[Floats], Floats]
"""From sums, whose last axis has the parts of a measure, to scores; NaN where there is nothing to score."""


@dataclass(frozen=True)
class CountedMeasure:
    """One measure of one list of predictions.

    counts   rows x (sections * parts)
    better   1 if more is better, -1 if less is
    largest  the largest possible score; infinite where there is none
    shares   each row counts once, as right or wrong
    """

    name: str
    counts: csr_array = field(repr=False)
    parts: int
    score: Score = field(repr=False)
    better: int = 1
    largest: float = 1.0
    shares: bool = False

    @property
    def sections(self) -> int:
        return int(self.counts.shape[1]) // self.parts


def measures_of(task: str, truth: Sequence[str], predicted: Sequence[str]) -> list[CountedMeasure]:
    """The measures of a task, the main one first; `task` names what predictions are scored as."""
    if task == "classify":
        return _of_labels([[label] for label in truth], [[label] for label in predicted], "accuracy")
    if task == "tag":
        true, tags = tag_lists(truth, predicted)
        measures = _of_labels(true, tags, "accuracy of words")
        if not marks_entities(true):
            return measures
        spans = np.array([entity_counts(t, p) for t, p in zip(true, tags, strict=True)], dtype=np.float64)
        return [CountedMeasure("entity F1", csr_array(spans[:, [0, 1, 2]]), 3, _f1), *measures]
    if task == "answer":
        pairs = [scores_of_answer(cell, answer) for cell, answer in zip(truth, predicted, strict=True)]
        exact = [bool(right) for right, _ in pairs]
        return [_mean("word F1", [overlap for _, overlap in pairs]), _right("exact match", exact)]
    if task == "regress":
        return _of_numbers(numbers_of(truth), numbers_of(predicted))
    if task == "write":
        logs = np.log(np.maximum(numbers_of(predicted), 1e-12))
        return [_mean("perplexity", logs, better=-1, largest=np.inf, last=np.exp)]
    if task == "fill":
        return [_mean("masked pieces guessed", numbers_of(predicted))]
    if task == "translate":
        sacrebleu = require("sacrebleu", extra="documents", purpose="scoring translations")
        scores = [float(sacrebleu.sentence_chrf(p, [t]).score) for t, p in zip(truth, predicted, strict=True)]
        return [_mean("chrF of texts", scores, largest=100.0)]
    if task == "exact":
        return [_right("exact match", [a == b for a, b in zip(truth, predicted, strict=True)])]
    raise BadParameterError("unknown-task", "there is no measure for the task '{task}'", task=task)


def class_measures(task: str, truth: Sequence[str], predicted: Sequence[str]) -> tuple[list[str], list[CountedMeasure]]:
    """The classes that occur in the truth, and measures with a section for each of them: F1, and the share found."""
    if task not in ("classify", "tag"):
        raise BadParameterError(
            "no-classes-to-group-by",
            "classes can be groups where labels or tags are predicted, not for the task '{task}': leave out "
            "{option.by_class}",
            task=task,
        )
    true, answers = tag_lists(truth, predicted) if task == "tag" else ([[t] for t in truth], [[p] for p in predicted])
    order = label_order([tag for tags in true for tag in tags], [tag for tags in answers for tag in tags])
    rows, true_codes, codes_of_answers = _flat(true, answers, order)
    counts = _class_counts(rows, true_codes, codes_of_answers, len(true), len(order))
    there = np.unique(true_codes)
    kept = csr_array(counts[:, (3 * there[:, None] + np.arange(3)).ravel()])
    hits = csr_array(counts[:, (3 * there[:, None] + np.arange(2)).ravel()])
    names = [str(order[code]) for code in there]
    return names, [CountedMeasure("F1", kept, 3, _f1), CountedMeasure("share found", hits, 2, _share)]


def tag_lists(truth: Sequence[str], predicted: Sequence[str]) -> tuple[list[list[str]], list[list[str]]]:
    """The tags of each row, as many predicted ones as true ones."""
    true, answers = [line.split() for line in truth], [line.split() for line in predicted]
    for number, (a, b) in enumerate(zip(true, answers, strict=True), 1):
        if len(a) != len(b):
            raise BadInputError(
                "wrong-number-of-tags",
                "row {number} has {tags} tags and {predicted} predicted ones: each word needs one tag",
                number=number,
                tags=len(a),
                predicted=len(b),
            )
    return true, answers


def numbers_of(values: Sequence[str]) -> Floats:
    """The values as numbers."""
    try:
        return np.array([float(value) for value in values])
    except ValueError:
        raise BadInputError("not-a-number", "a value to compare with is not a number") from None


# Counting -------------------------------------------------------------------------------------------------------------


def _flat(
    truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], order: Sequence[object]
) -> tuple[Integers, Integers, Integers]:
    """The row, the true code and the predicted code of each label."""
    place = {label: i for i, label in enumerate(order)}
    rows = np.repeat(np.arange(len(truth)), [len(labels) for labels in truth])
    flat = [codes([label for labels in some for label in labels], place) for some in (truth, predicted)]
    return rows, flat[0], flat[1]


def _class_counts(rows: Integers, true: Integers, predicted: Integers, count: int, classes: int) -> csr_array:
    """Rows x (classes * 3): how often a class is found, is true, and is predicted."""
    hits = true == predicted
    lines = np.concatenate([rows[hits], rows, rows])
    columns = np.concatenate([3 * true[hits], 3 * true + 1, 3 * predicted + 2])
    return csr_array(coo_array((np.ones(len(lines)), (lines, columns)), shape=(count, 3 * classes)))


def _of_labels(
    truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], accuracy: str
) -> list[CountedMeasure]:
    order = label_order([tag for tags in truth for tag in tags], [tag for tags in predicted for tag in tags])
    rows, true, answers = _flat(truth, predicted, order)
    counts = _class_counts(rows, true, answers, len(truth), len(order))
    right = np.bincount(rows, true == answers, minlength=len(truth))
    size = np.bincount(rows, minlength=len(truth))
    one_each = bool((size == 1).all())
    return [
        CountedMeasure("macro-F1", counts, 3 * len(order), _macro_f1),
        CountedMeasure(accuracy, csr_array(np.stack([right, size], 1)), 2, _share, shares=one_each),
    ]


def _right(name: str, hits: Sequence[bool]) -> CountedMeasure:
    counts = np.stack([np.asarray(hits, dtype=np.float64), np.ones(len(hits))], 1)
    return CountedMeasure(name, csr_array(counts), 2, _share, shares=True)


def _mean(
    name: str, values: Sequence[float] | Floats, *, better: int = 1, largest: float = 1.0, last: Score | None = None
) -> CountedMeasure:
    counts = np.stack([np.asarray(values, dtype=np.float64), np.ones(len(values))], 1)
    score = _share if last is None else lambda sums: last(_share(sums))
    return CountedMeasure(name, csr_array(counts), 2, score, better, largest)


def _of_numbers(true: Floats, predicted: Floats) -> list[CountedMeasure]:
    moments = np.stack([np.ones(len(true)), true, predicted, true**2, predicted**2, true * predicted], 1)
    return [
        _mean("mean absolute error", np.abs(true - predicted), better=-1, largest=np.inf),
        CountedMeasure("Pearson", csr_array(moments), 6, _pearson),
    ]


# Scores of sums -------------------------------------------------------------------------------------------------------


def _share(sums: Floats) -> Floats:
    result: Floats = np.divide(sums[..., 0], sums[..., 1], out=np.full(sums.shape[:-1], np.nan), where=sums[..., 1] > 0)
    return result


def _f1(sums: Floats) -> Floats:
    total = sums[..., 1] + sums[..., 2]
    result: Floats = np.divide(2 * sums[..., 0], total, out=np.full(total.shape, np.nan), where=total > 0)
    return result


def _macro_f1(sums: Floats) -> Floats:
    """The mean over the classes that occur in the truth or in the predictions, as for all rows together."""
    scores = _f1(sums.reshape(*sums.shape[:-1], -1, 3))
    there = ~np.isnan(scores)
    total, count = np.where(there, scores, 0.0).sum(-1), there.sum(-1)
    result: Floats = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return result


def _pearson(sums: Floats) -> Floats:
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread = np.maximum(n * xx - x**2, 0.0) * np.maximum(n * yy - y**2, 0.0)
    large = spread > 1e-18 * np.maximum(1.0, (n * xx) * (n * yy))
    result: Floats = np.divide(n * xy - x * y, np.sqrt(spread), out=np.full(n.shape, np.nan), where=large)
    return result
