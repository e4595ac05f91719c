"""`tacit predict` and what `tacit train` can start from."""

from __future__ import annotations

import csv
import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit import predict  # noqa: E402
from tacit.card import Card, ReleaseFacts  # noqa: E402
from tacit.cli.main import run  # noqa: E402
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit  # noqa: E402
from tacit.text.digest import file_digest  # noqa: E402
from tests.cli.test_train import folder, train  # noqa: E402, F401
from tests.training.test_run import rows, tokenizer  # noqa: E402, F401


def tacit(*arguments):
    return run([str(argument) for argument in arguments])


@pytest.fixture
def trained(folder):  # noqa: F811
    options = ("--batch", 30, "--epochs", 4, "--learning-rate", 0.01, "-q")
    assert train(folder, "--epsilon", "inf", *options, "-o", folder / "model") == 0
    return folder


def write(path, made, names=("text", "label")):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *names])
        writer.writerows([i, row["text"], row["label"]] for i, row in enumerate(made))


def test_predictions_stand_beside_the_rows_and_are_scored(trained, capsys):
    write(trained / "new.csv", rows(40, seed=8), ("review", "stars"))
    columns = ("--column", "text=review", "--column", "label=stars")
    out = trained / "out.csv"
    assert tacit("predict", trained / "model", trained / "new.csv", "-o", out, *columns, "--score", "--json", "-q") == 0
    report = json.loads(capsys.readouterr().out)
    with out.open() as file:
        written = list(csv.DictReader(file))
    right = sum(row["prediction"] == row["stars"] for row in written) / 40
    assert right > 0.9
    assert list(written[0]) == ["id", "review", "stars", "prediction"]
    scores = {f["name"]: f["numbers"] for f in report["sections"][0]["findings"]}
    assert scores["accuracy"]["accuracy"] == pytest.approx(right)
    assert tacit("predict", trained / "model", trained / "new.csv", "-o", out, *columns) == 2
    assert "exists" in capsys.readouterr().err


def test_what_predict_cannot_do_is_said(trained, capsys):
    write(trained / "new.csv", rows(4))
    for more, message in (
        ((trained / "tiny", trained / "new.csv", "-o", "x.csv"), "has no task.json. Give one"),
        ((trained / "model", trained / "new.csv", "--score", "--batch", 0), "--physical must be at least 1"),
        ((trained / "model", trained / "new.csv"), "say where"),
        ((trained / "model", trained / "new.csv", "-o", "x.csv", "--column", "sound=a"), "ROLE=NAME"),
        ((trained / "model", trained / "new.csv", "-o", "x.csv", "--column", "text=a"), "'a'"),
    ):
        assert tacit("predict", *more) == 2
        messages = capsys.readouterr().err
        assert message in messages
        assert "not finished" not in messages
    (trained / "stopped" / "private").mkdir(parents=True)
    (trained / "stopped" / "private" / "checkpoint.pt").touch()
    assert tacit("predict", trained / "stopped", trained / "new.csv", "--score") == 2
    assert "is not finished: go on" in capsys.readouterr().err


