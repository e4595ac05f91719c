"""`tacit graph`: train, predict, and what it says when something is wrong."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from tacit.cli.main import app, run
from tests.training.test_graphs import planted

WORDS = tuple(f"word{i}" for i in range(30))


@pytest.fixture
def folder(tmp_path):
    graph = planted(nodes=150, inside=0.08, outside=0.005)
    rows = graph.features.toarray()
    with (tmp_path / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["node", "label", "features", "text"])
        for i, name in enumerate(graph.names):
            places = np.flatnonzero(rows[i])
            label = graph.classes[graph.labels[i]] if i < 120 else ""
            writer.writerow([name, label, " ".join(map(str, places)), " ".join(WORDS[p] for p in places)])
    with (tmp_path / "links.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows([graph.names[a], graph.names[b]] for a, b in graph.links)
    (tmp_path / "truth.json").write_text(json.dumps([graph.classes[i] for i in graph.labels]))
    return tmp_path


def train(folder, *more, name="model"):
    command = ["graph", "train", folder / "nodes.csv", folder / "links.csv", "-o", folder / name, *more]
    return run([str(part) for part in command])


def predict(folder, *more, name="model"):
    return run([str(p) for p in ["graph", "predict", folder / name, folder / "nodes.csv", *more]])


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_train_and_predict_with_messages(folder, capsys):
    assert train(folder, "--epsilon", 100, "--hold-out", 0.2) == 0
    said = capsys.readouterr()
    assert "macro-F1" in said.err
    assert "not covered" in said.err
    card = json.loads((folder / "model" / "card.json").read_text())["guarantee"]
    assert card["unit"] == "node"
    assert card["epsilon"] == pytest.approx(100)
    assert predict(folder, "-o", folder / "labels.csv") == 0
    labels = [row["label"] for row in read(folder / "labels.csv")]
    truth = json.loads((folder / "truth.json").read_text())
    assert np.mean([a == b for a, b in zip(labels, truth, strict=True)]) > 0.75
    assert json.loads((folder / "labels.csv.card.json").read_text())["guarantee"]["epsilon"] == pytest.approx(100)
    # Nothing is overwritten.
    assert predict(folder, "-o", folder / "labels.csv") == 2
    assert predict(folder, "-o", folder / "labels.csv", "--force") == 0
    assert train(folder, "--epsilon", 1) == 2
    assert "not empty" in capsys.readouterr().err


def test_c3_training_without_a_score_says_how_to_get_one(folder, capsys):
    assert train(folder, "--epsilon", 100) == 0
    assert "--hold-out 0.2" in capsys.readouterr().err


def test_what_nodes_received_stays_in_the_private_folder_and_predictions_use_it(folder):
    assert train(folder, "--epsilon", 50, "-q") == 0
    assert predict(folder, "-o", folder / "with.csv") == 0
    evidence = folder / "model.private" / "evidence.npz"
    with np.load(evidence) as file:
        assert set(file["names"].tolist()) == {f"n{i}" for i in range(120, 150)}
    evidence.unlink()
    assert predict(folder, "-o", folder / "alone.csv") == 0
    rows = list(zip(read(folder / "with.csv"), read(folder / "alone.csv"), strict=True))
    assert all(a == b for a, b in rows[:120])
    assert any(a != b for a, b in rows[120:])


def test_a_column_of_texts_with_a_public_vocabulary_or_hashed(folder):
    (folder / "words.txt").write_text("\n".join(WORDS))
    options = ("--features", "words", "--method", "words", "--epsilon", 50, "-q")
    assert train(folder, *options, "--vocabulary", folder / "words.txt", name="listed") == 0
    assert train(folder, *options, name="hashed") == 0
    for name in ("listed", "hashed"):
        assert predict(folder, "-o", folder / f"{name}.csv", name=name) == 0
        labels = [row["label"] for row in read(folder / f"{name}.csv")]
        truth = json.loads((folder / "truth.json").read_text())
        assert np.mean([a == b for a, b in zip(labels, truth, strict=True)]) > 0.6
    card = json.loads((folder / "listed" / "card.json").read_text())["guarantee"]
    assert card["provenance"][0]["name"] == "vocabulary"


def test_subgraphs_print_all_readings_and_their_predictions_have_no_guarantee(folder, capsys):
    pytest.importorskip("torch")
    pytest.importorskip("dp_accounting")
    assert train(folder, "--epsilon", 5, "--method", "subgraphs", "--subgraphs", 6, "--passes", 2) == 0
    said = capsys.readouterr().err
    assert said.count("poisson") == 2
    assert said.count("visits") == 2
    assert "<- this run" in said
    assert predict(folder, "-o", folder / "labels.csv") == 2
    assert "give them after the nodes" in capsys.readouterr().err
    assert predict(folder, folder / "links.csv", "-o", folder / "labels.csv") == 0
    card = json.loads((folder / "labels.csv.card.json").read_text())
    assert "no privacy guarantee" in card["sentence"]
    assert "neighbors" in card["sentence"]


def test_a_test_seed_voids_the_card(folder):
    assert train(folder, "--epsilon", 5, "--seed", 1, "-q") == 0
    assert "no privacy guarantee" in json.loads((folder / "model" / "card.json").read_text())["sentence"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--epsilon", 0], "--epsilon must be above 0"),
        (["--epsilon", 1, "--method", "magic"], "--method must be one of"),
        (["--epsilon", 1, "--features", "pixels"], "--features must be one of"),
        (["--epsilon", 1, "--hold-out", 1.5], "--hold-out must be below 1"),
        (["--epsilon", 1, "--hold-out", 0.001], "leaves nothing"),
        (["--epsilon", 1, "--delta", "tiny"], "a number or 'auto'"),
        (["--epsilon", 1, "--delta", 0.5], "not below one over"),
        (["--epsilon", 1, "--label-column", "class"], "no column 'class'"),
        (["--epsilon", 1, "--trials", 0], "at least 1"),
        (["--epsilon", 1, "--vocabulary", "words.txt"], "belongs to --features words"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(folder, more, message, capsys):
    assert train(folder, *more) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "model").exists()


def test_a_folder_that_is_no_model_is_refused(folder, capsys):
    assert predict(folder, "-o", folder / "labels.csv", name="nowhere") == 2
    assert "no graph model" in capsys.readouterr().err


def test_help_teaches_by_example():
    assert "tacit graph train nodes.tsv" in CliRunner().invoke(app, ["graph", "train", "--help"]).output
    assert "tacit graph predict" in CliRunner().invoke(app, ["graph", "predict", "--help"]).output


@pytest.mark.parametrize("method", ["words", "subgraphs"])
def test_how_many_features_there_are_is_said_beforehand_or_not_covered(folder, method, capsys):
    pytest.importorskip("torch")
    shared = ["--epsilon", 100, "--method", method, "-q"]
    assert train(folder, *shared, name="read") == 0
    card = json.loads((folder / "read" / "card.json").read_text())["guarantee"]
    assert any("the largest index" in item for item in card["not_covered"])
    assert train(folder, *shared, "--feature-count", 50, name="given") == 0
    card = json.loads((folder / "given" / "card.json").read_text())["guarantee"]
    assert not any("the largest index" in item for item in card["not_covered"])
    assert json.loads((folder / "given" / "graph.json").read_text())["features"]["size"] == 50
    wrong = ["--feature-count", 9, "--features", "words"]
    for more, message in ((["--feature-count", 0], "at least 1"), (wrong, "belongs to")):
        assert train(folder, *shared, *more, name="none") == 2
        assert message in capsys.readouterr().err
