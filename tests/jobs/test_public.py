"""`tacit.audit` and `tacit.evaluate` are functions, whatever was imported before."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tacit


@pytest.mark.parametrize("name", ["audit", "evaluate"])
def test_the_rooms_do_not_hide_the_functions(name: str) -> None:
    code = f"import tacit, tacit.auditing.claims, tacit.evaluation.scores; assert callable(tacit.{name})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(ImportError):
        __import__(f"tacit.{name}")


def test_what_is_given_decides() -> None:
    assert tacit.audit(matrix=[[0.75, 0.25], [0.25, 0.75]], epsilon=1).refuted
    report = tacit.evaluate(["good film", "bad film"], ["good movie", "bad movie"], metrics="kept-words")
    assert report.title == "How useful the released texts are"
