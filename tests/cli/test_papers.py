"""`tacit mechanisms --paper`: every paper of the table is found, with numbers that are computed."""

from __future__ import annotations

import json

import pytest

from tacit.cli.main import run
from tacit.literature import papers


def test_a_paper_with_its_mechanisms_commands_and_numbers(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["mechanisms", "--paper", "Yue et al. 2021"]) == 0
    out = " ".join(capfd.readouterr().out.split())
    for part in ("SanText, SanText+ (works)", "tacit rewrite letters.csv --mechanism santext", "santext+: SanText+",
                 "claims epsilon 8 and spends infinitely much"):  # fmt: skip
        assert part in out


def test_json_of_a_refuted_paper(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["mechanisms", "--paper", "ADePT", "--json"]) == 0
    said = json.loads(capfd.readouterr().out)
    assert [paper["key"] for paper in said["papers"]] == ["krishna-2021"]
    assert "claims epsilon 10 and spends 320" in said["papers"][0]["measured"][0]
    assert "adept" in said["mechanisms"]


def test_every_paper_is_found(capfd: pytest.CaptureFixture[str]) -> None:
    for paper in papers():
        if not (paper.refutations or paper.costs):  # those take a second, and the table's own test computes them
            assert run(["mechanisms", "--paper", paper.cite]) == 0
            assert paper.method in " ".join(capfd.readouterr().out.split())


def test_papers_of_mechanisms_that_the_survey_does_not_know(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["mechanisms", "--paper", "Meisenbacher et al. 2024"]) == 0
    assert "dp-mlm" in capfd.readouterr().out


def test_a_paper_that_is_not_there(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["mechanisms", "--paper", "Yu et al. 2032"]) == 2
    assert "did you mean 'Yu et al. 2022'?" in capfd.readouterr().err
