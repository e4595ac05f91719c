"""`tacit audit synthetic` as a user types it: exit code 0 for a right release, 3 for a planted mistake."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tacit.cli.main import run
from tests.auditing.test_synthetic_membership import private_rows

FEW = ["--releases", "30", "--corpora", "0", "--coins", "20", "--seed", "5", "-q"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("audit")
    rows = private_rows(90)
    with (folder / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["text", "kind"])
        table.writerows(zip(rows.texts, rows.labels, strict=True))
    data, sketch = str(folder / "rows.csv"), str(folder / "sketch.tacit")
    labels = ["-l", "kind", "--labels", "good,bad,other"]
    assert run(["sketch", "build", data, *labels, "-e", "1", "-o", sketch, "-q"]) == 0
    return data, sketch


def test_a_right_release_ends_with_0(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "synthetic", *files, "-l", "kind", *FEW, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["refuted"] is False
    assert len(report["sections"]) == 3


@pytest.mark.parametrize("mistake", ["means-without-noise", "counts-without-noise", "half-sensitivity"])
def test_a_planted_mistake_ends_with_3(files: tuple[str, str], mistake: str) -> None:
    assert run(["audit", "synthetic", *files, "-l", "kind", *FEW, "--planted", mistake, "--json"]) == 3


def test_what_is_missing_is_said(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", "synthetic", *files, *FEW]) == 2
    assert "--label-column" in capsys.readouterr().err
    assert run(["audit", "synthetic", files[0], str(tmp_path / "none.tacit"), "-l", "kind", *FEW]) == 2
    assert run(["audit", "synthetic", *files, "-l", "kind", "--corpora", "3"]) == 2
