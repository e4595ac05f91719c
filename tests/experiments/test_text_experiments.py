"""The shipped experiments on rewriting, and the kinds of steps they bring: conversion, perturb, pretrain, memorize."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import catalog
from tacit.card import Card
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError
from tacit.experiments.collecting import collect
from tacit.experiments.config import load, read
from tacit.experiments.conversion import calibrated, check_length, fixed_length, of_document
from tacit.experiments.declared import allowed, matches
from tacit.experiments.execution import folder_of
from tacit.experiments.findings import Comparison, ExperimentFinding, Judgment, Scores, load_findings
from tacit.experiments.plan import Plan, make_plan
from tacit.experiments.quantities import LARGEST, SMALLEST, ScoreTerm, quantity_of, score
from tacit.experiments.raw import read_json, read_lines
from tacit.experiments.runner import run_plan
from tacit.experiments.steps.perturb import Perturb, facts_of, read_vectors, read_words, spaces
from tacit.experiments.steps.perturbed_task import Pooled, VectorLstm, balanced, entity_scores, named
from tacit.experiments.validation import check_report, validate
from tacit.experiments.verdicts import not_testable
from tacit.guarantee import Adjacency, Unit
from tacit.text.tokens import split
from tests.experiments.small import ExperimentFile, plan_of, small, verdict_on, write_files

ROOT = Path(__file__).parent.parent.parent
FILES = ("embedding_perturbation", "memorization", "dp_bart", "all_systems")


# The files ----------------------------------------------------------------------------------------------------------


PLANNED = [(name, size) for name in FILES for size in ("quick", "medium", "full")]
PLANNED.remove(("embedding_perturbation", "medium"))  # as many cells as in its full size: five seconds for nothing new


@pytest.mark.parametrize(("name", "size"), PLANNED)
def test_a_shipped_file_has_cells_and_speaks_of_existing_steps_and_axes(name: str, size: str, data_folder: Path):
    file = ROOT / "experiments" / f"{name}.toml"
    experiment = load(file, size)
    plan = make_plan(experiment, size, [data_folder]).judged_by(load_findings(file))
    check_report(plan)
    assert experiment.experiment.name == name
    assert len(plan.steps) > 20


@pytest.mark.parametrize("name", FILES)
def test_every_check_of_a_shipped_file_finds_its_cells_in_the_quick_size(name: str, data_folder: Path):
    """A misspelled axis value would make a finding silently untestable."""
    file = ROOT / "experiments" / f"{name}.toml"
    plan = make_plan(load(file), "quick", [data_folder])
    for finding in load_findings(file):
        for looked_at in compared_scores(finding):
            there = [step.axes for step in plan.named(looked_at.step)]
            wanted = {
                axis: [value for value in allowed(values) if value not in (SMALLEST, LARGEST)]
                for axis, values in looked_at.where.items()
            }
            for axis, values in wanted.items():
                assert all(any(axes.get(axis) == value for axes in there) for value in values), (finding, axis, values)
            chosen = {axis: values for axis, values in wanted.items() if values}
            assert any(matches(axes, chosen) for axes in there), (finding, looked_at)


def compared_scores(finding: ExperimentFinding) -> list[ScoreTerm]:
    """The scores that a finding looks at."""
    seen: list[ScoreTerm] = []

    class Listening(Scores):
        frame = pd.DataFrame()

        def judged(self, comparison: Comparison) -> Judgment:
            seen.extend(comparison.scores)
            return not_testable("nothing was run.")

    finding.judge(Listening())
    return seen


def test_for_each_runs_over_the_values_in_brackets(tmp_path: Path):
    write_files(tmp_path)
    plan = plan_of(small(tmp_path), tmp_path)
    run_plan(plan, tmp_path / "cache", only={"kept"})
    results = collect(plan, tmp_path / "cache")
    verdict = verdict_on(
        lambda scores: scores.at_most(
            score("kept.words changed", mechanism=("none", "random")), 0.5, each=["mechanism"]
        ),
        results,
    )
    # Copied texts change in nothing, random ones in nearly everything: one of the two groups fails.
    assert verdict.word == "disagree"
    assert verdict.detail.startswith("1 of 2 groups")


def test_published_values_are_those_of_the_papers():
    """Some cells, typed from the papers by hand."""
    embedding = load(ROOT / "experiments" / "embedding_perturbation.toml").published
    rows = {(str(quantity_of(table.ours)), *row[:-1]): row[-1] for table in embedding for row in table.rows}
    assert rows["task.change[learner=lstm]", "laplace", "blogs", "none", 50] == -0.090
    assert rows["attacker.privacy gain[learner=lstm]", "laplace", "news", "jl", 50] == 0.691
    assert rows["task.change[learner=bert]", "truncated-gumbel", "news", "none", 100] == 0.017
    assert rows["attacker.privacy gain[learner=lstm]", "laplace+v2", "news", "jl", 50] == 0.933
    assert ("task.change[learner=lstm]", "laplace", "news", "none", 1) not in rows  # left out as random guessing
    bart = read(ROOT / "experiments" / "dp_bart.toml")["published"]
    printed = {(table["ours"], *row[:-1]): row[-1] for table in bart for row in table["rows"]}
    assert printed["task.macro-F1", "snips", "pr+", 250] == 0.60
    assert printed["task.macro-F1", "imdb", "clv", math.inf] == 0.72
    assert printed["kept.BLEU", "atis", "pr", 2500] == 2.13
    assert ("task.macro-F1", "snips", "pr+", math.inf) not in printed
    matrix = read(ROOT / "experiments" / "memorization.toml")["published"][0]["rows"]
    assert ["snips", "snips", 100, 0.91] in matrix
    assert ["atis", "snips", math.inf, 0.18] in matrix


# Equal guarantees ---------------------------------------------------------------------------------------------------


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    write_files(tmp_path)
    return str(tmp_path / "vectors.txt")


@given(st.text(max_size=200), st.integers(1, 30))
def test_every_text_gets_the_same_number_of_tokens(text: str, tokens: int):
    words = split(fixed_length(text, tokens))
    assert len(words) == tokens
    assert words[: len(split(text))] == split(text)[:tokens]


@pytest.mark.parametrize("name", ["santext", "tem", "laplace", "mahalanobis", "two-budgets"])
@pytest.mark.parametrize("epsilon", [3.0, 700.0])
def test_a_word_mechanism_reaches_the_document_epsilon_from_below(name: str, epsilon: float, vectors: str):
    mechanism = calibrated(name, {"vectors": vectors}, epsilon, tokens=7)
    promise = of_document(mechanism.guarantee(secure=True), 7)
    assert 0.999 * epsilon <= promise.exponent() <= epsilon
    assert promise.unit is Unit.DOCUMENT
    assert promise.adjacency is Adjacency.ANY_TWO
    assert not any(item.startswith("how many tokens") for item in promise.not_covered)


def test_the_converted_epsilon_is_the_sum_over_the_tokens(vectors: str):
    mechanism = calibrated("santext", {"vectors": vectors}, 50.0, tokens=5)
    unit = mechanism.guarantee(secure=True)
    assert unit.metric is not None
    assert unit.metric.diameter is not None
    by_hand = 5 * (unit.epsilon * unit.metric.diameter + unit.offset + unit.slack)
    assert of_document(unit, 5).exponent() == pytest.approx(by_hand)


def test_a_promise_without_a_proven_conversion_is_refused_with_the_reason(vectors: str):
    with pytest.raises(NoGuaranteeError, match="an unprotected output reveals its input"):
        calibrated("santext+", {"vectors": vectors}, 100.0, tokens=5)
    with pytest.raises(NoGuaranteeError, match="same public output sets"):
        calibrated("custext", {"vectors": vectors}, 100.0, tokens=5)
    with pytest.raises(NoGuaranteeError, match="only defined for epsilon above"):
        calibrated("truncated-gumbel", {"vectors": vectors}, 1.0, tokens=5)


def test_a_mechanism_that_does_not_read_every_token_is_refused(vectors: str):
    dropping = catalog.build("santext", {"vectors": vectors, "epsilon": 1.0, "punctuation": "drop"})
    with pytest.raises(BadParameterError, match="does not read 4 tokens"):
        check_length(dropping, [fixed_length("w1 w2", 4)], 4)


def equal_guarantees(tmp_path: Path) -> ExperimentFile:
    value = small(tmp_path)
    value["experiment"].pop("reference")
    options = {"vectors": str(tmp_path / "vectors.txt")}
    value["variants"]["mechanism"] = {
        name: {"options": options, "over": {"epsilon": [40]}} for name in ("santext", "laplace", "santext+", "custext")
    }
    value["steps"] = {
        "list": {"kind": "conversion", "document_tokens": 8, "over": {"mechanism": ["santext", "santext+", "custext"]}},
        "rewritten": {"kind": "rewrite", "data": "rows", "document_tokens": 8,
                      "over": {"mechanism": ["santext", "laplace"]}},
    }  # fmt: skip
    return value


def test_releases_at_equal_guarantees_and_the_list_of_those_without_one(tmp_path: Path):
    write_files(tmp_path)
    plan = plan_of(equal_guarantees(tmp_path), tmp_path, test_seed=None)
    validate(plan)
    assert not run_plan(plan, tmp_path / "cache").failed
    for step in plan.named("rewritten"):
        folder = folder_of(tmp_path / "cache", step)
        promise = Card.from_json((folder / "card.json").read_text()).guarantee
        assert promise.is_private
        assert promise.unit is Unit.DOCUMENT
        assert 0.999 * 40 <= promise.exponent() <= 40
        assert all(len(split(row["texts"][0])) == 8 for row in read_lines(folder / "test.jsonl"))
    folders = {s.axes["mechanism"]: folder_of(tmp_path / "cache", s) for s in plan.named("list")}
    assert read_json(folders["santext"] / "scores.json")["converted"] == 1
    for name in ("santext+", "custext"):
        assert read_json(folders[name] / "scores.json") == {"converted": 0.0}
        card = Card.from_json((folders[name] / "card.json").read_text())
        assert "no conversion to whole documents is proven" in str(card.guarantee.void)


def test_a_release_without_a_conversion_is_refused_before_anything_runs(tmp_path: Path):
    write_files(tmp_path)
    value = equal_guarantees(tmp_path)
    value["steps"]["rewritten"]["over"]["mechanism"] = ["laplace", "custext"]
    with pytest.raises(BadInputError, match="promises nothing between any two documents"):
        validate(plan_of(value, tmp_path))


# Perturbed vectors --------------------------------------------------------------------------------------------------


def perturbing(tmp_path: Path, **step: object) -> ExperimentFile:
    write_files(tmp_path)
    value = small(tmp_path)
    value["experiment"].pop("reference")
    value["variants"] = {}
    value["steps"] = {
        "plain": {"kind": "perturb", "data": "rows", "mechanism": "none", "vectors": str(tmp_path / "vectors.txt")},
        "noisy": {"kind": "perturb", "data": "rows", "vectors": str(tmp_path / "vectors.txt"), **step},
        "plain_task": {"kind": "perturbed_task", "vectors": "plain"},
        "task": {"kind": "perturbed_task", "vectors": "noisy", "baseline": "plain_task"},
    }
    return value


def finished(plan: Plan, tmp_path: Path) -> dict[str, Path]:
    assert run_plan(plan, tmp_path / "cache").failed == {}
    return {step.name: folder_of(tmp_path / "cache", step) for step in plan.steps}


def test_noisy_vectors_are_released_without_a_mapping(tmp_path: Path):
    plan = plan_of(perturbing(tmp_path, mechanism="laplace", epsilon=1e5), tmp_path)
    validate(plan)
    folders = finished(plan, tmp_path)
    noisy, exact = (np.concatenate(read_vectors(folders[name], "test")) for name in ("noisy", "plain"))
    assert noisy.shape == exact.shape
    # At so large an epsilon the noise (norm 3 / epsilon) is smaller than half precision.
    assert np.abs(noisy - exact).max() < 0.01
    with pytest.raises(BadInputError, match="give the perturb step a 'mapping'"):
        read_words(folders["noisy"], "test")
    scores = read_json(folders["task"] / "scores.json")
    assert scores["change"] == pytest.approx(
        scores["macro-F1"] - read_json(folders["plain_task"] / "scores.json")["macro-F1"]
    )
    assert scores["privacy gain"] == -scores["change"]


def test_a_mapping_releases_words_of_the_vocabulary(tmp_path: Path):
    plan = plan_of(perturbing(tmp_path, mechanism="laplace", epsilon=0.01, mapping="nearest"), tmp_path)
    folders = finished(plan, tmp_path)
    words = {word for text in read_words(folders["noisy"], "train") for word in text.split()}
    assert words <= {f"w{i}" for i in range(30)}
    # 128 tokens, each kept by chance with probability at most about 1/3: far from all of them are.
    assert read_json(folders["noisy"] / "scores.json")["words kept"] < 0.7


def test_the_promise_of_uncalibrated_noise_is_told_in_the_original_distance(tmp_path: Path):
    write_files(tmp_path)
    place = str(tmp_path / "vectors.txt")
    for name in ("none", "unit", "observed-range"):
        parameters = Perturb(mechanism="laplace", epsilon=2.0, bounding=name, vectors=place)
        promise = parameters.build().guarantee(secure=True)
        facts = facts_of(parameters, spaces(place, None, name))
        assert facts["epsilon in the original distance"] == pytest.approx(promise.epsilon)


def test_truncated_gumbel_outside_its_domain_fails_or_is_marked(tmp_path: Path):
    value = perturbing(tmp_path, mechanism="truncated-gumbel", epsilon=0.5)
    plan = plan_of(value, tmp_path)
    failed = run_plan(plan, tmp_path / "cache").failed
    assert any("only defined for epsilon above" in reason for reason in failed.values())
    value["steps"]["noisy"]["outside"] = "real-part"
    folders = finished(plan_of(value, tmp_path, test_seed=None), tmp_path)
    assert read_json(folders["noisy"] / "scores.json")["inside the domain"] == 0
    assert not Card.from_json((folders["noisy"] / "card.json").read_text()).guarantee.is_private


def test_truncated_gumbel_inside_its_domain_keeps_its_promise(tmp_path: Path):
    write_files(tmp_path)
    place = str(tmp_path / "vectors.txt")
    smallest = spaces(place, None, "none").smallest_gumbel_epsilon
    inside = Perturb(mechanism="truncated-gumbel", epsilon=1.01 * smallest, outside="real-part", vectors=place)
    outside = inside.model_copy(update={"epsilon": 0.99 * smallest})
    assert inside.build().guarantee(secure=True).is_private
    assert not outside.build().guarantee(secure=True).is_private


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"mechanism": "laplace"}, "needs an epsilon"),
        ({"mechanism": "none", "epsilon": 1.0}, "has no epsilon"),
        ({"mechanism": "truncated-gumbel", "epsilon": 1.0, "mapping": "nearest"}, "gives words by itself"),
        ({"mechanism": "mahalanobis", "epsilon": 1.0, "bounding": "unit"}, "leave out 'bounding'"),
        ({"mechanism": "mahalanobis", "epsilon": 1.0, "lam": 1.5}, "lam"),
        ({"mechanism": "laplace", "epsilon": 1.0, "bounding": "box"}, "unknown bounding map"),
    ],
)
def test_contradictions_of_a_perturb_step_are_one_sentence_before_anything_runs(
    step: dict[str, object], said: str, tmp_path: Path
):
    with pytest.raises(BadInputError, match=said) as error:
        validate(plan_of(perturbing(tmp_path, **step), tmp_path))
    assert "\n" not in str(error.value)


# Learners and attackers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [Pooled(), VectorLstm(epochs=2)])
def test_a_learner_of_vectors_finds_what_is_there(learner: Pooled | VectorLstm):
    rng = np.random.default_rng(0)
    labels = ["a", "b"] * 40
    texts = [rng.standard_normal((5, 4)).astype(np.float32) + (1.5 if label == "a" else -1.5) for label in labels]
    texts[0] = np.zeros((0, 4), dtype=np.float32)
    learner.fit(texts[:60], labels[:60], 1)
    guessed = learner.predict(texts[60:])
    assert np.mean([a == b for a, b in zip(guessed, labels[60:], strict=True)]) > 0.9


def test_macro_f1_over_names():
    truth = ["iraq", "none", "bush + iraq", "none"]
    assert entity_scores(["iraq", "bush"], truth, truth)["macro-F1"] == 1.0
    assert entity_scores(["iraq", "bush"], truth, ["none"] * 4)["macro-F1"] == 0.0
    # iraq: one of two found and one false (1/2); bush: found (1).
    assert entity_scores(["iraq", "bush"], truth, ["none", "iraq", "bush + iraq", "none"])["macro-F1"] == 0.75


def test_rare_names_are_repeated_in_training():
    labels = ["none"] * 9 + ["iraq"]
    rows = balanced(labels)
    assert sorted(set(rows)) == list(range(10))
    assert sum(labels[i] == "iraq" for i in rows) == 9
    assert balanced(["iraq", "bush"]) == [0, 1]


def test_names_are_found_as_whole_words():
    assert named("British troops in Iraq's south, not in Ambush", ["iraq", "bush", "british"]) == ["iraq", "british"]


# Pretraining and memorization -----------------------------------------------------------------------------------------


def four_pairs(tmp_path: Path) -> ExperimentFile:
    write_files(tmp_path)
    value = small(tmp_path)
    value["experiment"].pop("reference")
    value["variants"] = {}
    for name in ("one", "two"):
        value["data"][name] = value["data"]["rows"] | {"access": "public"}
    value["data"]["two"]["parts"] = {"train": {"file": "rows.csv", "rows": 8, "skip": 16}}
    value["steps"] = {
        "model": {"kind": "pretrain", "public": "made-up words", "over": {"corpus": ["one", "two"]}, "steps": 2,
                  "width": 8, "embedding": 4, "vocabulary": 300, "clip": 5.0, "bound": "l1", "held_out": 2,
                  "batch_size": 4, "keep": "last"},
        "rewritten": {"kind": "rewrite", "model": "model", "mechanism": "adept", "parts": ["train"],
                      "options": {"norm": "l1", "noise": "laplace", "beams": 1},
                      "over": {"data": ["one", "two"], "epsilon": [math.inf, 10]}},
        "repeated": {"kind": "memorize", "texts": "rewritten", "texts_at_most": 4},
    }  # fmt: skip
    return value


def test_four_pairs_of_pretraining_and_rewriting(tmp_path: Path):
    plan = plan_of(four_pairs(tmp_path), tmp_path, test_seed=None)
    validate(plan)
    assert run_plan(plan, tmp_path / "cache").failed == {}
    pairs = {(s.axes["corpus"], s.axes["data"], s.axes["epsilon"]): s for s in plan.named("repeated")}
    assert len(pairs) == 8
    for (corpus, data, _), step in pairs.items():
        assert step.inputs["corpus"].name == corpus
        assert step.inputs["data"].name == data
        scores = read_json(folder_of(tmp_path / "cache", step) / "scores.json")
        assert 0 <= scores["strayed"] <= scores["copies"] <= 1
    for step in plan.named("rewritten"):
        card = Card.from_json((folder_of(tmp_path / "cache", step) / "card.json").read_text()).guarantee
        assert card.is_private == (step.axes["epsilon"] == 10)
        assert "made-up words" in str(card.provenance)


def test_private_data_pretrains_no_model(tmp_path: Path):
    value = four_pairs(tmp_path)
    value["data"]["one"]["access"] = "private"
    with pytest.raises(BadInputError, match="a pretrain step learns from public data only"):
        plan_of(value, tmp_path)


def test_only_a_mechanism_with_noise_runs_without_it(tmp_path: Path):
    write_files(tmp_path)
    value = small(tmp_path)
    value["variants"]["mechanism"]["santext"]["over"]["epsilon"] = [math.inf]
    with pytest.raises(BadInputError, match="'santext' cannot run without noise"):
        validate(plan_of(value, tmp_path))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"how": "noise"}, "'epsilons' to train for go together"),
        ({"epsilons": [10.0]}, "'epsilons' to train for go together"),
        ({"how": "noise", "epsilon": 1.0, "epsilons": [10.0]}, "the same twice"),
    ],
)
def test_contradictions_of_a_pretrain_step(change: dict[str, object], said: str, tmp_path: Path):
    value = four_pairs(tmp_path)
    value["steps"]["model"] |= change
    with pytest.raises(BadInputError, match=said):
        validate(plan_of(value, tmp_path))