def test_scores_by_group_beside_the_model_without_privacy(trained, capsys):
    made = rows(160, seed=8)
    with (trained / "new.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "dialect", "author"])
        for i, row in enumerate(made):
            # The model has learned the labels of the north; in the south they are turned around.
            north = i % 4 < 2
            label = row["label"] if north else {"pos": "neg", "neg": "pos"}[row["label"]]
            writer.writerow([row["text"], label, "north" if north else "south", f"author {i % 2} {i // 3}"])
    options = ("--epsilon", 8, "--batch", 100, "--epochs", 1, "-q")
    assert train(trained, *options, "-o", trained / "private") == 0
    capsys.readouterr()
    arguments = ("predict", trained / "private", trained / "new.csv", "--group-column", "dialect", "--by-class", "-q")
    compared = (*arguments, "--beside", trained / "model", "--user-column", "author")
    page = trained / "groups.html"
    assert tacit(*compared, "--html", page, "--json-file", trained / "groups.json") == 0
    assert "Who pays for privacy in macro-F1" in capsys.readouterr().out
    report = json.loads((trained / "groups.json").read_text())
    assert [section["title"] for section in report["sections"]][1:] == ["Scores by dialect", "Scores by class"]
    (table, _) = report["sections"][1]["tables"]
    assert table["columns"][:4] == ["group", "rows", "users", "private: score"]
    by_group = {row[0]: dict(zip(table["columns"], row, strict=True)) for row in table["rows"]}
    assert by_group["north"]["model: score"] > 0.9 > 0.2 > by_group["south"]["model: score"]
    assert by_group["north"]["rows"] == 80
    assert "paid for privacy" in page.read_text()
    assert tacit(*arguments, "--beside", trained / "model", "--html", page) == 2
    assert "exists" in capsys.readouterr().err
    python = predict(trained / "private", trained / "new.csv", group_column="dialect", beside=trained / "model")
    assert python.scores is not None
    assert [section.title for section in python.scores.sections][1:] == ["Scores by dialect"]


def test_groups_that_cannot_be_compared_are_said(trained, capsys):
    write(trained / "new.csv", rows(8))
    place = (trained / "model", trained / "new.csv")
    for more, message in (
        (("--group-column", "dialect"), "dialect"),
        (("--group-column", "id", "--beside", trained / "tiny"), "task.json"),
        (("--score", "--beside", trained / "model"), "--group-column"),
        (("--score", "--user-column", "id"), "--group-column"),
        (("-o", trained / "x.csv", "--html", trained / "x.html"), "--score"),
    ):
        assert tacit("predict", *place, *more) == 2, more
        assert message in capsys.readouterr().err
    assert not (trained / "x.csv").exists()


def test_a_test_file_is_scored_by_group_after_training(folder, capsys):  # noqa: F811
    with (folder / "test.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "site"])
        writer.writerows([row["text"], row["label"], "ab"[i % 3 == 0]] for i, row in enumerate(rows(180, seed=8)))
    options = ("--batch", 100, "--epochs", 1, "--epsilon", 8, "-q")
    grouped = ("--group-column", "site", "--by-class")
    assert train(folder, *options, "--test", folder / "test.csv", *grouped, "-o", folder / "m") == 0
    shown = capsys.readouterr().out
    assert "Scores by site" in shown
    assert "Scores by class" in shown
    card = json.loads((folder / "m" / "card.json").read_text())
    assert "group_column" not in card["configuration"], "a column of the test rows is nobody's business"
    assert train(folder, *options, *grouped, "-o", folder / "n") == 2
    assert "--test" in capsys.readouterr().err


def test_a_test_file_is_scored_after_training(folder, capsys):  # noqa: F811
    write(folder / "test.csv", rows(40, seed=8))
    options = ("--batch", 100, "--epochs", 1, "--test", folder / "test.csv", "-o", folder / "m", "-q")
    assert train(folder, "--epsilon", 8, *options) == 0
    assert "macro-F1" in capsys.readouterr().out


def test_training_on_released_text_has_the_card_of_the_text(folder, capsys):  # noqa: F811
    release = Guarantee(
        notion=Notion.PURE, epsilon=3.0, unit=Unit.DOCUMENT, adjacency=Adjacency.ANY_TWO, mechanism="codebook"
    )
    facts = ReleaseFacts(
        300, 300, 300, 9, 9, columns=("text",), kept_columns=("label",), output="data.csv",
        digest=file_digest(folder / "data.csv"),
    )  # fmt: skip
    (folder / "card.json").write_text(Card(release, facts).to_json())
    options = ("--batch", 100, "--epochs", 1, "-q", "--released", folder / "card.json")
    assert train(folder, *options, "-o", folder / "m") == 0
    card = Card.from_json((folder / "m" / "card.json").read_text()).guarantee
    assert (card.epsilon, card.unit) == (3.0, Unit.DOCUMENT)
    assert train(folder, *options, "--epsilon", 3, "-o", folder / "n") == 2
    assert "needs no noise" in capsys.readouterr().err
    assert train(folder, "--batch", 100, "-o", folder / "n") == 2
    assert "--epsilon" in capsys.readouterr().err


def test_private_training_that_starts_from_unprotected_weights_is_void(trained, tokenizer):  # noqa: F811
    options = ["--strategy", "full", "--epsilon", 8, "--batch", 100, "--epochs", 1, "-q"]
    data, model = trained / "data.csv", trained / "model"
    assert tacit("train", "classify", data, "--model", model, *options, "-o", trained / "n") == 0
    card = Card.from_json((trained / "n" / "card.json").read_text()).guarantee
    assert not card.is_private
    assert "started from weights" in card.void


def test_a_folder_of_the_datasets_library_is_read(folder, capsys):  # noqa: F811
    datasets = pytest.importorskip("datasets")
    made = rows(200)
    labels = datasets.ClassLabel(names=["neg", "pos"])
    features = datasets.Features({"text": datasets.Value("string"), "label": labels})
    data = datasets.Dataset.from_list(
        [{"text": r["text"], "label": labels.str2int(r["label"])} for r in made], features=features
    )
    data.save_to_disk(folder / "saved")
    options = ["--model", folder / "tiny", "--strategy", "full", "--epsilon", "inf", "--batch", 50, "--epochs", 1, "-q"]
    assert tacit("train", "classify", folder / "saved", *options, "-o", folder / "m") == 0
    assert json.loads((folder / "m" / "task.json").read_text())["labels"] == ["neg", "pos"]
    datasets.DatasetDict({"train": data}).save_to_disk(folder / "both")
    assert tacit("train", "classify", folder / "both", *options, "-o", folder / "n") == 2
    assert "both/train" in capsys.readouterr().err
