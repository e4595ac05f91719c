"""`tacit guide` asks only what is open, prints one command, and `--recommend` runs nothing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tacit.cli import guide
from tacit.cli.command_line import command_line
from tacit.cli.main import app
from tacit.errors import TacitError
from tacit.jobs.pool import PoolConfig
from tacit.jobs.synthesize_config import MatchingConfig
from tests.jobs.guide.combinations import write_files

ANSWERS = ["--protect", "text", "--seen-by", "curator", "--purpose", "share"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, rows=700)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def called(*words: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(app, words, input=typed, catch_exceptions=False)


def test_with_all_answers_nothing_is_asked(folder: Path) -> None:
    shown = called("guide", "my tickets.csv", *ANSWERS)
    assert shown.exit_code == 0
    assert shown.stdout.startswith(
        "tacit synthesize 'my tickets.csv' --column message --label-column topic --declare-labels-public --epsilon 1 "
        "-o synthetic.csv\n"
    )
    assert "What it does not cover" in shown.stdout


def test_without_a_terminal_open_questions_are_an_error_that_names_their_options(folder: Path) -> None:
    with pytest.raises(TacitError) as raised:
        called("guide", "my tickets.csv")
    assert raised.value.code == "unanswered-question"


def test_on_a_terminal_at_most_five_things_are_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guide, "is_interactive", lambda: True)
    shown = called("guide", "--json", typed="person\ncurator\nshare\n3000 x\n3000 10\n\n")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stderr.count("?") == 5 + 1  # one answer was no number, so it was asked for again
    assert json.loads(shown.stdout)["rows"] == 300
    shown = called("guide", "my tickets.csv", *ANSWERS, "--json", typed="\n\n")
    assert shown.stderr.count("?") == 2
    assert json.loads(shown.stdout)["rows"] == 700


def test_json_holds_the_command_and_the_promise(folder: Path) -> None:
    shown = called("guide", "my tickets.csv", *ANSWERS, "--public-text", "faq.csv", "--json")
    advice = json.loads(shown.stdout)
    build, draw = (shlex.split(line) for line in advice["commands"])
    assert build[:4] == ["tacit", "pool", "build", "faq.csv"]
    assert build[build.index("--column") + 1] == "question"
    assert draw[-6:] == ["--pool", "requests", "--pool", "public-pool.tacit", "-o", "synthetic.csv"]
    assert (advice["unit"], advice["epsilon"], advice["model"]) == ("record", 1.0, "central")


@pytest.mark.parametrize(
    ("words", "job"),
    [
        (["synthesize", "my tickets.csv"], "tacit synthesize"),
        (["synthesize", "my tickets.csv", "--user-column", "customer", "--topics", "8"], "tacit synthesize"),
        (["rewrite", "my tickets.csv", "--diff"], "tacit rewrite"),
        (["rewrite", "my tickets.csv", "-m", "custext", "-e", "1"], "tacit rewrite"),
        (["train", "classify", "my tickets.csv"], "tacit train classify"),
    ],
)
def test_recommend_runs_nothing(folder: Path, words: list[str], job: str) -> None:
    before = sorted(folder.iterdir())
    shown = called(*words, "--recommend")
    assert shown.exit_code == 0
    assert job in shown.stdout
    assert sorted(folder.iterdir()) == before


def test_recommend_keeps_what_the_command_says(folder: Path) -> None:
    shown = called("synthesize", "my tickets.csv", "--user-column", "customer", "-e", "0.5", "--labels", "a,b",
                    "--recommend")  # fmt: skip
    assert "--labels a,b --user-column customer --epsilon 0.5" in " ".join(shown.stdout.split())


def test_a_command_line_quotes_what_a_shell_would_split() -> None:
    pool = PoolConfig(public_files=("a b.csv", "c.csv"), public="our FAQ", split_sentences=True)
    assert command_line(pool) == "tacit pool build 'a b.csv' c.csv --public 'our FAQ' --split-sentences -o pool.tacit"
    drawn = MatchingConfig(from_sketch=Path("s.tacit"), rows=5)
    assert command_line(drawn) == "tacit synthesize --from s.tacit --rows 5 -o synthetic.csv"
