"""Steps that were added for statements which nothing could test: memory, neighbors, times, lengths, authors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from tacit.errors import BadInputError
from tacit.experiments.findings import all_of
from tacit.experiments.raw import read_json, read_lines, write_lines
from tacit.experiments.steps import digits, federated, perturb, sensitivity, shape, stays, word_cost
from tacit.experiments.steps.digits import Digits, Network
from tacit.experiments.steps.perturb import Perturb
from tacit.experiments.tensor_memory import most_megabytes
from tacit.experiments.verdicts import Judgment, Word, not_testable
from tests.experiments.small import write_files
from tests.experiments.test_matched_and_costs import parts
from tests.experiments.test_training_experiments import done


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("vectors")
    write_files(folder)
    return str(folder / "vectors.txt")


# Memory -----------------------------------------------------------------------------------------------------------


def test_memory_is_that_of_the_tensors_that_live_at_the_same_time():
    def one_after_another(_: Callable[[], None]) -> None:
        for _ in range(5):
            torch.zeros(250_000)

    def after_preparations(start_anew: Callable[[], None]) -> None:
        kept = torch.zeros(250_000)
        torch.zeros(2_500_000)
        start_anew()
        del kept
        torch.zeros(500_000)

    def kept_for_the_gradient(_: Callable[[], None]) -> None:
        value = torch.ones(250_000, requires_grad=True)
        for _ in range(8):
            value = value.exp()  # its result is what the gradient needs

    assert most_megabytes(one_after_another) == pytest.approx(1.0)
    assert most_megabytes(after_preparations) == pytest.approx(2.0)
    assert most_megabytes(kept_for_the_gradient) == pytest.approx(9.0)


# Statements of several parts --------------------------------------------------------------------------------------


def test_a_statement_of_several_parts_holds_if_all_of_them_do():
    agree, disagree = (Judgment(word=word, detail=word.value) for word in (Word.AGREE, Word.DISAGREE))
    toward, away = (Judgment(word=Word.UNDECIDED, detail="", leaning=leaning) for leaning in (True, False))
    assert all_of(agree, agree).word is Word.AGREE
    assert all_of(agree, toward, disagree).word is Word.DISAGREE
    assert (all_of(agree, toward).word, all_of(agree, toward).leaning) == (Word.UNDECIDED, True)
    assert all_of(toward, away).leaning is False
    assert all_of(agree, disagree, not_testable("no such cell")).detail == "no such cell"


# Neighbors --------------------------------------------------------------------------------------------------------


def test_neighbors_change_the_key_of_a_cell_only_where_they_are_used():
    plain = Perturb(mechanism="laplace", epsilon=1, mapping="first-or-second")
    assert not perturb.content(plain).keys() & {"t", "neighbors"}
    assert perturb.content(plain.model_copy(update={"t": 0.5}))["t"] == 0.5
    with pytest.raises(BadInputError, match="first-or-second"):
        perturb.check(Perturb(mechanism="laplace", epsilon=1, mapping="nearest", t=0.5))


def test_with_t_of_one_the_second_neighbor_is_always_taken(vectors: str, tmp_path: Path):
    data = parts(tmp_path / "data", train=["w1 w2 w3 w4"] * 4)
    kept = {}
    for t in (0.0, 1.0):
        parameters = {"mechanism": "laplace", "epsilon": 1e6, "mapping": "first-or-second", "t": t,
                      "vectors": vectors, "test_seed": 1}  # fmt: skip
        kept[t] = perturb.score(done("perturb", parameters, {"data": data}, tmp_path / f"{t:g}"))["words kept"]
    assert kept == {0.0: 1.0, 1.0: 0.0}


def test_words_come_back_when_there_is_hardly_any_noise(vectors: str, tmp_path: Path):
    parameters = {"mechanism": "laplace", "epsilon": 1e6, "options": {"vectors": vectors}, "words": 20, "runs": 5}
    folder = done("stays", parameters, {}, tmp_path / "stays")
    assert stays.score(folder)["stays"] == 1.0
    rows = list(read_lines(folder / "words.jsonl"))
    assert all(0 <= row["rank"] < 1 and row["distance"] > 0 for row in rows)
    with pytest.raises(BadInputError, match="no noise to word vectors"):
        stays.check(stays.Stays(mechanism="santext", epsilon=1, options={"vectors": vectors}))


def test_words_that_are_rare_and_alone_are_told_from_others(tmp_path: Path):
    rows = [(0.9, 0.9, 5.0), (0.1, 0.9, 1.0), (0.2, 0.1, 5.0), (0.3, 0.1, 1.0)]
    names = ("stays", "rank", "distance")
    write_lines(tmp_path / "words.jsonl", (dict(zip(names, row, strict=True)) for row in rows))
    scores = stays.score(tmp_path)
    assert scores["stays, alone"] == 0.9
    assert scores["stays, others"] == pytest.approx(0.2)


def test_a_word_mechanism_is_timed(vectors: str, tmp_path: Path):
    data = parts(tmp_path / "data", train=["w1 w2 w3"] * 3)
    common = {"options": {"vectors": vectors}, "epsilon": 1, "rounds": 2}
    scores = {}
    for mechanism in ("laplace", "santext"):
        folder = done("word_cost", {"mechanism": mechanism, **common}, {"data": data}, tmp_path / mechanism)
        assert all(len(seconds) == 2 for seconds in read_json(folder / "seconds.json").values())
        scores[mechanism] = word_cost.score(folder)
    assert {"seconds", "noise seconds", "mapping seconds", "map seconds"} <= scores["laplace"].keys()
    assert "noise seconds" not in scores["santext"]


# Lengths and latents ----------------------------------------------------------------------------------------------


def test_a_text_is_found_by_its_length(tmp_path: Path):
    rows = [(30, 30), (30, 30), (50, 51), (70, 58)]
    write_lines(tmp_path / "lengths.jsonl", ({"original": a, "released": b} for a, b in rows))
    scores = shape.score(tmp_path)
    assert scores["about as long"] == 0.75
    assert scores["linked by length"] == pytest.approx((0.5 + 0.5 + 1 + 0) / 4)
    assert scores["linked by length.floor"] == 0.25


def test_latents_are_farther_apart_than_the_published_adept_assumes(tmp_path: Path):
    assert sensitivity.farthest_l1(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])).tolist() == [2.0, 2.0, 2.0]
    data = parts(tmp_path / "data", test=["play some jazz", "book a table for two", "what is the weather", "add it"])
    folder = done("sensitivity", {"model": "adept-20"}, {"data": data}, tmp_path / "measured")
    scores = sensitivity.score(folder)
    assert scores["true over assumed"] == pytest.approx(math.sqrt(read_json(folder / "distances.json")["numbers"]))
    assert 0 < scores["reached"] <= scores["true over assumed"]


# Authors ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authors(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Forty authors, of which every other one writes about other words; and public texts with all of these words."""
    folder = tmp_path_factory.mktemp("authors")
    data = parts(folder / "data", train=["unused"])
    rng = np.random.default_rng(1)
    lines = []
    for author in range(40):
        words = ("music", "film", "song") if author % 2 else ("money", "bank", "market")
        for _ in range(4):
            text = " ".join(rng.choice(words, 6))
            lines.append({"texts": [text], "label": "ab"[author % 2], "columns": {"author": f"a{author}"}})
    (data / "train.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    public = parts(folder / "public", train=[str(line["texts"][0]) for line in lines])  # type: ignore[index]
    return data, public


@pytest.mark.parametrize("method", ["none", "sampled", "ordered"])
def test_a_model_of_authors_learns_what_they_write_about(method: str, authors: tuple[Path, Path], tmp_path: Path):
    pytest.importorskip("dp_accounting")
    data, public = authors
    parameters = {
        "method": method,
        "epsilon": math.inf if method == "none" else 200,
        "cohort": 8,
        "passes": 60,
        "test_seed": 1,
    }
    folder = done("federated", parameters, {"data": data, "public": public}, tmp_path / "trained")
    scores = federated.score(folder)
    assert scores["accuracy"] > 0.9
    assert len(read_json(folder / "right.json")["right"]) == 8 * 4


def test_a_model_without_privacy_has_no_epsilon():
    for wrong in ({"method": "none", "epsilon": 1}, {"method": "sampled"}):
        with pytest.raises(BadInputError, match="no epsilon"):
            federated.check(federated.Federated.model_validate(wrong))


# Pictures ---------------------------------------------------------------------------------------------------------


def test_the_sum_of_cut_gradients_is_that_of_one_example_at_a_time():
    parameters = Digits(share=1.0, noise_multiplier=0, hidden=8, dropout=0.0, bound=0.5)
    network = Network(5, parameters)
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(6, 5)).astype(np.float32), rng.integers(0, 10, 6)
    weights = [torch.tensor(values, requires_grad=True) for values in (*network.weights, *network.biases)]
    total = [torch.zeros_like(values) for values in weights]
    for row, label in zip(torch.tensor(x), torch.tensor(y), strict=True):
        hidden = torch.relu(row @ weights[0] + weights[2])
        loss = torch.nn.functional.cross_entropy(hidden @ weights[1] + weights[3], label)
        gradients = torch.autograd.grad(loss, weights)
        length = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
        for place, gradient in zip(total, gradients, strict=True):
            place += gradient * min(1.0, 0.5 / length)
    for summed, expected in zip(network.sum_of_cut_gradients(x, y), total, strict=True):
        np.testing.assert_allclose(summed, expected.numpy(), rtol=1e-4, atol=1e-6)


def test_digits_are_learned_without_noise_and_not_with_a_lot_of_it(tmp_path: Path):
    common: dict[str, object] = {"share": 0.1, "epochs": 20, "hidden": 32, "learning_rate": 0.5}
    scores = [
        digits.score(done("digits", {**common, "noise_multiplier": noise}, {}, tmp_path / f"{noise}"))["F1"]
        for noise in (0, 1000)
    ]
    assert scores[0] > 0.7
    assert scores[1] < 0.4
