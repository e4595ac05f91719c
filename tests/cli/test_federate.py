"""`tacit federate`: a model folder whose card speaks of users, and clear sentences for what cannot be done."""

from __future__ import annotations

import csv
import json

import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.cli.main import app, run  # noqa: E402
from tests.training.test_run import rows, tiny, tokenizer  # noqa: E402, F401

from tacit.training.tasks import Classification  # noqa: E402  # isort: skip


@pytest.fixture(scope="module")
def folder(tokenizer, tmp_path_factory):  # noqa: F811
    place = tmp_path_factory.mktemp("federate")
    task = Classification(labels=["neg", "pos"])
    tiny(tokenizer, task).save_pretrained(place / "tiny")
    tokenizer.save_pretrained(place / "tiny")
    data = [{**row, "author": f"a{i % 60}", "nobody": "", "same": "x"} for i, row in enumerate(rows(240))]
    data += [{**row, "author": "a0", "nobody": "", "same": "x"} for row in rows(40, seed=3)]
    with (place / "data.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(data[0]))
        writer.writeheader()
        writer.writerows(data)
    return place


def federate(folder, *more):
    options = ["--model", folder / "tiny", "--strategy", "head", "--cohort", 20, "--user-column", "author"]
    arguments = ["federate", "classify", folder / "data.csv", *options, *more]
    return run([str(argument) for argument in arguments])


@pytest.mark.parametrize("algorithm", ["fedavg", "ftrl"])
def test_a_trained_folder_has_a_model_and_a_card_for_users(folder, algorithm, capsys):
    out = folder / algorithm
    options = ["--epsilon", 8, "--epochs", 1, "--rows-per-user", 16, "--algorithm", algorithm, "-o", out]
    assert federate(folder, *options) == 0
    said = capsys.readouterr()
    assert "60 users, 3 rounds" in said.err
    assert "1 users have more than 16 rows" in said.err
    card = json.loads((out / "card.json").read_text())["guarantee"]
    assert card["unit"] == "user"
    assert card["epsilon"] <= 8
    assert card["delta"] < 1 / 60
    assert "at most 16 rows" in card["parameters"]["local training"]
    if algorithm == "ftrl":
        assert "no amplification" in card["parameters"]["visits"]
    else:
        assert "Poisson" in card["parameters"]["sampling rate"]
    assert "a0" not in (out / "card.json").read_text()
    assert transformers.AutoModelForSequenceClassification.from_pretrained(out).config.num_labels == 2
    assert not (out.with_name(f"{out.name}.private") / "checkpoint.pt").exists()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--epsilon", 8, "--cohort", 100), "60 users, fewer than a cohort of 100"),
        (("--epsilon", 8, "--user-column", "writer"), "writer"),
        (("--epsilon", 8, "--user-column", "nobody"), "row 1 has no value in 'nobody'"),
        (("--epsilon", 8, "--user-column", "same"), "same value in 'same'"),
        (("--epsilon", 8, "--algorithm", "sgd"), "--algorithm must be one of"),
        (("--epsilon", 8, "--noise", "tree"), "--noise is for ftrl"),
        (("--epsilon", 8, "--algorithm", "ftrl", "--noise", "pink"), "--noise must be one of"),
        (("--epsilon", 8, "--delta", "0.5"), "not below one over"),
        (("--epsilon", 8, "--local-epochs", 0), "--local-epochs must be at least 1"),
        (("--epsilon", 8, "--resume"), "no unfinished run"),
        (("--epsilon", 8, "--cohort", 0), "--cohort must be at least 1"),
        (("--epsilon", 8, "--optimizer", "sgd", "--momentum", 1.5), "momentum of the server"),
        (("--epsilon", 8, "--length", 1), "leaves nothing of a text"),
        (("--epsilon", 8, "--trials", 0), "at least 1, not 0"),
        (
            ("--epsilon", 1e-6, "--algorithm", "ftrl", "--noise", "independent", "--epochs", 1000),
            "nothing can be learned",
        ),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(folder, more, message, capsys):
    assert federate(folder, *more, "-o", folder / "out") == 2
    assert message in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_without_privacy_the_card_says_so(folder):
    assert federate(folder, "--epsilon", "inf", "--epochs", 0.3, "-o", folder / "plain", "-q") == 0
    card = json.loads((folder / "plain" / "card.json").read_text())["guarantee"]
    assert card["notion"] == "none"
    assert "without noise" in card["void"]


def test_help_names_the_options_of_users():
    called = CliRunner().invoke(app, ["federate", "tag", "--help"])
    assert all(word in called.output for word in ("--user-column", "--algorithm", "--cohort", "--tags-column"))
    assert "--user-column author" in CliRunner().invoke(app, ["federate", "classify", "--help"]).output


@pytest.mark.parametrize("algorithm", ["fedavg", "ftrl"])
def test_many_trials_share_one_delta(folder, algorithm, capsys):
    options = ["--epsilon", 2, "--epochs", 1, "--algorithm", algorithm, "-q", "-o", folder / f"trials-{algorithm}"]
    assert federate(folder, *options, "--trials", 0) == 2
    assert "at least 1, not 0" in capsys.readouterr().err
    assert federate(folder, *options, "--trials", 10) == 0
    card = json.loads((folder / f"trials-{algorithm}" / "card.json").read_text())["guarantee"]
    assert card["delta"] < 0.2 / 60
