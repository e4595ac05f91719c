"""Scores of predictions, their floors, and how sure they are.

    F1_c = 2 TP_c / (2 TP_c + FP_c + FN_c),      macro-F1 = mean of F1_c

over the classes that occur in the truth or in the predictions (scikit-learn's convention, so that numbers agree with
papers). Micro-averaged scores hide collapse: a tagger that only says "O" has an accuracy of 83 % on CoNLL and a
macro-F1 of 0.10, so macro-F1 comes first and per-class scores always go with it.

Floors are exact, not sampled:

    majority   everybody gets the class that is most frequent in training
    random     every item gets class c with probability q_c:
               E[F1_c] = sum over p of Bin(n, q_c)(p) * 2 p n_c / (n (p + n_c))

The second holds because of p items that are guessed to be c, a hypergeometric share n_c / n is right on average.

Intervals: Student's t over seeds (what another run of the learner would give), and the percentile bootstrap over test
items (what another test set would give). They answer different questions, so both are kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.errors import BadInputError
from tacit.noise.source import public_generator

Label = Hashable

CONFIDENCE = 0.95
RESAMPLES = 1000


# Classes ----------------------------------------------------------------------------------------------------------


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
    _same_length(truth, predicted)
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


# Floors -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Floor:
    """What can be had without looking at the text. A floor that is not known is NaN."""

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


# Similarity -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SimilarityScores:
    """Correlation of predicted and true similarities. A constant prediction orders nothing: 0."""

    pearson: float
    spearman: float
    rmse: float


def pearson(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float:
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    _same_length(a, b)
    if len(a) < 2:
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    length = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / length if length > 0 else 0.0


def spearman(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float:
    from scipy.stats import rankdata

    return pearson(rankdata(first), rankdata(second))


def similarity_scores(truth: Sequence[float], predicted: Sequence[float]) -> SimilarityScores:
    error = np.asarray(truth, dtype=np.float64) - np.asarray(predicted, dtype=np.float64)
    rmse = float(np.sqrt(np.mean(error**2))) if len(error) else 0.0
    return SimilarityScores(pearson(truth, predicted), spearman(truth, predicted), rmse)


SIMILARITY_FLOOR = Floor(majority=0.0, random=0.0)
"""The mean for everybody orders nothing, and a random order is uncorrelated on average."""


# Tags -------------------------------------------------------------------------------------------------------------

OUTSIDE = "O"
_BEGIN, _END, _SINGLE = frozenset("BSU"), frozenset("ESLU"), frozenset("SU")


@dataclass(frozen=True)
class TaggingScores:
    """Scores over tokens, and over whole entities where the tags mark entities (None where they do not)."""

    tokens: ClassificationScores
    entities: EntityScores | None

    @property
    def main(self) -> float:
        """Entity F1 where there are entities, else macro-F1 over tokens."""
        return self.tokens.macro_f1 if self.entities is None else self.entities.f1


@dataclass(frozen=True)
class EntityScores:
    """An entity counts when its first token, its last token and its type are all right (Tjong Kim Sang, CoNLL 2003)."""

    precision: float
    recall: float
    f1: float
    true: int
    predicted: int
    by_type: tuple[ClassScore, ...]


def marks_entities(sequences: Sequence[Sequence[str]]) -> bool:
    """Whether the tags look like B-PER, I-PER, O rather than like NOUN, VERB."""
    tags = {tag for tags in sequences for tag in tags}
    marked = {tag for tag in tags if tag != OUTSIDE}
    return bool(marked) and all(len(tag) > 2 and tag[1] == "-" and tag[0] in "BIESLUM" for tag in marked)


def entities(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """(first token, token after the last, type), by the rule of conlleval: reads BIO, IO and BIOES alike."""
    spans: set[tuple[int, int, str]] = set()
    start, kind = 0, ""
    for place, tag in enumerate([*tags, OUTSIDE]):
        mark, _, name = tag.partition("-")
        if kind and (tag == OUTSIDE or mark in _BEGIN or name != kind):
            spans.add((start, place, kind))
            kind = ""
        if tag == OUTSIDE:
            continue
        if not kind:
            start, kind = place, name
        if mark in _END:
            spans.add((start, place + 1, kind))
            kind = ""
    return spans


def entity_scores(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> EntityScores:
    _same_length(truth, predicted)
    gold = [(i, *e) for i, tags in enumerate(truth) for e in entities(tags)]
    predicted_spans = [(i, *e) for i, tags in enumerate(predicted) for e in entities(tags)]
    hits = set(gold) & set(predicted_spans)
    right = Counter(e[-1] for e in hits)
    per_true, per_said = Counter(e[-1] for e in gold), Counter(e[-1] for e in predicted_spans)
    by_type = tuple(
        ClassScore(name, *_prf(right[name], per_true[name], per_said[name]), per_true[name], per_said[name])
        for name in sorted(per_true.keys() | per_said.keys())
    )
    return EntityScores(*_prf(len(hits), len(gold), len(predicted_spans)), len(gold), len(predicted_spans), by_type)


def entity_counts(truth: Sequence[str], predicted: Sequence[str]) -> tuple[int, int, int]:
    """Right, true and predicted entities of one text."""
    gold, predicted_spans = entities(truth), entities(predicted)
    return len(gold & predicted_spans), len(gold), len(predicted_spans)


def tagging_scores(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> TaggingScores:
    for row, (true, predicted_tags) in enumerate(zip(truth, predicted, strict=True), start=1):
        if len(true) != len(predicted_tags):
            raise BadInputError(
                "wrong-number-of-tags",
                "text {row} has {tags} tags but {predicted} predicted ones: give one per token",
                row=row,
                tags=len(true),
                predicted=len(predicted_tags),
            )
    flat = classification_scores([t for tags in truth for t in tags], [t for tags in predicted for t in tags])
    return TaggingScores(flat, entity_scores(truth, predicted) if marks_entities(truth) else None)


def tagging_floor(train: Sequence[Sequence[str]], truth: Sequence[Sequence[str]]) -> Floor:
    """One tag for all; for entities that is nearly always "O" and finds none of them.

    Guessed tags find entities only by luck, and how many has no closed form: that floor is left out (NaN) for entities.
    """
    flat = [tag for tags in train for tag in tags]
    majority = most_frequent(flat)
    if marks_entities(truth):
        constant = [[str(majority)] * len(tags) for tags in truth]
        return Floor(entity_scores(truth, constant).f1, math.nan, majority)
    return classification_floor(flat, [tag for tags in truth for tag in tags])


def _prf(hits: int, true: int, predicted: int) -> tuple[float, float, float]:
    precision = hits / predicted if predicted else 0.0
    recall = hits / true if true else 0.0
    return precision, recall, 2 * hits / (true + predicted) if true + predicted else 0.0


# Intervals --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """A mean or score, and where it lies with the stated confidence; `low` and `high` are NaN where one value is all
    there is."""

    value: float
    low: float
    high: float
    count: int
    confidence: float = CONFIDENCE

    def __str__(self) -> str:
        if math.isnan(self.low):
            return f"{self.value:.3f}"
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def named(self, name: str) -> dict[str, float]:
        """The score of this name, and the ends of its interval beside it."""
        return {name: self.value, f"{name}.low": self.low, f"{name}.high": self.high}

    def times(self, factor: float) -> Interval:
        """That of the score times a number; a negative one turns it around."""
        low, high = sorted((factor * self.low, factor * self.high))
        return replace(self, value=factor * self.value, low=low, high=high)


def t_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Student's interval of the mean, of seeds or of a number of each test item. One value has no interval."""
    from scipy.stats import t

    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size:
        raise BadInputError("nothing-measured", "there is no value to average: run at least one seed")
    mean = float(numbers.mean())
    if len(numbers) < 2:
        return Interval(mean, math.nan, math.nan, 1, confidence)
    reach = float(t.ppf((1 + confidence) / 2, len(numbers) - 1) * numbers.std(ddof=1) / math.sqrt(len(numbers)))
    return Interval(mean, mean - reach, mean + reach, len(numbers), confidence)


