"""The experiments on training: their files, their kinds of steps, and noise that survives being stopped."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

pytest.importorskip("torch")
pytest.importorskip("transformers")
import torch

from tacit.card import Card
from tacit.errors import BadInputError, TacitError
from tacit.evaluation import scores
from tacit.experiments import task_rows, task_scores
from tacit.experiments.collecting import collect
from tacit.experiments.config import load, of_dict, read
from tacit.experiments.execution import StepTask, execute, folder_of
from tacit.experiments.findings import load_findings
from tacit.experiments.plan import Plan, make_plan
from tacit.experiments.raw import Rows, read_json, read_lines, write_json, write_lines
from tacit.experiments.steps import KEY_FILE, RUN_FOLDER, graph, kinds, sanitized, train
from tacit.experiments.training import training_folder
from tacit.experiments.validation import check_report
from tacit.jobs.training.graphs import read_nodes_and_links
from tacit.training.checkpoint import KEY, STATE
from tacit.training.private_folder import private_folder
from tacit.training.tasks import Answering
from tests.conftest import ROOT

FILES = ("tasks", "graphs", "sanitized")


def nothing(_done: int, _total: int) -> None:
    return


def done(kind: str, parameters: dict[str, object], inputs: dict[str, Path], folder: Path) -> Path:
    execute(StepTask(kind, kinds()[kind].parameters.model_validate(parameters).model_dump(), inputs, folder), nothing)
    return folder


# Files ------------------------------------------------------------------------------------------------------------


def planned(name: str, size: str, data_folder: Path, spare: Path) -> Plan:
    """The plan of a shipped file; data that has to be fetched for the full size is stood in for by one row."""
    experiment = load(ROOT / "experiments" / f"{name}.toml", size)
    for data in experiment.data.values():
        row = dict.fromkeys([*data.text_columns, str(data.label)], "a")
        for file in [*(part.file for part in data.parts.values()), *data.files.values()]:
            if not (data_folder / file).is_file():
                (spare / file).parent.mkdir(parents=True, exist_ok=True)
                (spare / file).write_text(json.dumps(row) + "\n", encoding="utf-8")
    findings = load_findings(ROOT / "experiments" / f"{name}.toml")
    return make_plan(experiment, size, [data_folder, spare]).judged_by(findings)


@pytest.mark.parametrize("size", ["quick", "medium", "full"])
@pytest.mark.parametrize("name", FILES)
def test_shipped_files_are_valid_in_all_sizes(name: str, size: str, data_folder: Path, tmp_path: Path):
    plan = planned(name, size, data_folder, tmp_path)
    check_report(plan)
    if size != "full":
        assert not any(tmp_path.iterdir()), f"the {size} size needs data that is not at hand"


@pytest.mark.parametrize("name", ["dp_bart_ablations", "tasks_more", "tasks_costs", "embedding_matched"])
def test_each_published_cell_of_the_added_experiments_is_a_cell_of_the_medium_size(
    name: str, data_folder: Path, tmp_path: Path
):
    check_report(planned(name, "quick", data_folder, tmp_path))
    plan = planned(name, "medium", data_folder, tmp_path)
    check_report(plan)
    assert not any(tmp_path.iterdir())
    for table in plan.experiment.published:
        for *values, _ in table.rows:
            place = dict(zip(table.axes, values, strict=True))
            assert any(place.items() <= step.axes.items() for step in plan.steps), place


def test_the_quick_sizes_cover_the_grids_of_the_thesis(data_folder: Path, tmp_path: Path):
    tasks = planned("tasks", "quick", data_folder, tmp_path)
    cells = [step.axes for step in tasks.named("trained")]
    for data in ("sentiment", "inference", "inference-rte", "entities", "parts-of-speech", "questions"):
        assert {c["epsilon"] for c in cells if c["data"] == data and c["strategy"] == "head"} == {1, 2, 5, math.inf}
    graphs = planned("graphs", "quick", data_folder, tmp_path)
    split = {(s.axes["reading"], s.axes["sampling"]) for s in graphs.named("split") if s.axes["data"] == "social"}
    assert split == {(r, s) for r in ("subgraph", "node") for s in ("poisson", "visits")}


def test_pretraining_on_private_text_is_refused(data_folder: Path):
    experiment = read(ROOT / "experiments" / "sanitized.toml")
    del experiment["data"]["wiki"]["access"]
    with pytest.raises(BadInputError, match=r"'steps\.first\.data' uses the data set 'wiki', which is private"):
        make_plan(of_dict(experiment, "quick"), "quick", [data_folder])


# Accounting -------------------------------------------------------------------------------------------------------

GOLDEN = [  # noise, epochs, records, lot, epsilon: Igamberdiev 2023, tables 3.2 and 3.5, with more digits
    (4, 2000, 1, 1, 136.51), (26, 2000, 1, 1, 9.75), (48, 2000, 1, 1, 4.91), (112, 2000, 1, 1, 2.00),
    (2, 500, 1, 1, 136.51), (56, 500, 1, 1, 2.00),
    (4, 100, 60000, 600, 1.2586), (4, 100, 60000, 6000, 4.2445), (4, 100, 60000, 60000, 15.131),
    (50, 100, 60000, 60000, 0.9797), (100, 100, 60000, 60000, 0.485),
]  # fmt: skip


@pytest.mark.parametrize(("noise", "epochs", "records", "lot", "epsilon"), GOLDEN)
def test_published_budgets_come_out(noise: int, epochs: int, records: int, lot: int, epsilon: float, tmp_path: Path):
    numbers = {"noise_multiplier": noise, "epochs": epochs, "records": records, "lot": lot}
    measured = kinds()["accounting"].score(done("accounting", numbers, {}, tmp_path / "a"))
    assert measured["epsilon"] == pytest.approx(epsilon, abs=0.005)
    assert measured["tight"] <= measured["epsilon"]
    assert measured["tight, replaced"] > measured["tight"]
    assert measured["visits"] >= measured["epsilon"] - 1e-9  # equal where a lot is everything


def test_the_verdicts_on_accounting_are_those_that_are_explained(data_folder: Path, tmp_path: Path):
    plan = planned("graphs", "quick", data_folder, tmp_path)
    for name in ("budgets", "splits", "mnist"):
        for step in plan.named(name):
            done("accounting", step.parameters.model_dump(), {}, folder_of(tmp_path / "cache", step))
    results = collect(plan, tmp_path / "cache")
    verdicts = [v for v in results.verdicts if v.check.startswith(("budgets", "splits", "mnist"))]
    assert len(verdicts) == 4  # the constants of the tables stand among the published values
    disagreed = [verdict for verdict in verdicts if verdict.word != "agree"]
    assert len(disagreed) == 1
    assert all(verdict.word == "disagree" and verdict.explanation for verdict in disagreed)


def test_a_lot_is_not_larger_than_the_data():
    parameters = kinds()["accounting"].parameters.model_validate(
        {"noise_multiplier": 1.0, "epochs": 1, "records": 10, "lot": 20}
    )
    with pytest.raises(BadInputError, match="larger than the 10 records"):
        kinds()["accounting"].check(parameters, frozenset())  # type: ignore[misc]


# Questions --------------------------------------------------------------------------------------------------------

TAGGED = some.lists(some.sampled_from(["O", "B-artist", "I-artist", "B-city", "B-time_range"]), min_size=1, max_size=8)


@given(some.lists(TAGGED, min_size=1, max_size=6), some.integers(0, 5))
def test_questions_ask_for_what_the_tags_say(lines: list[list[str]], seed: int):
    rows = Rows([[" ".join(f"w{i}" for i in range(len(tags)))] for tags in lines], [" ".join(t) for t in lines],
                [{} for _ in lines])  # fmt: skip
    kinds_of_entities = ["artist", "city", "time_range", "year"]
    questions = task_rows.questions_from_tags(rows, kinds_of_entities, seed)
    assert questions == task_rows.questions_from_tags(rows, kinds_of_entities, seed)
    for row, tags in zip(questions, lines, strict=True):
        kind = row["question"].removesuffix("?").replace(" ", "_")
        assert row["answer"] in row["context"]
        assert bool(row["answer"]) == any(tag.endswith(kind) for tag in tags)
    # Each question depends on its own row alone.
    rest = Rows(rows.texts[1:], rows.labels[1:], rows.columns[1:])
    assert task_rows.questions_from_tags(rest, kinds_of_entities, seed) == questions[1:]


def test_about_half_of_the_questions_have_no_answer():
    # 400 fair coins: outside of 160 to 240 less than once in 10,000 seeds.
    rows = Rows([[f"play abba{i} in rome"] for i in range(400)], ["O B-artist O B-city"] * 400, [{}] * 400)
    questions = task_rows.questions_from_tags(rows, ["artist", "city", "year"], seed=1)
    assert 160 <= sum(not row["answer"] for row in questions) <= 240


def test_nothing_is_answered_where_the_first_piece_scores_highest():
    task = Answering(length=8)
    task.learn([{"question": "q", "context": "a b", "answer": ""}])
    assert task.unanswerable
    assert task.settings()["unanswerable"]
    batch = {
        "input_ids": torch.zeros(2, 4, dtype=torch.long), "attention_mask": torch.ones(2, 4, dtype=torch.long),
        "inside": torch.tensor([[0, 0, 1, 1]] * 2), "begins": torch.tensor([[0, 0, 0, 2]] * 2),
        "ends": torch.tensor([[0, 0, 1, 3]] * 2), "question_cut": torch.zeros(2, dtype=torch.long),
    }  # fmt: skip
    logits = torch.tensor([[3.0, 0.0, 1.0, 0.0], [0.0, 9.0, 1.0, 0.5]])
    model: Any = lambda **_: SimpleNamespace(start_logits=logits, end_logits=logits)  # noqa: E731
    rows = [{"question": "q", "context": "a b"}] * 2
    assert task.predict(model, batch, None, rows) == ["", "a"]
    task.unanswerable = False
    assert task.predict(model, batch, None, rows) == ["a", "a"]


# Scores -----------------------------------------------------------------------------------------------------------


def test_a_published_collapse_is_flagged():
    # Igamberdiev 2023, table 4.4, a tenth of it: macro-F1 is .33, whatever the text says.
    truth = [["pos"]] * 1250 + [["neg"]] * 1250
    said = [["neg"]] * 2500
    measured = task_scores.class_scores(truth, said, {"pos": 1250, "neg": 1250})
    assert measured["macro-F1"] == pytest.approx(1 / 3, abs=0.001)
    assert measured["collapsed"] == 1
    assert measured["never predicted"] == 0.5
    assert measured["accuracy"] == 0.5
    mixed = task_scores.class_scores(truth, [["pos"]] * 1300 + [["neg"]] * 1200, {"pos": 1250, "neg": 1250})
    assert mixed["collapsed"] == 0


def test_which_rare_tags_are_lost_is_uncertain_when_it_hangs_on_one_row():
    common = [["NOUN", "VERB", "NOUN"]] * 40
    truth = [*common, ["INTJ"]]
    said = [*common, ["NOUN"]]
    measured = task_scores.class_scores(truth, said, {"NOUN": 80, "VERB": 40, "INTJ": 1})
    assert measured["lost classes"] == pytest.approx(1 / 3)
    assert (measured["lost classes.low"], measured["lost classes.high"]) == (0, pytest.approx(1 / 3))
    many = task_scores.class_scores([*common, *[["INTJ"]] * 20], [*common, *[["NOUN"]] * 20], {"NOUN": 80, "INTJ": 20})
    assert many["lost classes.low"] == many["lost classes.high"] == pytest.approx(1 / 3)


def test_every_tag_that_occurs_has_an_f1_with_an_interval():
    rng = np.random.default_rng(3)
    truth = [["NOUN", "VERB"] for _ in range(200)]
    said = [["NOUN" if rng.random() < 0.8 else "ADJ", "VERB"] for _ in range(200)]
    measured = task_scores.tag_scores(truth, said)
    assert {name for name in measured if "." not in name} == {"F1 of NOUN", "F1 of VERB"}
    flat = scores.classification_scores([t for row in truth for t in row], [t for row in said for t in row])
    assert measured["F1 of NOUN"] == pytest.approx(
        next(of_class.f1 for of_class in flat.classes if of_class.label == "NOUN")
    )
    # the recall is binomial and the precision 1: the F1 is off by about 2 r' / (1 + r)^2, with r' = .028
    assert measured["F1 of NOUN.high"] - measured["F1 of NOUN.low"] == pytest.approx(
        2 * 1.96 * 2 * 0.0283 / 1.8**2, rel=0.25
    )
    assert measured["F1 of VERB.low"] == measured["F1 of VERB.high"] == 1


def test_saying_nothing_scores_the_floor_of_answers():
    measured = task_scores.answer_scores(["the abba", "", "rome"], ["", "", ""])
    assert measured["word F1"] == measured["word F1.floor"] == pytest.approx(1 / 3)
    assert measured["unanswered"] == measured["collapsed"] == 1
    assert task_scores.answer_scores(["the abba", ""], ["Abba", ""])["word F1"] == 1


def test_epochs_are_compared_with_and_without_privacy(tmp_path: Path):
    cells = []
    for number, (epsilon, seconds) in enumerate([(1.0, 3.0), (2.0, 5.0), (math.inf, 2.0)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        write_json(folder / "timing.json", {"epoch_cpu_seconds": seconds, "private": epsilon != math.inf})
        cells.append(({"data": "sst2", "strategy": "head", "epsilon": epsilon, "seed": 1}, folder))
    table = train.epoch_costs(cells)
    assert table is not None
    assert list(table.rows[0]) == ["sst2", "head", 2.0, 4.0, 2.0]


# Training ---------------------------------------------------------------------------------------------------------

GOOD, BAD = ("fine", "great", "lovely"), ("dull", "awful", "boring")


def sentences(count: int) -> list[dict[str, object]]:
    rng = np.random.default_rng(3)
    rows = []
    for i in range(count):
        words = [*rng.choice(GOOD if i % 2 else BAD, size=2), *rng.choice(["film", "story", "actor", "scene"], size=2)]
        rows.append({"texts": [" ".join(words)], "label": "good" if i % 2 else "bad", "columns": {}})
    return rows


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `data` step with two parts."""
    folder = tmp_path_factory.mktemp("texts")
    write_lines(folder / "train.jsonl", sentences(48))
    write_lines(folder / "test.jsonl", sentences(24))
    write_json(folder / "parts.json", ["train", "test"])
    write_json(
        folder / "about.json", {"task": "classification", "label": "label", "text": ["text"], "access": "public"}
    )
    return folder


