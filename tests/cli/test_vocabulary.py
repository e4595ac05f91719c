"""`tacit vocabulary`: a folder with words, card and tokenizer, and clear sentences for what cannot be done."""

from __future__ import annotations

import csv
import json

import pytest

from tacit.cli.main import run

WORDS = ["the", "movie", "was", "good", "and", "fine"]


@pytest.fixture
def data(tmp_path):
    with (tmp_path / "data.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "user"])
        for i in range(300):
            writer.writerow([" ".join(WORDS[i % 2 :]) + (" zebra4711" if i == 7 else ""), i % 2, f"u{i // 3}"])
    return tmp_path


def build(data, *more, output="out", epsilon=20):
    arguments = ["vocabulary", "build", data / "data.csv", "--epsilon", epsilon, "-o", data / output, *more]
    return run([str(argument) for argument in (*arguments, "--most-words", 6)])


def test_a_folder_with_words_card_and_tokenizer(data, capsys):
    transformers = pytest.importorskip("transformers")
    assert build(data, "--size", 300) == 0
    assert "Privacy card" in capsys.readouterr().out
    card = json.loads((data / "out" / "vocabulary-card.json").read_text())["guarantee"]
    assert (card["epsilon"], card["unit"], card["notion"]) == (20.0, "record", "approximate")
    lines = (data / "out" / "words.tsv").read_text().splitlines()
    assert lines[0] == "word\tnoisy count"
    assert {line.split("\t")[0] for line in lines[1:]} == set(WORDS), "the word of one record is not among them"
    loaded = transformers.AutoTokenizer.from_pretrained(data / "out")
    assert loaded.tokenize("The good movie") == ["the", "good", "movie"]
    assert run(["vocabulary", "show", str(data / "out"), "-n", "2"]) == 0
    assert len([line for line in capsys.readouterr().out.splitlines() if line.startswith("   ")]) >= 2


def test_the_promise_can_be_made_to_users_and_on_a_public_list(data):
    assert build(data, "--kind", "words", "--user-column", "user", "-q") == 0
    assert json.loads((data / "out" / "vocabulary-card.json").read_text())["guarantee"]["unit"] == "user"
    (data / "list.txt").write_text("good\nbad\n")
    listed = ("--public-words", data / "list.txt", "--kind", "words", "--noise", "laplace", "-q")
    assert build(data, *listed, "--public", "two words", output="listed") == 0
    card = json.loads((data / "listed" / "vocabulary-card.json").read_text())["guarantee"]
    assert (card["notion"], card["delta"]) == ("pure", 0.0)
    assert len((data / "listed" / "words.tsv").read_text().splitlines()) == 3


def test_a_test_seed_voids_the_card(data):
    assert build(data, "--kind", "words", "--seed", 1, "-q") == 0
    assert json.loads((data / "out" / "vocabulary-card.json").read_text())["guarantee"]["notion"] == "none"


@pytest.mark.parametrize(
    ("more", "epsilon", "message"),
    [
        (("--column", "txt"), 1, "txt"),
        (("--delta", "0.5"), 1, "not below one over"),
        (("--delta", "tiny"), 1, "number or 'auto'"),
        (("--kind", "letters"), 1, "--kind must be one of"),
        (("--noise", "laplace", "--weighting", "shared"), 1, "weighting 'one'"),
        (("--public-words", "list.txt"), 1, "must be public"),
        ((), 0.001, "no word is frequent enough"),
        ((), -1, "--epsilon must be above 0"),
        (("--size", 0), 1, "at least 16 pieces"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(data, more, epsilon, message, capsys):
    assert build(data, *more, epsilon=epsilon) == 2
    assert message in capsys.readouterr().err
    assert not (data / "out").exists()


def test_nothing_is_overwritten(data, capsys):
    (data / "out").mkdir()
    assert build(data) == 2
    assert "exists already" in capsys.readouterr().err
