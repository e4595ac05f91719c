"""`tacit synthesize` by matching."""

import csv

import pytest

from tacit.cli.main import run

ROWS = [("Will it rain in Paris tomorrow?", "weather"), ("Play a song by Bach.", "music")] * 200


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("message", "intent"), *ROWS])
    return path


def synthesize(*arguments):
    return run(["synthesize", *map(str, arguments)])


def test_a_file_becomes_a_corpus_and_the_sketch_another(data, tmp_path, capsys, small_pool):
    output = tmp_path / "synthetic.csv"
    labels = ("--column", "message", "--label-column", "intent", "--labels", "weather,music")
    assert synthesize(data, *labels, "--epsilon", 2, "-n", 100, "-o", output, "--pool", small_pool) == 0
    shown = capsys.readouterr()
    assert "Privacy card" in shown.out
    assert "rows ->" in shown.err
    with output.open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["message", "intent"]
    assert {row["intent"] for row in rows} == {"weather", "music"}
    more = tmp_path / "more.csv"
    sketch = tmp_path / "synthetic-sketch.tacit"
    assert synthesize("--from", sketch, "-n", 50, "-o", more, "-q", "--pool", small_pool) == 0
    assert more.exists()


def test_labels_must_be_public_and_the_sentence_says_how(data, tmp_path, capsys):
    assert synthesize(data, "--label-column", "intent", "--epsilon", 1, "-o", tmp_path / "s.csv") == 2
    assert "--declare-labels-public" in capsys.readouterr().err


def test_the_other_way_has_its_own_help(capsys):
    assert synthesize("--by", "training", "--help") == 0
    assert "--from-model" in capsys.readouterr().out
    assert synthesize("--help") == 0
    shown = capsys.readouterr().out
    assert "--from " in shown
    assert "--by training" in shown
