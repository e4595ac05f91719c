"""Numbers of a sketch on the terminal: what a ledger lists of it, and the promise of a merged one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.account.ledger import open_ledger
from tacit.cli.ledger_tables import show_everything
from tacit.cli.main import run


def test_a_release_is_listed_at_what_the_sum_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A sketch hides whether a record is there, and costs epsilon 1 for that; 2 is the cost of replacing one, which is
    the sum only beside releases that do not hide it."""
    rows, ledger = tmp_path / "rows.csv", str(tmp_path / "ledger.sqlite")
    rows.write_text("text,label\n" + "it rains in the garden,a\n" * 40)
    build = ["sketch", "build", str(rows), "-l", "label", "--labels", "a", "--delta", "1e-5", "-q"]
    for name in ("first", "second"):
        assert run([*build, "--epsilon", "1", "--ledger", ledger, "-o", str(tmp_path / f"{name}.tacit")]) == 0
    with open_ledger(ledger) as opened:
        spent, records = opened.datasets()["rows.csv"], opened.releases()
        assert spent.presence
        assert (spent.epsilon, [record.epsilon for record in records]) == (2.0, [2.0, 2.0])
        capsys.readouterr()
        show_everything(opened, None, 20)
    listed = [line.split() for line in capsys.readouterr().out.splitlines() if "committed" in line]
    assert ["1" in line and "2.0" not in line for line in listed] == [True, True]
    assert all("0.00001" in line or "1e-05" in line for line in listed), "delta is that of the release, too"


def test_a_merged_promise_is_rounded_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\n" + "it rains in the garden,a\n" * 40)
    parts = [str(tmp_path / "first.tacit"), str(tmp_path / "second.tacit")]
    for part in parts:
        command = ["sketch", "build", str(rows), "-l", "label", "--labels", "a", "--delta", "1e-5", "-q"]
        assert run([*command, "--epsilon", "1", "-o", part]) == 0
    capsys.readouterr()
    assert run(["sketch", "merge", *parts, "-o", str(tmp_path / "all.tacit"), "-q"]) == 0
    assert run(["sketch", "show", str(tmp_path / "all.tacit")]) == 0
    shown = capsys.readouterr()
    card = json.loads((tmp_path / "all.tacit.card.json").read_text())
    assert len(str(card["guarantee"]["epsilon"])) > 8, "the card keeps the exact number"
    assert str(card["guarantee"]["epsilon"]) not in shown.out + shown.err
