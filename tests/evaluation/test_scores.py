"""Scores: published confusion matrices, scikit-learn, exact floors, intervals that cover what they claim."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tacit.errors import BadInputError
from tacit.evaluation import scores
from tacit.evaluation.scores import (
    bootstrap_interval,
    classification_floor,
    classification_scores,
    entities,
    entity_scores,
    expected_random_f1,
    pearson,
    scores_of_confusion,
    similarity_scores,
    spearman,
    t_interval,
    tagging_floor,
    tagging_scores,
)

CONLL = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC", "B-MISC", "I-MISC")
TABLES = {
    "T4.9": [[38207, 26, 3, 47, 41, 19, 9, 66, 80], [0] * 9, [17, 1556, 1150, 23, 10, 15, 1, 1, 0],
             [0, 0, 0, 0, 5, 0, 0, 0, 0], [42, 27, 3, 1514, 767, 53, 29, 42, 14], [0, 0, 1, 0, 2, 0, 1, 0, 2],
             [22, 7, 3, 49, 12, 1558, 232, 30, 5], [0, 0, 0, 0, 0, 0, 0, 4, 5], [51, 9, 3, 32, 9, 23, 4, 594, 183]],
    "T4.10": [[37540, 61, 38, 149, 0, 304, 0, 0, 0], [0] * 9, [33, 1057, 1521, 77, 0, 48, 0, 0, 0],
              [0, 0, 0, 4, 0, 1, 0, 0, 0], [192, 90, 142, 1157, 9, 763, 0, 0, 0], [0, 1, 2, 2, 0, 1, 0, 0, 0],
              [58, 14, 38, 169, 0, 1577, 0, 0, 0], [1, 2, 0, 1, 0, 5, 0, 0, 0], [178, 21, 14, 110, 0, 502, 0, 0, 0]],
    "T4.11": [[41021, 9, 6, 5, 9, 4, 52, 4, 32], [0] * 9, [2821, 1, 0, 0, 0, 0, 2, 0, 3], [5, 0, 0, 0, 0, 0, 0, 0, 0],
              [2524, 1, 1, 0, 0, 0, 3, 1, 2], [6, 0, 0, 0, 0, 0, 0, 0, 0], [1935, 1, 0, 1, 0, 0, 0, 0, 1],
              [9, 0, 0, 0, 0, 0, 0, 0, 0], [1013, 0, 0, 0, 0, 0, 1, 0, 1]],
}  # fmt: skip
"""Published confusion matrices of taggers (rows: truth), with the scores they imply."""


@pytest.mark.parametrize(("name", "macro", "micro"), [("T4.9", 0.285, 0.870), ("T4.10", 0.186, 0.852),
                                                      ("T4.11", 0.101, 0.829)])  # fmt: skip
def test_published_taggers(name, macro, micro):
    measured = scores_of_confusion(np.array(TABLES[name]), CONLL)
    assert measured.macro_f1 == pytest.approx(macro, abs=5e-4)
    assert measured.accuracy == pytest.approx(micro, abs=5e-4)


@pytest.mark.parametrize(
    ("confusion", "macro"),
    [
        ([[2, 12497], [3, 12497]], 0.333),
        ([[21838, 3162], [3863, 21137]], 0.8595),
        ([[1356, 1699, 313], [1122, 1780, 335], [1217, 1677, 325]], 0.321),
        ([[2832, 129, 407], [272, 2530, 435], [375, 604, 2240]], 0.772),
    ],
)
def test_published_classifiers(confusion, macro):
    assert scores_of_confusion(np.array(confusion), range(len(confusion))).macro_f1 == pytest.approx(macro, abs=5e-4)


def test_agrees_with_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(1)
    for classes in (2, 3, 7):
        truth = [f"c{i}" for i in rng.integers(0, classes, 60)]
        predicted = [f"c{i}" for i in rng.integers(0, classes + 1, 60)]  # one class that never occurs
        measured = classification_scores(truth, predicted)
        assert measured.macro_f1 == pytest.approx(metrics.f1_score(truth, predicted, average="macro", zero_division=0))
        assert measured.accuracy == pytest.approx(metrics.accuracy_score(truth, predicted))
        table = metrics.precision_recall_fscore_support(truth, predicted, labels=measured.labels, zero_division=0)
        ours = [(c.precision, c.recall, c.f1, c.support) for c in measured.classes]
        assert np.allclose(np.array(ours).T, np.array(table))
        assert (measured.confusion == metrics.confusion_matrix(truth, predicted, labels=measured.labels)).all()


def test_majority_floors_of_the_published_shares():
    """Riecker 2023: sentiment .172, gender .376, topic .074, from the class shares alone."""
    shares = {0.172: (9.55, 2.77, 2.93, 9.42, 75.34), 0.376: (39.71, 60.29), 0.074: (21.67, 16.4, 0.93, 28.38, 24.67,
                                                                                  7.95)}  # fmt: skip
    for floor, parts in shares.items():
        labels = [i for i, share in enumerate(parts) for _ in range(round(100 * share))]
        assert classification_floor(labels, labels).majority == pytest.approx(floor, abs=5e-4)


def test_the_random_floor_is_the_exact_expectation():
    truth = ["a"] * 9 + ["b"] * 4 + ["c"] * 2
    guesses = {"a": 0.2, "b": 0.5, "c": 0.3}
    rng = np.random.default_rng(3)
    names = list(guesses)
    draws = rng.choice(len(names), p=list(guesses.values()), size=(4000, len(truth)))
    # A class that occurs is always counted, so the sampled mean is an unbiased estimate of the exact one.
    sampled = [classification_scores(truth, [names[i] for i in row]).macro_f1 for row in draws]
    error = np.std(sampled) / math.sqrt(len(sampled))
    assert abs(np.mean(sampled) - expected_random_f1(truth, guesses)) < 5 * error  # false alarm below 1e-6
    assert expected_random_f1(truth, {"a": 1.0}) == pytest.approx(classification_scores(truth, ["a"] * 15).macro_f1)


def test_the_floor_is_the_better_of_the_two_and_does_not_depend_on_the_order():
    balanced = ["a", "b", "c", "d"] * 25
    floor = classification_floor(balanced, balanced)
    assert floor.majority == pytest.approx(0.1)
    assert floor.value == floor.random > 0.2
    assert classification_floor(balanced[::-1], balanced).majority_label == floor.majority_label == "a"


def test_correlations_agree_with_scipy_and_a_constant_says_nothing():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 5, 50).astype(float)
    b = a + rng.normal(0, 2, 50)
    assert pearson(a, b) == pytest.approx(stats.pearsonr(a, b).statistic)
    assert spearman(a, b) == pytest.approx(stats.spearmanr(a, b).statistic)
    constant = similarity_scores(a, [2.0] * 50)
    assert (constant.pearson, constant.spearman) == (0.0, 0.0)
    assert constant.rmse == pytest.approx(float(np.sqrt(np.mean((a - 2) ** 2))))


@pytest.mark.parametrize(
    ("tags", "result"),
    [
        ("O B-PER I-PER O", {(1, 3, "PER")}),
        ("B-PER B-PER", {(0, 1, "PER"), (1, 2, "PER")}),
        ("I-PER I-PER I-LOC", {(0, 2, "PER"), (2, 3, "LOC")}),
        ("B-PER I-LOC", {(0, 1, "PER"), (1, 2, "LOC")}),
        ("B-PER I-PER E-PER S-LOC", {(0, 3, "PER"), (3, 4, "LOC")}),
        ("B-PER L-PER U-PER", {(0, 2, "PER"), (2, 3, "PER")}),
        ("O O", set()),
    ],
)
def test_entities_in_every_scheme(tags, result):
    assert entities(tags.split()) == result


def test_entity_scores_by_hand():
    truth = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC"]]
    said = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "O"]]
    measured = entity_scores(truth, said)
    assert (measured.true, measured.predicted) == (3, 3)
    assert measured.f1 == pytest.approx(1 / 3)
    assert {c.label: c.f1 for c in measured.by_type} == {"LOC": 0.5, "PER": 0.0}
    assert tagging_scores(truth, truth).main == 1.0
    assert tagging_scores([["NOUN", "VERB"]], [["NOUN", "NOUN"]]).entities is None
    assert tagging_floor([["O"] * 9, *truth], truth).value == 0.0
    with pytest.raises(BadInputError, match="text 2 has 2 tags but 1"):
        tagging_scores(truth, [said[0], ["O"]])


def test_the_t_interval_is_students():
    values = [0.71, 0.74, 0.69]
    interval = t_interval(values)
    low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    assert (interval.low, interval.high) == (pytest.approx(low), pytest.approx(high))
    assert math.isnan(t_interval([0.5]).low)
    assert str(t_interval([0.5])) == "0.500"


def test_bootstrap_intervals_cover_the_truth():
    """Of 200 intervals for a mean, 95 % should hold it: fewer than 178 has a probability below 1e-3."""
    rng = np.random.default_rng(5)
    hits = 0
    for seed in range(200):
        values = rng.normal(1.0, 1.0, 100)
        interval = scores.mean_interval(values, seed=seed, resamples=300)
        hits += interval.low <= 1.0 <= interval.high
    assert hits >= 178


def test_several_numbers_of_one_resample_have_the_intervals_of_each():
    values = np.random.default_rng(7).normal(size=(50, 2))
    both = scores.bootstrap_intervals(lambda at: values[at].mean(axis=0), 50, resamples=100)
    for each, column in zip(both, values.T, strict=True):
        alone = scores.mean_interval(column, resamples=100)
        assert (each.value, each.low, each.high) == pytest.approx((alone.value, alone.low, alone.high))
    assert math.isnan(scores.bootstrap_intervals(lambda at: values[at].mean(axis=0), 1)[1].low)


def test_every_text_needs_as_many_predictions_as_labels():
    with pytest.raises(BadInputError, match="one for each"):
        scores.confusion_of_items([["a", "b"], ["a"]], [["a"], ["a", "b"]])


def test_statistics_of_items_are_the_scores_themselves():
    rng = np.random.default_rng(6)
    truth = rng.choice(["a", "b", "c"], 40).tolist()
    runs = [rng.choice(["a", "b", "c"], 40).tolist() for _ in range(2)]
    everything = np.arange(40)
    mean = np.mean([classification_scores(truth, run).macro_f1 for run in runs])
    assert scores.macro_f1_of_items(truth, runs)(everything) == pytest.approx(mean)
    tags = [[label, "a"] for label in truth]
    said = [[label, "b"] for label in runs[0]]
    at = np.array([3, 3, 7, 0])
    part = tagging_scores([tags[i] for i in at], [said[i] for i in at]).tokens.macro_f1
    assert scores.token_f1_of_items(tags, [said])(at) == pytest.approx(part)
    spans = [["B-X", "O"] if label == "a" else ["O", "B-Y"] for label in truth]
    guessed = [["B-X", "O"] if label == "a" else ["O", "B-Y"] for label in runs[1]]
    assert scores.entity_f1_of_items(spans, [guessed])(everything) == pytest.approx(entity_scores(spans, guessed).f1)
    assert bootstrap_interval(scores.macro_f1_of_items(truth, [truth]), 40, resamples=50).low == 1.0
