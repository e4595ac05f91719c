"""`tacit train selective`: two phases, one card, and what is refused."""

from __future__ import annotations

import csv
import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tacit.cli.main import run  # noqa: E402
from tacit.cli.naming import TERMINAL  # noqa: E402
from tacit.cli.selective import command  # noqa: E402
from tacit.errors import TacitError  # noqa: E402
from tacit.jobs.selective import USUAL_MODELS  # noqa: E402
from tests.training.test_synthesis import PLACES, small_model, small_rows, small_tokenizer  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("selective")
    words = small_tokenizer()
    small_model(words).save_pretrained(place / "tiny")
    words.save_pretrained(place / "tiny")
    with (place / "data.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["text", "intent"])
        writer.writeheader()
        writer.writerows(small_rows(300))
    (place / "places.txt").write_text("\n".join(PLACES))
    return place


def selective(folder, *more):
    shared = ("--model", folder / "tiny", "--strategy", "full", "--length", 12, "--batch", 100, "--physical", 200)
    arguments = [str(argument) for argument in (folder / "data.csv", *shared, "--epochs", 1, *more)]
    command.main(args=arguments, standalone_mode=False)


def test_the_card_promises_the_redacted_places_and_no_more(folder, capsys):
    selective(folder, "--sensitive", folder / "places.txt", "--epsilon", 8, "-o", folder / "m")
    shown = capsys.readouterr()
    assert "redacted: 75 of" in shown.err
    assert "not protected at all" in " ".join(shown.out.replace("│", " ").split())
    card = json.loads((folder / "m" / "card.json").read_text())["guarantee"]
    assert card["adjacency"].endswith("with another that has the same redacted text")
    assert card["epsilon"] <= 8
    assert (folder / "m.private" / "first-phase" / "model.safetensors").exists()


def test_redacted_texts_can_be_looked_at_first(folder, capsys):
    selective(folder, "--sensitive", folder / "places.txt", "--epsilon", 8, "-o", folder / "n", "--show", 300)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 300
    assert "fly to ___ today" in lines
    assert not any(place in line for line in lines for place in PLACES)
    assert not (folder / "n").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sensitive", "patterns"), "finds nothing sensitive"),
        (("--sensitive", "none"), "needs something sensitive"),
        (("--sensitive", "places"), "does not exist"),
        (("--show", "-1"), "--show must be at least 0"),
        (("--first-batch", "0"), "--first-batch must be at least 1"),
        (("--first", "some"), "--first must be one of"),
        (("--first", "public"), "belong together"),
        (("--first", "public", "--public-data", "x.csv"), "--public NAME"),
        (("--first", "private"), "belong together"),
        (("--first-epsilon", "3"), "belong together"),
        (("--task", "translate"), "--task must be one of"),
        (("--task", "classify", "--label-column", "intent", "--model", "smollm2"), "'smollm2' writes texts"),
    ],
)
def test_what_cannot_be_done_is_said(folder, arguments, message):
    listed = () if "--sensitive" in arguments else ("--sensitive", folder / "places.txt")
    with pytest.raises(TacitError) as refused:
        selective(folder, *arguments, *listed, "--epsilon", 8, "-o", folder / "never")
    assert message in refused.value.rendered(TERMINAL)
    assert not (folder / "never").exists()


def test_trials_and_private_phases_share_one_delta(folder):
    options = ("--sensitive", folder / "places.txt", "--first", "private", "--first-epsilon", 4, "--epsilon", 4, "-q")
    with pytest.raises(TacitError, match="at least 1, not 0"):
        selective(folder, *options, "--trials", 0, "-o", folder / "shared")
    selective(folder, *options, "--trials", 3, "-o", folder / "shared")
    card = json.loads((folder / "shared" / "card.json").read_text())["guarantee"]
    assert card["delta"] < 0.1 / 300


def test_a_classifier_starts_from_an_encoder_and_can_be_scored_afterwards(folder, monkeypatch, capsys):
    assert USUAL_MODELS == {"write": "smollm2", "fill": "minilm", "classify": "minilm"}
    words = small_tokenizer()
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    transformers.BertModel(transformers.BertConfig(vocab_size=len(words), **small)).save_pretrained(folder / "bert")
    words.save_pretrained(folder / "bert")
    monkeypatch.setitem(USUAL_MODELS, "classify", str(folder / "bert"))
    options = ("--task", "classify", "--label-column", "intent", "--strategy", "full", "--batch", 100, "--epochs", 1)
    arguments = (folder / "data.csv", *options, "--sensitive", folder / "places.txt", "--epsilon", 8)
    assert run([str(item) for item in ("train", "selective", *arguments, "-o", folder / "c", "-q")]) == 0
    assert json.loads((folder / "c" / "task.json").read_text())["columns"] == {"text": "text", "label": "intent"}
    assert run(["predict", str(folder / "c"), str(folder / "data.csv"), "--score", "-q"]) == 0
    assert "acro-F1" in capsys.readouterr().out