@pytest.fixture(scope="module")
def first(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small masked language model of two steps."""
    parameters = {"masking": "plain", "public": "made-up reviews", "steps": 2, "batch": 8, "pieces": 150, "length": 8}
    return done("sanitized", parameters, {"data": texts}, tmp_path_factory.mktemp("first") / "step")


def training(first: Path, **more: object) -> dict[str, object]:
    usual = {"model": str(first / sanitized.MODEL), "strategy": "full", "epsilon": 4.0, "epochs": 3.0, "batch": 16,
             "length": 8, "learning_rate": 5e-3}  # fmt: skip
    return {**usual, **more}


class StoppedError(Exception):
    pass


def stopped_at(step: int) -> Any:
    def progress(done: int, total: int) -> None:
        if total == 9 and done >= step:  # 3 epochs of 48 rows in batches of 16
            raise StoppedError

    return progress


def begun(parameters: dict[str, object], inputs: dict[str, Path], folder: Path) -> bytes:
    """A training that was stopped after some steps; returns the key of its noise."""
    task = StepTask("train", train.Train.model_validate(parameters).model_dump(), inputs, folder)
    with pytest.raises(StoppedError):
        execute(task, stopped_at(4))
    return (private_folder(training_folder(folder)) / KEY).read_bytes()


def raw(folder: Path) -> bytes:
    return (folder / "predictions.jsonl").read_bytes() + (folder / "scores.json").read_bytes()


def test_a_stopped_training_goes_on_with_the_same_noise(texts: Path, first: Path, tmp_path: Path):
    parameters = training(first)
    key = begun(parameters, {"data": texts}, tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    done("train", parameters, {"data": texts}, tmp_path / "one")
    again = begun(parameters, {"data": texts}, tmp_path / "two")
    assert again == key
    done("train", parameters, {"data": texts}, tmp_path / "two")
    assert raw(tmp_path / "one") == raw(tmp_path / "two")
    # What could undo the noise is gone.
    assert not (tmp_path / "one" / RUN_FOLDER).exists()


def test_a_stopped_training_ends_like_an_undisturbed_one(texts: Path, first: Path, tmp_path: Path):
    parameters = training(first, test_seed=7)
    done("train", parameters, {"data": texts}, tmp_path / "undisturbed")
    begun(parameters, {"data": texts}, tmp_path / "stopped")
    done("train", parameters, {"data": texts}, tmp_path / "stopped")
    assert raw(tmp_path / "undisturbed") == raw(tmp_path / "stopped")


def test_a_finished_training_whose_step_was_stopped_is_not_repeated(texts: Path, first: Path, tmp_path: Path):
    parameters = train.Train.model_validate(training(first))
    folder = tmp_path / "step"
    folder.mkdir()
    train.run(parameters, {"data": texts}, folder, nothing)
    before = (folder / "predictions.jsonl").read_bytes()
    assert not (private_folder(training_folder(folder)) / STATE).exists()

    def refuse(done: int, total: int) -> None:
        raise AssertionError("it was trained again, with new noise")

    train.run(parameters, {"data": texts}, folder, refuse)
    assert (folder / "predictions.jsonl").read_bytes() == before


def test_cards_of_trainings(texts: Path, first: Path, tmp_path: Path):
    private = done("train", training(first), {"data": texts}, tmp_path / "private")
    guarantee = Card.from_json((private / "card.json").read_text()).guarantee
    assert guarantee.is_private
    assert 3.9 < guarantee.epsilon <= 4.0
    assert train.REPEATED in guarantee.not_covered
    seeded = done("train", training(first, test_seed=1), {"data": texts}, tmp_path / "seeded")
    assert not Card.from_json((seeded / "card.json").read_text()).guarantee.is_private
    plain = done("train", training(first, epsilon=math.inf, learning_rate=2e-3, epochs=20.0), {"data": texts},
                 tmp_path / "plain")  # fmt: skip
    assert not (plain / "card.json").exists()
    measured = read_json(plain / "scores.json")
    assert measured["accuracy"] > 0.8  # the words of the two classes differ
    assert read_json(plain / "timing.json")["epoch_cpu_seconds"] > 0
    assert "epoch_cpu_seconds" not in measured


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        ("train", {"epsilon": 1.0, "strategy": "heads"}, "there is no strategy 'heads'"),
        ("train", {"epsilon": 1.0, "model": "/no/such/model"}, "neither a folder nor can it be fetched"),
        ("graph", {"method": "words"}, "needs an epsilon"),
        ("graph", {"method": "majority", "epsilon": 1.0}, "leave it out"),
        ("graph", {"method": "convolution", "nodes": "rest"}, "name its column with 'split'"),
        ("sanitized", {"masking": "plain", "public": "x", "epsilon": 1.0}, "rewrites nothing"),
        ("sanitized", {"masking": "aware", "public": "x"}, "needs the 'mechanism'"),
        ("sanitized", {"masking": "aware", "public": "x", "mechanism": "dp-bart", "epsilon": 1.0}, "whole texts"),
    ],
)
def test_contradictions_are_named_before_anything_runs(
    kind: str, parameters: dict[str, object], message: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    step = kinds()[kind]
    assert step.check is not None
    with pytest.raises(TacitError, match=message):
        step.check(step.parameters.model_validate(parameters), frozenset())


# Sanitized text ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def released(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("released")
    words = [*GOOD, *BAD, "film", "story", "actor", "scene"]
    rng = np.random.default_rng(0)
    lines = [f"{word} {' '.join(f'{x:.4f}' for x in rng.standard_normal(3))}" for word in words]
    (folder / "vectors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return done("rewrite", {"mechanism": "santext", "epsilon": 6.0, "options": vectors_of(folder / "step")},
                {"data": texts}, folder / "step")  # fmt: skip


def vectors_of(released: Path) -> dict[str, str]:
    return {"vectors": str(released.parent / "vectors.txt")}


def test_pretraining_fine_tuning_and_guessing(texts: Path, first: Path, released: Path, tmp_path: Path):
    parameters = {"masking": "aware", "public": "made-up reviews", "mechanism": "santext", "epsilon": 6.0,
                  "options": vectors_of(released), "steps": 3, "batch": 8, "length": 8}  # fmt: skip
    aware = done("sanitized", parameters, {"data": texts, "model": first}, tmp_path / "aware")
    measured = read_json(aware / "scores.json")
    assert 0.2 < measured["words kept"] < 1.0
    assert math.isfinite(measured["loss at the end"])
    inputs = {"data": texts, "texts": released, "model": aware}
    tuned = done("tune", {"epochs": 1.0, "batch": 16, "length": 8}, inputs, tmp_path / "tuned")
    promise = Card.from_json((tuned / "card.json").read_text()).guarantee
    of_texts = Card.from_json((released / "card.json").read_text()).guarantee
    assert (promise.notion, promise.epsilon, promise.unit) == (of_texts.notion, of_texts.epsilon, of_texts.unit)
    assert any("post-processing" in line for line in promise.history)
    guessed = read_json(done("guessing", {"words": 40}, inputs, tmp_path / "guessed") / "scores.json")
    assert guessed["defended"] == pytest.approx(1 - guessed["rate"])
    assert guessed["gained"] == pytest.approx(guessed["rate.ceiling"] - guessed["rate"])


def test_originals_promise_nothing(texts: Path, first: Path, tmp_path: Path):
    tuned = done("tune", {"epochs": 1.0, "batch": 16, "length": 8}, {"data": texts, "model": first}, tmp_path / "t")
    assert not (tuned / "card.json").exists()


def test_pretraining_does_not_go_on_from_a_model_of_private_text(texts: Path, first: Path, tmp_path: Path):
    shutil.copytree(first / sanitized.MODEL, tmp_path / "model")
    settings = read_json(tmp_path / "model" / "task.json")
    del settings["public"]
    write_json(tmp_path / "model" / "task.json", settings)
    parameters = {"masking": "plain", "public": "reviews", "network": str(tmp_path / "model"), "steps": 1, "batch": 8}
    with pytest.raises(BadInputError, match="nobody declared public"):
        done("sanitized", parameters, {"data": texts}, tmp_path / "step")


def test_no_steps_leave_the_model_as_it_was(texts: Path, first: Path, tmp_path: Path):
    parameters = {"masking": "plain", "public": "made-up reviews", "steps": 0, "length": 8}
    same = done("sanitized", parameters, {"data": texts, "model": first}, tmp_path / "same")
    name = f"{sanitized.MODEL}/model.safetensors"
    assert (same / name).read_bytes() == (first / name).read_bytes()


def test_a_stopped_pretraining_goes_on_with_the_same_word_pieces(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    parameters = {"masking": "plain", "public": "made-up reviews", "steps": 5, "batch": 8, "pieces": 150, "length": 8}
    task = StepTask("sanitized", sanitized.Sanitized.model_validate(parameters).model_dump(), {"data": texts},
                    tmp_path / "stopped")  # fmt: skip

    def stopped(done: int, total: int) -> None:
        if done == 3:
            raise StoppedError

    with pytest.raises(StoppedError):
        execute(task, stopped)
    start = Path(RUN_FOLDER) / "start"
    shutil.copytree(tmp_path / "stopped" / start, tmp_path / "undisturbed" / start)

    def again(lines: object, pieces: int) -> None:
        raise AssertionError("the words were cut into pieces again, and perhaps into others")

    monkeypatch.setattr(sanitized, "public_tokenizer", again)
    for name in ("stopped", "undisturbed"):
        done("sanitized", parameters, {"data": texts}, tmp_path / name)
    for name in ("losses.json", f"{sanitized.MODEL}/model.safetensors", f"{sanitized.MODEL}/tokenizer.json"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes()
    assert len(read_json(tmp_path / "stopped" / "losses.json")) == 5
    assert not (tmp_path / "stopped" / RUN_FOLDER).exists()


# Graphs -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two groups of 30 nodes with words of their own, each node linked to the next of its group."""
    folder = tmp_path_factory.mktemp("network")
    nodes = ["node\tlabel\tfeatures"]
    nodes += [f"n{i}\t{'ab'[i % 2]}\t{i % 2} {2 + i % 2} {4 + i % 5}" for i in range(60)]
    edges = ["source\ttarget", *(f"n{i}\tn{i + 2}" for i in range(58))]
    (folder / "nodes.tsv").write_text("\n".join(nodes) + "\n", encoding="utf-8")
    (folder / "edges.tsv").write_text("\n".join(edges) + "\n", encoding="utf-8")
    return folder


def test_graph_methods_and_hard_cases(network: Path, tmp_path: Path):
    data = {"data": network}
    private = {"method": "convolution", "epsilon": 3.0, "subgraphs": 4, "passes": 3}
    split = done("graph", private, data, tmp_path / "split")
    plain = done("graph", {"method": "convolution", "subgraphs": 2, "passes": 15, "learning_rate": 0.1}, data,
                 tmp_path / "plain")  # fmt: skip
    words = done("graph", {"method": "words", "epsilon": 50.0}, data, tmp_path / "words")
    most = done("graph", {"method": "majority"}, data, tmp_path / "most")
    measured = {folder.name: read_json(folder / "scores.json") for folder in (split, plain, words, most)}
    assert measured["plain"]["accuracy"] > 0.9  # the words tell the label
    assert measured["words"]["accuracy"] > 0.9
    assert measured["most"]["collapsed"] == 1
    assert (split / "card.json").exists()
    assert not (plain / "card.json").exists()
    # The same noise protects a whole subgraph better than one node, and sampled subgraphs better than visited ones.
    readings = measured["split"]
    assert readings["epsilon of a node, poisson"] == pytest.approx(3.0, abs=0.01)
    assert readings["epsilon of a subgraph, poisson"] < readings["epsilon of a node, poisson"]
    assert readings["epsilon of a node, poisson"] < readings["epsilon of a node, visits"]
    overlap = read_json(done("overlap", {}, {"setting": split, "full": most}, tmp_path / "overlap") / "scores.json")
    wrong = {row["node"]: row["true"] != row["predicted"] for row in read_lines(split / "predictions.jsonl")}
    hard = [row["node"] for row in read_lines(most / "predictions.jsonl") if row["true"] != row["predicted"]]
    assert overlap["overlap"] == pytest.approx(np.mean([wrong[node] for node in hard]))
    assert overlap["hard cases"] == len(hard)
    for folder in (split, plain, words, most):
        measured = read_json(folder / "scores.json")
        assert measured["above the largest class"] == max(0.0, measured["accuracy"] - measured["accuracy.floor"])
    assert read_json(most / "scores.json")["above the largest class"] == 0.0


def test_a_repeated_graph_step_draws_the_same_noise(network: Path, tmp_path: Path):
    parameters = graph.GraphTraining.model_validate({"method": "messages", "epsilon": 1.0})
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    graph.run(parameters, {"data": network}, tmp_path / "one", nothing)
    shutil.copy(tmp_path / "one" / KEY_FILE, tmp_path / "two" / KEY_FILE)
    graph.run(parameters, {"data": network}, tmp_path / "two", nothing)
    files = [(tmp_path / name / "predictions.jsonl").read_bytes() for name in ("one", "two")]
    assert files[0] == files[1]


def test_different_test_nodes_are_not_compared(network: Path, tmp_path: Path):
    made = [
        done("graph", {"method": "majority", "seed": seed}, {"data": network}, tmp_path / str(seed)) for seed in (1, 2)
    ]
    with pytest.raises(BadInputError, match="tested on different nodes"):
        done("overlap", {}, {"setting": made[0], "full": made[1]}, tmp_path / "overlap")


def test_a_fraction_keeps_the_test_nodes(network: Path):
    usual = {"method": "majority"}
    whole = read_nodes_and_links(graph.GraphTraining.model_validate(usual).job(network))
    all_nodes = graph.parts(whole, graph.GraphTraining.model_validate(usual))
    fewer = graph.parts(whole, graph.GraphTraining.model_validate({**usual, "fraction": 0.5}))
    assert len(fewer[0]) == round(len(all_nodes[0]) / 2)
    assert set(fewer[0]) <= set(all_nodes[0])
    assert fewer[1].tolist() == all_nodes[1].tolist()
    assert not set(all_nodes[0]) & set(all_nodes[1])