def resampled(
    statistic: Callable[[Integers], float | Floats], items: int, *, resamples: int = RESAMPLES, seed: int = 0
) -> Floats:
    """The statistic on `resamples` test sets drawn from the items with replacement (Efron 1979)."""
    rng = public_generator(seed)
    return np.array([statistic(rng.integers(0, items, items)) for _ in range(resamples)])


def bootstrap_interval(
    statistic: Callable[[Integers], float],
    items: int,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap over test items; `statistic` gets the places of the items of one resample."""
    return bootstrap_intervals(
        lambda at: np.array([statistic(at)]), items, confidence=confidence, resamples=resamples, seed=seed
    )[0]


def bootstrap_intervals(
    statistics: Callable[[Integers], Floats],
    items: int,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Interval]:
    """The same for several numbers of each resample at once."""
    values = statistics(np.arange(items)).tolist()
    if items < 2:
        return [Interval(value, math.nan, math.nan, items, confidence) for value in values]
    draws = resampled(statistics, items, resamples=resamples, seed=seed)
    ends = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0).T.tolist()
    return [Interval(value, low, high, items, confidence) for value, (low, high) in zip(values, ends, strict=True)]


def mean_interval(values: Sequence[float] | Floats, *, seed: int = 0, resamples: int = RESAMPLES) -> Interval:
    """Bootstrap over texts of the mean of one number per text."""
    numbers = np.asarray(values, dtype=np.float64)
    return bootstrap_interval(lambda at: float(numbers[at].mean()), len(numbers), seed=seed, resamples=resamples)


# Statistics for the bootstrap -------------------------------------------------------------------------------------


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


def spearman_of_items(truth: Sequence[float], runs: Sequence[Sequence[float]]) -> Callable[[Integers], float]:
    gold, predictions = np.asarray(truth, dtype=np.float64), [np.asarray(run, dtype=np.float64) for run in runs]
    return lambda at: float(np.mean([spearman(gold[at], run[at]) for run in predictions]))


def entity_f1_of_items(
    truth: Sequence[Sequence[str]], runs: Sequence[Sequence[Sequence[str]]]
) -> Callable[[Integers], float]:
    tables = [np.array([entity_counts(t, p) for t, p in zip(truth, run, strict=True)]) for run in runs]
    return lambda at: float(np.mean([_prf(*table[at].sum(axis=0).tolist())[2] for table in tables]))


def token_f1_of_items(
    truth: Sequence[Sequence[str]], runs: Sequence[Sequence[Sequence[str]]]
) -> Callable[[Integers], float]:
    """Macro-F1 over tokens; whole texts are resampled, since the tokens of a text belong together."""
    tables = [confusion_of_items(truth, run)[1] for run in runs]
    return lambda at: float(np.mean([macro_f1(table(at)) for table in tables]))


def confusion_of_items(
    truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> tuple[list[Label], Callable[[Integers], Integers]]:
    """The labels, and the confusion of them in some of the texts, each of which has one label or several."""
    order = label_order([tag for tags in truth for tag in tags], [tag for tags in predicted for tag in tags])
    place, k = {label: i for i, label in enumerate(order)}, len(order)
    for t, p in zip(truth, predicted, strict=True):
        _same_length(t, p)
    flat, predicted_codes = (
        codes([label for labels in some for label in labels], place) for some in (truth, predicted)
    )
    cells, text = flat * k + predicted_codes, np.repeat(np.arange(len(truth)), [len(labels) for labels in truth])

    def confusion(at: Integers) -> Integers:
        times = np.bincount(at, minlength=len(truth))
        matrix: Integers = np.bincount(cells, weights=times[text], minlength=k * k).astype(np.int64).reshape(k, k)
        return matrix

    return list(order), confusion


def _same_length(first: Sized, second: Sized) -> None:
    if len(first) != len(second):
        raise BadInputError(
            "wrong-number-of-predictions",
            "there are {truth:,} true values but {predicted:,} predictions: give one for each",
            truth=len(first),
            predicted=len(second),
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)
