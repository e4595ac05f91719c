"""`tacit codebook`, end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tacit.cli.codebook import command as app
from tacit.documents import encoder
from tacit.documents.codebook_public import load_codebook
from tacit.errors import BadInputError, BadParameterError, TacitError
from tests.documents.test_codebook import WordEncoder, sentences


def run(*arguments: object) -> str:
    called = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert called.exit_code == 0, called.output
    return called.output


@pytest.fixture(autouse=True)
def _made_up_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "SentenceEncoder", lambda name, **_: WordEncoder(name=name))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "public.txt"
    path.write_text("\n".join(sentences()) + "\n", encoding="utf-8")
    return path


def test_build_and_show(text: Path, tmp_path: Path):
    folder = tmp_path / "book"
    shown = run("build", text, "-o", folder, "--public", "made-up sentences", "--license", "CC0", "--sizes", "4,64")
    assert "270 sentences" not in shown
    assert "similarity" in shown
    made = load_codebook(folder)
    assert made.sizes[-1] <= 64
    assert made.license == "CC0"
    table = run("show", folder)
    assert "made-up sentences" in table
    facts = json.loads(run("show", folder, "--json", "-e", "1", "-e", "9"))
    assert [row["epsilon"] for row in facts["expected"]] == [1.0, 9.0]
    first, last = facts["expected"]
    assert first["chance"] < first["similarity"] < last["similarity"] <= 1
    assert facts["digest"] == made.digest


def test_a_column_of_a_table(tmp_path: Path):
    path = tmp_path / "public.csv"
    path.write_text("id,question\n" + "".join(f"{i},{s}\n" for i, s in enumerate(sentences())), encoding="utf-8")
    with pytest.raises(BadInputError, match="columns=NAME"):
        run("build", path, "-o", tmp_path / "book", "--public", "x")
    run("build", path, "-o", tmp_path / "book", "--public", "x", "--column", "question", "-q")
    assert set(load_codebook(tmp_path / "book").sentences) <= set(sentences())


def test_text_must_be_declared_public(text: Path, tmp_path: Path):
    for declared in ((), ("--public", " ")):
        with pytest.raises(BadParameterError, match="must be public"):
            run("build", text, "-o", tmp_path / "book", *declared)
    assert not (tmp_path / "book").exists()


def test_nothing_is_overwritten_or_half_written(text: Path, tmp_path: Path):
    (tmp_path / "book").mkdir()
    with pytest.raises(BadInputError, match="exists already"):
        run("build", text, "-o", tmp_path / "book", "--public", "x")
    for wrong in (("--sizes", "many"), ("--sizes", "1")):
        with pytest.raises(BadParameterError):
            run("build", text, "-o", tmp_path / "other", "--public", "x", *wrong)
    with pytest.raises(TacitError):
        run("build", tmp_path / "missing.txt", "-o", tmp_path / "other", "--public", "x")
    assert not (tmp_path / "other").exists()


def test_show_default():
    shown = run("show")
    assert "Tatoeba" in shown
    assert "CC BY 2.0 FR" in shown


def test_show_something_else(tmp_path: Path):
    with pytest.raises(BadInputError, match="not a codebook"):
        run("show", tmp_path)
