"""Scores of predictions, against values worked out by hand."""

from __future__ import annotations

import math

import pytest

from tacit.errors import BadInputError, BadParameterError
from tacit.evaluation.predictions import main_score, prediction_section


def numbers(section):
    return {name: value for finding in section.findings for name, value in finding.numbers.items()}


def test_classes():
    section = prediction_section("classify", ["a", "a", "b", "b"], ["a", "a", "b", "a"], known=["a", "b"])
    assert numbers(section)["accuracy"] == 0.75
    assert main_score(section) == pytest.approx((0.8 + 2 / 3) / 2)


def test_labels_unseen_in_training_are_counted_wrong_and_named():
    section = prediction_section("classify", ["a", "b", "c"], ["a", "b", "a"], known=["a", "b"])
    said = {finding.name: finding.sentence for finding in section.findings}
    assert "1 labels of the test rows were not in training" in said["Labels unseen in training"]
    assert numbers(section)["accuracy"] == pytest.approx(2 / 3)


def test_one_answer_for_everything_is_flagged():
    section = prediction_section("classify", ["a"] * 9 + ["b"] * 3, ["a"] * 12)
    assert any("Majority voting" in finding.name for finding in section.findings)


def test_tags_over_words_and_over_entities():
    parts = prediction_section("tag", ["NOUN VERB", "NOUN"], ["NOUN NOUN", "NOUN"])
    assert main_score(parts) == pytest.approx((0.8 + 0.0) / 2)
    names = prediction_section("tag", ["B-PER I-PER O"], ["B-PER O O"])
    assert main_score(names) == 0.0
    assert numbers(names)["accuracy"] == pytest.approx(2 / 3)
    with pytest.raises(BadInputError, match="row 2"):
        prediction_section("tag", ["A B", "A"], ["A B", "A A"])


def test_numbers():
    section = prediction_section("regress", ["1", "2", "3"], ["2", "3", "4"])
    assert main_score(section) == pytest.approx(1.0)
    assert numbers(section)["mean absolute error"] == pytest.approx(1.0)
    with pytest.raises(BadInputError, match="not a number"):
        prediction_section("regress", ["x"], ["1"])


def test_answers_as_in_squad():
    section = prediction_section("answer", ["the Cat!", "", "big dog"], ["cat", "", "dog"])
    assert numbers(section)["exact match"] == pytest.approx(2 / 3)
    assert main_score(section) == pytest.approx((1 + 1 + 2 / 3) / 3)


def test_translations_and_language_models():
    assert main_score(prediction_section("translate", ["a b c d e"], ["a b c d e"])) == pytest.approx(100.0)
    assert main_score(prediction_section("write", [""] * 2, ["10", "1000"])) == pytest.approx(100.0)
    assert main_score(prediction_section("fill", [""] * 2, ["0.5", "0.25"])) == pytest.approx(0.375)
    assert math.isfinite(main_score(prediction_section("write", [""], ["0"])))


def test_what_does_not_fit_is_refused():
    with pytest.raises(BadParameterError, match="no measure"):
        prediction_section("sing", ["a"], ["a"])
    with pytest.raises(BadInputError, match="2 true values and 1"):
        prediction_section("classify", ["a", "b"], ["a"])
