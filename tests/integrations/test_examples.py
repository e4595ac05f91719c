"""The fast programs in examples/ run from start to end and print what their pages say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


def run(name: str, *arguments: object, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "200"} | variables,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.usefixtures("default_table")
def test_rewrite(tmp_path: Path):
    printed = run("01_rewrite.py", tmp_path)
    assert "# Privacy card" in printed
    assert "common word in the output is the original" in printed
    assert (tmp_path / "private.csv.card.json").is_file()


@pytest.mark.usefixtures("default_table")
@pytest.mark.parametrize("data", ["there", "missing"])
def test_ledger(tmp_path: Path, data: str):
    """Its limit holds for real questions and for the made-up messages alike."""
    pytest.importorskip("tacit.cli.ledger")
    if data == "missing":
        printed = run("06_ledger.py", tmp_path, TACIT_DATA=str(tmp_path))
        assert "made-up messages" in printed
    else:
        printed = run("06_ledger.py", tmp_path)
    assert "\nanchor: " in printed
    assert (tmp_path / "first.csv").is_file()
    assert not (tmp_path / "second.csv").exists()


@pytest.mark.usefixtures("default_table")
def test_serve(tmp_path: Path):
    pytest.importorskip("fastapi", reason="fastapi is not installed: pip install 'tacit-dp[serve]'")
    pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'tacit-dp[serve]'")
    printed = run("07_serve.py", tmp_path)
    assert printed.count("received") == 2
    assert "multiplies the odds" in printed


@pytest.mark.usefixtures("default_table")
@pytest.mark.parametrize("library", ["pandas", "spacy", "presidio_anonymizer"])
def test_the_page_about_integrations_runs_as_it_stands(library, monkeypatch, capsys):
    pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (block,) = [
        candidate for candidate in blocks if re.search(rf"^(import|from) {library}\b", candidate, flags=re.MULTILINE)
    ]
    exec(compile(block, "docs/integrations.md", "exec"), {})
    assert "Privacy card" in capsys.readouterr().out


def test_the_pictures_of_the_documentation_are_there():
    """Each picture of the page is one that the program draws, and the other way round."""
    program = (ROOT / "examples" / "choosing_epsilon.py").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "choosing-epsilon.md").read_text(encoding="utf-8")
    drawn = [path.stem for path in (ROOT / "docs" / "images").glob("epsilon-*.svg")]
    assert len(drawn) == 5
    for name in drawn:
        assert f'"{name}": draw_' in program
        assert f"(images/{name}.svg)" in page
