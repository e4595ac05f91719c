"""The table of papers: complete, consistent, and the page is made from it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tacit.auditing.published.result import PublishedCost, Refutation
from tacit.literature import directions, find_papers, papers
from tacit.literature.papers import STATUSES, Paper, named, parts

ROOT = Path(__file__).resolve().parents[2]
PLACES = sorted({place for paper in papers() for place in paper.refutations})
COSTS = sorted({place for paper in papers() for place in paper.costs})
ROWS_OF_PART = {
    "pre-training": 5,
    "fine-tuning": 19,
    "selective": 2,
    "federated": 9,
    "vectors, plain": 12,
    "vectors, metric": 16,
    "named only": 14,
}
"""Rows of the survey's table, with Mattern et al. 2022 among the metric ones; and the systems that it only names."""


def test_all_77_rows_with_names_of_their_own() -> None:
    assert len(papers()) == 77
    for field in ("key", "cite", "title"):
        values = [getattr(paper, field) for paper in papers()]
        assert len(set(values)) == 77, field
    assert {part: sum(paper.part == part for paper in papers()) for part in parts()} == ROWS_OF_PART


@pytest.mark.parametrize("paper", papers(), ids=lambda paper: paper.key)
def test_a_row_says_everything(paper: Paper) -> None:
    assert paper.status in STATUSES
    assert set(paper.evidence) <= {"survey", "abstract", "code", "derivation"}
    assert paper.evidence
    for text in (paper.method, paper.authors, paper.title, paper.claims, paper.unit, paper.neighbors, paper.tacit):
        assert text.strip()
        assert not text.endswith(".")
    assert 2010 < paper.year < 2025
    assert (paper.status == "superseded") <= bool(paper.superseded_by), "by what, and why it does more"
    assert (paper.status == "refuted") <= bool(paper.refutations), "a refutation is code"
    assert (paper.status == "works") <= bool(paper.commands)
    for place in paper.classes:
        assert callable(named(place))


@pytest.mark.parametrize("place", PLACES)
def test_every_refutation_refutes(place: str) -> None:
    refutation = named(place)()
    assert isinstance(refutation, Refutation)
    assert 0 < refutation.claimed < refutation.spent
    assert refutation.refutes
    assert "claims epsilon" in str(refutation)


@pytest.mark.parametrize("place", COSTS)
def test_every_cost_is_a_number(place: str) -> None:
    cost = named(place)()
    assert isinstance(cost, PublishedCost)
    assert cost.value > 0
    assert f"{cost.value:,.4g}" in str(cost)


@pytest.mark.parametrize(
    ("question", "keys"),
    [
        ("Yue et al. 2021", ["yue-2021"]),
        ("yue et al. (2021)", ["yue-2021"]),
        ("Xu et al. 2021c", ["xu-2021b"]),
        ("Lee & Søgaard 2023", ["lee-2023"]),
        ("Carvalho 2021", ["carvalho-2021b", "carvalho-2021a"]),
        ("SanText+", ["yue-2021"]),
        ("DP-Forward", ["du-2023b"]),
        ("submix", ["ginart-2022"]),
        ("nobody 1999", []),
        ("", []),
    ],
)
def test_a_paper_is_found_by_citation_method_and_words(question: str, keys: list[str]) -> None:
    assert [paper.key for paper in find_papers(question)] == keys


def test_every_paper_is_found_by_its_citation_alone() -> None:
    for paper in papers():
        for cite in (paper.cite, paper.key, *paper.also):
            assert paper in find_papers(cite)
        assert find_papers(paper.cite) == (paper,)


def test_the_page_is_what_the_table_says() -> None:
    place = importlib.util.spec_from_file_location("literature_page", ROOT / ".ci" / "literature_page.py")
    assert place is not None
    assert place.loader is not None
    program = importlib.util.module_from_spec(place)
    sys.modules["literature_page"] = program
    place.loader.exec_module(program)
    text = program.page()
    assert program.PAGE.read_text(encoding="utf-8") == text, "run 'python .ci/literature_page.py' and commit the page"
    assert all(paper.tacit in text for paper in papers())
    assert all(row.tacit in text for row in directions())
