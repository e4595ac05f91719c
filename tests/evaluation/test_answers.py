"""Scores of answers beside the definitions of the official evaluation of SQuAD 2, and its threshold."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import BadInputError
from tacit.evaluation.predictions import prediction_section
from tacit.evaluation.scores import NEVER, answer_scores, best_threshold, plain_answer
from tacit.evaluation.scores.answers import scores_of_answer


@pytest.mark.parametrize(
    ("answer", "plain"),
    [
        ("The Cat's  hat!", "cats hat"),
        ("an  apple\ta day", "apple day"),
        ("theory of a the", "theory of"),
        ("U.S.-led", "usled"),
        ("\u2014 the\u00a0end", "\u2014 end"),
        ("The", ""),
    ],
)
def test_answers_are_compared_plain(answer, plain):
    assert plain_answer(answer) == plain


@pytest.mark.parametrize(
    ("golds", "predicted", "exact", "f1"),
    [
        (["the Norman Conquest"], "Norman conquest", 1.0, 1.0),
        (["10th and 11th centuries", "in the 10th and 11th centuries"], "in 10th and 11th centuries", 1.0, 1.0),
        (["Denmark, Iceland and Norway"], "Iceland", 0.0, 0.4),
        (["a b b c"], "b b", 0.0, 0.8),  # "a" is an article; words count as often as they stand there
        ([], "", 1.0, 1.0),
        ([], "Rollo", 0.0, 0.0),
        (["Rollo"], "", 0.0, 0.0),
        (["the"], "", 1.0, 1.0),  # a right answer that is nothing once it is plain does not count
        (["the", "Rollo"], "", 0.0, 0.0),
    ],
)
def test_known_scores(golds, predicted, exact, f1):
    assert scores_of_answer(json.dumps(golds), predicted) == (exact, pytest.approx(f1))


def test_totals_and_both_kinds_of_questions():
    truth = ['["x y", "x"]', "", "z", '[{"text": "u v", "start": 0}]']
    scores = answer_scores(truth, ["x", "", "", "u"])
    assert (scores.exact, scores.f1) == (0.5, pytest.approx((1 + 1 + 0 + 2 / 3) / 4))
    assert (scores.exact_with, scores.f1_with) == (pytest.approx(1 / 3), pytest.approx((1 + 2 / 3) / 3))
    assert (scores.exact_without, scores.with_answer, scores.questions) == (1.0, 3, 4)
    assert math.isnan(answer_scores(["x"], ["x"]).exact_without)
    section = prediction_section("answer", truth, ["x", "", "", "u"])
    numbers = {name: value for finding in section.findings for name, value in finding.numbers.items()}
    assert numbers["right without an answer"] == 1.0
    assert numbers["always no answer"] == 0.25
    assert list(numbers)[:2] == ["word F1", "exact match"]


def official(truth, answers, differences):
    """`find_best_thresh` of evaluate-v2.0.py, on raw scores (answers that are always given)."""
    scores = [scores_of_answer(cell, answer)[1] for cell, answer in zip(truth, answers, strict=True)]
    current = best = sum(cell == "" for cell in truth)
    threshold = NEVER
    for i in sorted(range(len(truth)), key=lambda i: differences[i]):
        if truth[i] != "":
            current += scores[i]
        else:
            current += -1 if answers[i] else 0
        if current > best + 1e-12:
            best, threshold = current, differences[i]
    return threshold, best / len(truth)


CASES = st.lists(
    st.tuples(st.sampled_from(["", "x", "x y"]), st.sampled_from(["x", "y", "z"]), st.integers(-999, 999)),
    min_size=1, max_size=12, unique_by=lambda case: case[2],
)  # fmt: skip


@given(CASES)
def test_the_threshold_is_that_of_the_official_script(cases):
    truth, answers, differences = ([case[i] for case in cases] for i in range(3))
    threshold = best_threshold(truth, answers, differences)
    expected, f1 = official(truth, answers, differences)
    assert threshold == expected
    given_answers = [a if d <= threshold else "" for a, d in zip(answers, differences, strict=True)]
    assert answer_scores(truth, given_answers).f1 == pytest.approx(f1)


def test_questions_that_cannot_be_told_apart_are_answered_all_or_none():
    assert best_threshold(["x", "", ""], ["x", "x", "x"], [1.0, 1.0, 1.0]) == NEVER
    assert best_threshold(["x", "x", ""], ["x", "x", "x"], [1.0, 1.0, 1.0]) == 1.0
    assert best_threshold(["x"], [""], [math.inf]) == NEVER
    with pytest.raises(BadInputError, match="no rows"):
        best_threshold([], [], [])
