"""Measured scores have 95 % intervals over test items, so that findings know what chance could have made."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.auditing import binomial
from tacit.evaluation.scores import Interval
from tacit.experiments import task_scores
from tacit.experiments.raw import write_json, write_lines
from tacit.experiments.steps import (
    downstream,
    graph,
    guessing,
    memorize,
    overlap,
    perturb,
    perturbed_task,
    rewrite,
    sanitized,
    statistics,
)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def ends(result: Mapping[str, float], name: str) -> tuple[float, float]:
    low, high = result[f"{name}.low"], result[f"{name}.high"]
    assert low <= result[name] <= high, name
    return low, high


def width(result: Mapping[str, float], name: str) -> float:
    low, high = ends(result, name)
    return high - low


def of_mean(values: Any) -> float:
    """The width of an interval that the normal distribution gives, for comparison."""
    return 2 * 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def test_the_f1_of_each_name():
    truth = ["bush" if place % 4 == 0 else "none" for place in range(400)]
    predicted = [label if place % 3 else "none" for place, label in enumerate(truth)]
    scores = perturbed_task.entity_scores(["bush", "iraq"], truth, predicted)
    assert scores["F1 of bush"] == pytest.approx(2 * 66 / (66 + 100))
    assert 0.05 < width(scores, "F1 of bush") < 0.25
    # Nobody is named iraq: macro-F1 is half of the other.
    assert width(scores, "macro-F1") == pytest.approx(width(scores, "F1 of bush") / 2)


def test_lengths_of_released_texts(tmp_path: Path):
    lengths = [5 + place % 7 for place in range(60)]
    write_json(tmp_path / "units.json", {"test": lengths})
    write_json(tmp_path / "parts.json", ["test"])
    write_lines(tmp_path / "test.jsonl", ({"texts": [" ".join(["word"] * length)]} for length in lengths))
    scores = rewrite.score(tmp_path)
    for name in ("words per text in test", "units per document"):
        assert scores[name] == pytest.approx(np.mean(lengths))
        assert width(scores, name) == pytest.approx(of_mean(lengths), rel=0.05)
    assert width(scores, "words in test") == pytest.approx(60 * width(scores, "words per text in test"))
    assert ends(scores, "different words in test") == (1, 1)  # every text has the same


def test_different_words_vary_as_much_as_other_texts_would_let_them(rng: np.random.Generator):
    def drawn() -> list[list[str]]:
        return [[str(word) for word in rng.zipf(1.6, 12)] for _ in range(80)]

    others = [rewrite.different_words(drawn()).value for _ in range(300)]
    widths = [each.high - each.low for each in (rewrite.different_words(drawn()) for _ in range(20))]
    assert 0.9 < float(np.mean(widths)) / (2 * 1.96 * float(np.std(others))) < 1.5


def test_guessed_words(tmp_path: Path):
    success = {"rate": 0.2, "low": 0.17, "high": 0.24, "floor": 0.05, "ceiling": 0.4, "cases": 600, "unchanged": 0.5}
    write_json(tmp_path / "success.json", success)
    scores = guessing.score(tmp_path)
    assert ends(scores, "defended where the attack works") == ends(scores, "defended") == (0.76, 0.83)
    assert scores["gained"] == pytest.approx(0.2)
    assert ends(scores, "gained where the attack works") == ends(scores, "gained")
    exact = binomial.interval(240, 600)
    assert scores["gained.low"] == pytest.approx(0.2 - math.hypot(0.04, 0.4 - exact[0]))
    assert scores["gained.high"] == pytest.approx(0.2 + math.hypot(0.03, exact[1] - 0.4))
    assert ends(scores, "unchanged words") == binomial.interval(300, 600)
    write_json(tmp_path / "success.json", {**success, "ceiling": 0.08})
    assert not any("where the attack works" in name for name in guessing.score(tmp_path))


def test_similarities_to_texts(tmp_path: Path, rng: np.random.Generator):
    own, other = rng.uniform(0, 1, 100).tolist(), rng.uniform(0, 0.5, 100).tolist()
    rows = [{"to the original": a, "to pre-training": b, "sentence": ""} for a, b in zip(own, other, strict=True)]
    write_lines(tmp_path / "nearest.jsonl", rows)
    write_json(tmp_path / "bleu.json", 20.0)
    scores = memorize.score(tmp_path)
    assert width(scores, "similarity to the original") == pytest.approx(of_mean(own), rel=0.05)
    assert width(scores, "similarity to pre-training") == pytest.approx(of_mean(other), rel=0.05)


def test_errors_beyond_chance_are_compared_on_the_same_nodes(tmp_path: Path, rng: np.random.Generator):
    full = (rng.uniform(size=500) < 0.2).astype(int).tolist()
    write_json(tmp_path / "wrong.json", {"setting": full, "full": full})
    scores = overlap.score(tmp_path)
    assert scores["beyond chance"] == pytest.approx(1 - np.mean(full))
    assert width(scores, "beyond chance") == pytest.approx(of_mean(full), rel=0.2)


def test_means_and_medians_over_words(tmp_path: Path, rng: np.random.Generator):
    stays = rng.uniform(0, 1, 200).tolist()
    write_lines(tmp_path / "words.jsonl", ({"word": "w", "N": n, "S": 1, "S*": 2, "effective": n, "bits": n} for n in
                                           stays))  # fmt: skip
    write_json(tmp_path / "about.json", {"exact": True, "runs": 10})
    scores = statistics.score(tmp_path)
    assert width(scores, "word stays") == pytest.approx(of_mean(stays), rel=0.05)
    assert scores["median of word stays"] == pytest.approx(np.median(stays))
    # The median of uniform numbers varies by sqrt(3) as much as their mean.
    assert width(scores, "median of word stays") == pytest.approx(math.sqrt(3) * of_mean(stays), rel=0.4)
    assert ends(scores, "outputs of a word") == ends(scores, "median of outputs of a word") == (1, 1)
    assert "exact.low" not in scores


def test_absolute_errors(rng: np.random.Generator):
    truth = rng.uniform(0, 5, 200).tolist()
    said = [value + 0.5 * place / 200 for place, value in enumerate(truth)]
    scores = downstream.scores_of("similarity", truth, truth, said)
    assert width(scores, "mean absolute error") == pytest.approx(of_mean(np.subtract(said, truth)), rel=0.05)


def test_answers():
    truth = ["rome", "", "the abba", "paris"] * 50
    scores = task_scores.answer_scores(truth, ["rome", "", "queen", ""] * 50)
    assert (scores["exact match"], scores["F1 where there is an answer"]) == (0.5, pytest.approx(1 / 3))
    assert width(scores, "exact match") == pytest.approx(of_mean([1, 1, 0, 0] * 50), rel=0.2)
    assert width(scores, "F1 where there is an answer") == pytest.approx(of_mean([1, 0, 0] * 50), rel=0.2)
    assert ends(scores, "collapsed") == (0, 0)
    silent = task_scores.answer_scores(truth, [""] * 200)
    assert (silent["collapsed"], *ends(silent, "collapsed")) == (1, 1, 1)
    assert math.isnan(task_scores.answer_scores(["", ""], ["", ""])["F1 where there is an answer"])


def test_classes_that_are_never_named():
    truth = [[label] for label in ["a"] * 50 + ["b"] * 49 + ["c"]]
    scores = task_scores.class_scores(
        truth, [["a"] if label == ["c"] else label for label in truth], {"a": 2, "b": 1, "c": 1}
    )
    # In about a third of other test sets the only row of class c is missing, and with it a class that is not named.
    assert (scores["never predicted"], *ends(scores, "never predicted")) == (
        pytest.approx(1 / 3),
        0,
        pytest.approx(1 / 3),
    )
    assert ends(scores, "collapsed") == (0, 0)
    constant = task_scores.class_scores(truth, [["a"]] * 100, {"a": 2, "b": 1, "c": 1})
    assert (constant["collapsed"], *ends(constant, "collapsed")) == (1, 1, 1)


def test_scores_of_many_classes_take_no_minutes(rng: np.random.Generator):
    labels = [[str(label)] for label in rng.integers(0, 77, 3000)]
    started = time.process_time()
    task_scores.class_scores(labels, labels[1:] + labels[:1], {str(label): 10 for label in range(77)})
    assert time.process_time() - started < 20


def test_accuracy_and_the_share_of_the_largest_class_are_compared_on_the_same_nodes():
    truth = ["a"] * 60 + ["b"] * 40
    always = graph.above_largest(truth, ["a"] * 100, {"a": 3, "b": 1})
    assert (always.value, always.low, always.high) == (0, 0, 0)
    scores = graph.above_largest(truth, truth, {"a": 3, "b": 1})
    assert scores.value == pytest.approx(0.4)
    assert scores.high - scores.low == pytest.approx(of_mean([0] * 60 + [1] * 40), rel=0.2)


def test_words_that_were_kept(tmp_path: Path):
    write_json(tmp_path / "parts.json", ["test"])
    write_json(tmp_path / "facts.json", {"words kept": 0.3, "sensitivity of the map": 1.0})
    np.save(tmp_path / "test.lengths.npy", np.array([10] * 100, dtype=np.int32))
    assert "words kept.low" not in perturb.score(tmp_path)  # copied words
    write_json(tmp_path / "card.json", {})
    scores = perturb.score(tmp_path)
    assert ends(scores, "words kept") == binomial.interval(30, 100)
    assert "sensitivity of the map.low" not in scores


def test_texts_of_different_lengths_count_for_fewer():
    lengths = np.array([1] * 90 + [90], dtype=np.int32)
    assert perturb.kept_interval(0.5, lengths).count == 3  # 180^2 / (90 + 90^2)


def test_losses_of_training(tmp_path: Path, rng: np.random.Generator):
    losses = rng.normal(2.0, 0.1, 100).tolist()
    write_json(tmp_path / "losses.json", losses)
    write_json(tmp_path / "about.json", {"words kept": 0.25, "lines": 80})
    write_json(tmp_path / "parameters.json", {"masking": "aware"})
    scores = sanitized.score(tmp_path)
    assert scores["loss at the end"] == pytest.approx(np.mean(losses[-10:]))
    assert width(scores, "loss at the end") == pytest.approx(of_mean(losses[-10:]), rel=0.2)
    ends(scores, "loss at the beginning")
    assert ends(scores, "words kept") == binomial.interval(20, 80)
    write_json(tmp_path / "about.json", {"words kept": 1.0, "lines": 80})
    write_json(tmp_path / "parameters.json", {"masking": "plain"})
    assert "words kept.low" not in sanitized.score(tmp_path)  # nothing was rewritten


def test_a_multiple_of_an_interval():
    turned = Interval(1.0, 0.5, 2.0, 10).times(-2)
    assert (turned.value, turned.low, turned.high, turned.count) == (-2.0, -4.0, -1.0, 10)


@pytest.mark.parametrize("entities", [[], ["bush", "iraq"]])
def test_a_change_is_measured_text_by_text(entities: list[str], rng: np.random.Generator, tmp_path: Path):
    """Where nothing changed there is no chance in the change, however wide the interval of the score itself is."""
    truth = rng.choice(["bush", "iraq", "none"], 200).tolist()
    before = [label if rng.random() < 0.7 else "none" for label in truth]
    about = {"train labels": truth, "entities": entities, "baseline": before}

    def scored(predicted: list[str]) -> dict[str, float]:
        write_json(tmp_path / "about.json", about)
        rows = zip(truth, predicted, strict=True)
        write_lines(tmp_path / "predictions.jsonl", ({"true": a, "predicted": b} for a, b in rows))
        return perturbed_task.score(tmp_path)

    same = scored(before)
    assert ends(same, "change") == (0.0, 0.0)
    low, high = ends(same, "macro-F1")
    assert high - low > 0.05
    worse = scored(["none"] * 200)
    assert ends(worse, "change")[1] < -0.3
    assert ends(worse, "privacy gain") == tuple(-end for end in reversed(ends(worse, "change")))
