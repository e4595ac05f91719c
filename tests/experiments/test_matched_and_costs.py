"""Perturbation at the epsilon where it keeps as much as another, the cost of a step, and stages of a pruning."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tacit.card import Card
from tacit.errors import BadInputError
from tacit.experiments import task_scores
from tacit.experiments.config import DataSet, Part
from tacit.experiments.inputs import check_apart
from tacit.experiments.quantities import score
from tacit.experiments.raw import read_json
from tacit.experiments.steps import cost, matched
from tacit.experiments.steps.data import taken_rows
from tacit.experiments.steps.matched import Matched, bisected
from tacit.experiments.validation import validate
from tacit.guarantee import Notion
from tests.documents.test_latent_models import PUBLIC_TEXTS, save_tiny
from tests.experiments.small import ExperimentFile, plan_of, small, write_files
from tests.experiments.test_training_experiments import done, nothing


def parts(folder: Path, **texts: list[str]) -> Path:
    """A folder of a `data` step whose rows have a label and a column `writer`."""
    folder.mkdir()
    for part, rows in texts.items():
        lines = [
            {"texts": [text], "label": text[:2], "columns": {"writer": "ab"[i % 2]}} for i, text in enumerate(rows)
        ]
        (folder / f"{part}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    (folder / "parts.json").write_text(json.dumps(list(texts)))
    about = {"task": "classification", "label": "label", "text": ["text"], "access": "public"}
    (folder / "about.json").write_text(json.dumps(about))
    return folder


# Equal privacy ----------------------------------------------------------------------------------------------------


@given(some.floats(-2, 6), some.floats(0.05, 0.95))
def test_the_search_ends_where_the_wanted_share_is_kept(middle: float, share: float):
    """Of a share that grows with epsilon as a logistic curve, the epsilon is known."""
    search = Matched(mechanism="laplace", secret="writer", share=share, low=1e-3, high=1e6, rounds=30)
    epsilon = bisected(lambda epsilon: 1 / (1 + math.exp(middle - math.log(epsilon))), search, nothing)
    right = middle + math.log(share / (1 - share))
    assert math.log(epsilon) == pytest.approx(min(max(right, math.log(1e-3)), math.log(1e6)), abs=1e-4)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("words")
    write_files(folder)
    rng = np.random.default_rng(3)
    texts = [" ".join([*[word] * 6, f"w{rng.integers(30)}"]) for word in ("w1", "w9") * 15]
    data = parts(folder / "data", train=texts[:16], valid=texts[16:22], test=texts[22:])
    return data, str(folder / "vectors.txt")


@pytest.mark.parametrize("mapping", ["none", "nearest"])
def test_a_matched_cell_scores_task_and_attacker_on_test_rows(words: tuple[Path, str], mapping: str, tmp_path: Path):
    data, vectors = words
    parameters = {"mechanism": "univariate-laplace", "mapping": mapping, "vectors": vectors, "secret": "writer",
                  "hold": "task", "rounds": 2, "low": 1.0, "high": 1e6, "test_seed": 1}  # fmt: skip
    folders = [done("matched", parameters, {"data": data}, tmp_path / name) for name in ("a", "b")]
    first, second = (read_json(folder / "matched.json") for folder in folders)
    assert first == second, "a public seed repeats the noise"
    scores = matched.score(folders[0])
    assert 1.0 <= scores["epsilon"] <= 1e6
    assert set(scores) >= {"task kept", "task kept.low", "attacker macro-F1", "attacker kept.high", "reached"}
    assert ("words kept" in scores) == (mapping == "nearest")
    with pytest.raises(BadInputError, match="'low' below 'high'"):
        matched.check(Matched(mechanism="laplace", secret="writer", low=2.0, high=1.0))


def test_univariate_noise_promises_one_token_whatever_the_words_are(words: tuple[Path, str], tmp_path: Path):
    data, vectors = words
    parameters = {"mechanism": "univariate-laplace", "epsilon": 4.0, "vectors": vectors, "mapping": "nearest"}
    folder = done("perturb", parameters, {"data": data}, tmp_path / "perturbed")
    promise = Card.of_file(folder / "card.json").guarantee
    assert (promise.notion, promise.epsilon, promise.metric) == (Notion.PURE, 4.0, None)
    facts = read_json(folder / "facts.json")
    assert "epsilon in the original distance" not in facts
    assert facts["l1 sensitivity"] > 0


# Costs ------------------------------------------------------------------------------------------------------------


def test_a_ratio_of_times_has_the_errors_of_both():
    ratio = cost.ratio_of_means([4.0, 4.0, 4.0], [2.0, 2.0, 2.0])
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((2.0, 2.0, 2.0))
    rng = np.random.default_rng(0)
    intervals = [cost.ratio_of_means(rng.normal(4, 0.4, 5), rng.normal(2, 0.2, 5)) for _ in range(300)]
    # At least 95 % wanted; 300 draws of a covering of .95 fall below .90 once in 3,000 times.
    assert np.mean([interval.low <= 2.0 <= interval.high for interval in intervals]) > 0.9


def test_steps_are_timed_with_and_without_privacy(tmp_path: Path):
    pytest.importorskip("dp_accounting")
    texts = [f"{word} text number {i}" for i, word in enumerate(["aa", "bb"] * 12)]
    parameters = {"model": "bilstm-1x4", "strategy": "full", "batch": 24, "steps": 2, "length": 8}
    folder = done("cost", parameters, {"data": parts(tmp_path / "data", train=texts)}, tmp_path / "cost")
    seconds = read_json(folder / "seconds.json")
    assert {name: len(times) for name, times in seconds.items()} == {"private": 2, "plain": 2}
    assert cost.score(folder)["ratio"] == pytest.approx(np.mean(seconds["private"]) / np.mean(seconds["plain"]))
    assert not list(folder.rglob("*.safetensors")), "the models are for nothing else"


# Stages of a pruning ----------------------------------------------------------------------------------------------


def test_texts_are_rewritten_with_a_stage_of_a_pruning(tmp_path: Path):
    data = parts(tmp_path / "data", train=PUBLIC_TEXTS)
    start = save_tiny("bart", tmp_path / "bart")
    parameters = {"how": "prune", "start_from": start, "public": "made up", "stages": 3, "keep_stages": True,
                  "steps": 1, "clip": 1.0, "batch_size": 4, "held_out": 4}  # fmt: skip
    model = done("pretrain", parameters, {"corpus": data}, tmp_path / "pruned")
    widths = []
    for stage in (None, 1, 2, 3):
        released = {"mechanism": "dp-bart", "epsilon": 100, "options": {"beams": 1}, "stage": stage}
        folder = done("rewrite", released, {"data": data, "model": model}, tmp_path / f"released-{stage}")
        widths.append(Card.of_file(folder / "card.json").guarantee.parameters["released numbers"])
    assert widths == [9 * 6, 12 * 6, 9 * 6, 7 * 6]


def test_a_bart_is_trained_on_with_a_clipped_norm(tmp_path: Path):
    data = parts(tmp_path / "data", train=PUBLIC_TEXTS)
    start = save_tiny("bart", tmp_path / "bart")
    parameters = {"how": "further", "start_from": start, "public": "made up", "clip": 2.0, "bound": "l2", "steps": 1,
                  "length": 6, "batch_size": 4, "held_out": 4}  # fmt: skip
    model = done("pretrain", parameters, {"corpus": data}, tmp_path / "normed")
    released = {"mechanism": "dp-bart", "epsilon": 100, "options": {"beams": 1}}
    folder = done("rewrite", released, {"data": data, "model": model}, tmp_path / "released")
    assert Card.of_file(folder / "card.json").guarantee.parameters["l2 sensitivity"] == pytest.approx(4.0)


def test_stages_that_nobody_keeps_are_refused(tmp_path: Path):
    def changed(**pruned: object) -> ExperimentFile:
        write_files(tmp_path)
        value = small(tmp_path)
        value["data"]["rows"]["access"] = "public"
        value["variants"] = {}
        value["experiment"].pop("reference")
        value["steps"] = {
            "pruned": {"kind": "pretrain", "corpus": "rows", "public": "made up", "how": "prune", **pruned},
            "rewritten": {"kind": "rewrite", "data": "rows", "model": "pruned", "mechanism": "dp-bart", "epsilon": 10,
                          "stage": 2},
        }  # fmt: skip
        return value

    validate(plan_of(changed(keep_stages=True), tmp_path))
    for wrong in ({}, {"keep_stages": True, "stages": 2, "importance": "bottleneck"}):
        with pytest.raises(BadInputError, match="stages"):
            validate(plan_of(changed(**wrong), tmp_path))


# Rows, quantities, answers ----------------------------------------------------------------------------------------


def test_rows_have_one_of_several_values(tmp_path: Path):
    write_files(tmp_path)
    data = DataSet(text="text", label="label", keep=["writer"])
    part = Part(file=str(tmp_path / "rows.csv"), where={"writer": ["a1", "a2"], "label": "odd"})
    rows = taken_rows(data, part, "train")
    assert len(rows) == 6
    assert {row["columns"]["writer"] for row in rows} == {"a1"}  # a2 writes even rows only
    wide = part.model_copy(update={"where": {"writer": ["a1", "a2", "a3"]}})
    both = DataSet(text="text", parts={"train": wide, "test": part})
    with pytest.raises(BadInputError, match="in common"):
        check_apart(both, "train", "test")
    apart = wide.model_copy(update={"where": {"writer": ["a0"]}})
    check_apart(DataSet(text="text", parts={"train": apart, "test": part}), "train", "test")


def test_a_quantity_is_multiplied_with_all_its_parts():
    quantity = (score("a.b", mechanism="c") - 2) * 0.5
    assert (quantity.scores[0].times, quantity.added) == (0.5, -1.0)
    assert str(quantity) == "0.5 a.b[mechanism=c] - 1"


def test_any_of_several_right_answers_counts():
    truth = ['[{"text": "France", "start": 0}, {"text": "in France", "start": 3}]', "[]", "Paris"]
    scores = task_scores.answer_scores(truth, ["in France", "", "London"])
    assert (scores["exact match"], scores["word F1"], scores["score.floor"]) == pytest.approx((2 / 3, 2 / 3, 1 / 3))
    assert scores["F1 where there is an answer"] == pytest.approx(0.5)
    assert scores["unanswered"] == pytest.approx(1 / 3)
