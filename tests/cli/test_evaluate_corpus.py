"""`tacit evaluate corpus` as a user types it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tacit.cli.main import run
from tests.evaluation.test_corpus_learning import rows


def written(path: Path, count: int, seed: int) -> str:
    part = rows(count, seed)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "topic"])
        table.writerows(zip(part.texts, part.labels, strict=True))
    return str(path)


def test_a_corpus_is_judged_from_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original, synthetic = written(tmp_path / "o.csv", 120, 1), written(tmp_path / "s.csv", 120, 2)
    test = written(tmp_path / "t.csv", 60, 3)
    code = run(
        ["evaluate", "corpus", original, synthetic, "-l", "topic", "--test", test, "--learners", "words", "--pool",
         "none", "--language-model", "none", "--json", "--quiet"]
    )  # fmt: skip
    assert code == 0
    report = json.loads(capsys.readouterr().out)
    assert report["private"] is True
    assert report["facts"]["test rows"] == 60


def test_the_help_of_both_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "--help"]) == 0
    assert "evaluate corpus" in capsys.readouterr().out
    assert run(["evaluate", "corpus", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Usage: tacit evaluate corpus" in shown
    assert "SYNTHETIC" in shown


def test_what_is_wrong_is_said_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original = written(tmp_path / "o.csv", 30, 1)
    assert run(["evaluate", "corpus", original, str(tmp_path / "nothing.csv"), "-l", "topic", "-q"]) == 2
    assert run(["evaluate", "corpus", original, original, "-l", "intent", "-q"]) == 2
    assert "intent" in capsys.readouterr().err
    assert run(["evaluate", "corpus", original, original, "-l", "topic", "--learners", "words,words", "-q"]) == 2
    assert "--learners" in capsys.readouterr().err
