"""The results in docs/results are those of the experiment files as they are now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.errors import BadInputError
from tacit.experiments.config import DATA_VARIABLE, data_folders, load
from tacit.experiments.findings import judge_all, load_findings
from tacit.experiments.pages import results_pages
from tacit.experiments.plan import Plan, make_plan
from tacit.experiments.results import Results
from tacit.experiments.tables import published_tables, wide_tables

ROOT = Path(__file__).parent.parent.parent
FILES = sorted((ROOT / "docs" / "results").glob("*.json"))


def plan_now(result: Results, name: str) -> Plan:
    """The plan of an experiment, or a skipped test where its data is absent: the content of the data is part of it."""
    file = ROOT / "experiments" / f"{name}.toml"
    try:
        return make_plan(load(file, result.size), result.size, data_folders(file), test_seed=result.test_seed)
    except BadInputError as error:
        if DATA_VARIABLE in str(error):
            pytest.skip(f"the data is absent: {error}")
        raise


def test_there_are_committed_results():
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_committed_results_are_those_of_the_experiment_file(file: Path):
    result = Results.from_json(file.read_text(encoding="utf-8"), file.name)
    again = f"tacit experiment run experiments/{file.stem}.toml --size {result.size}"
    assert result.digest == plan_now(result, file.stem).digest, f"{file.name} is of another configuration: {again}"


VERDICTS_OF = json.loads((Path(__file__).parent / "verdicts.json").read_text(encoding="utf-8"))
"""Statement, verdict, side on which the means are, and what was measured, of each committed result."""
PLANS = json.loads((Path(__file__).parent / "plans.json").read_text(encoding="utf-8"))
"""The digest of each plan, which changes with the name, the axes and the key of any cell, and how many cells it has."""


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_functions_come_to_the_committed_verdicts(file: Path):
    results = Results.from_json(file.read_text(encoding="utf-8"), file.name)
    verdicts = judge_all(load_findings(ROOT / "experiments" / f"{file.stem}.toml"), results)
    assert verdicts == results.verdicts
    assert [[v.statement, v.word.value, v.leaning, v.detail] for v in verdicts] == VERDICTS_OF[file.stem]


@pytest.mark.parametrize("name", PLANS)
def test_the_cells_of_the_experiments_and_their_keys_are_those_of_before(name: str):
    stem, size = name.split()
    file = ROOT / "experiments" / f"{stem}.toml"
    try:
        plan = make_plan(load(file, size), size, data_folders(file))
    except BadInputError as error:
        pytest.skip(f"the data is absent: {error}")
    assert {"digest": plan.digest, "cells": len(plan.steps)} == PLANS[name]


# The pages --------------------------------------------------------------------------------------------------------

PAGE = ROOT / "docs" / "results.md"
VERDICTS = ("agree", "disagree", "undecided", "not testable", "holds", "does not hold")


@pytest.fixture(scope="module")
def committed() -> list[Results]:
    return [Results.from_json(file.read_text(encoding="utf-8"), file.name) for file in FILES]


def test_c8_committed_pages_are_those_of_the_committed_results(committed: list[Results]):
    names = " ".join(f"docs/results/{file.name}" for file in FILES)
    command = f"tacit experiment summary {names} -o docs/results.md --force"
    pages = results_pages(committed, command, PAGE)
    assert sorted(PAGE.with_suffix("").glob("*.md")) == sorted(list(pages)[1:])
    for page, text in pages.items():
        assert page.read_text(encoding="utf-8") == text, f"{page.name} is of other results: {command}"


def test_c8_no_verdict_and_no_table_is_lost_by_the_split(committed: list[Results]):
    for results in committed:
        lines = (PAGE.with_suffix("") / f"{results.about.name}.md").read_text(encoding="utf-8").splitlines()
        verdicts = results.verdicts
        assert sum(line.startswith(tuple(f"| {word} |" for word in VERDICTS)) for line in lines) == len(verdicts)
        for verdict in verdicts:
            assert any(verdict.statement in line and verdict.source in line for line in lines)
        kinds = len({verdict.ours for verdict in verdicts})
        tables = [*wide_tables(results), *published_tables(results)]
        assert sum(line.startswith("|---") for line in lines) == kinds + len(tables)
        assert {f"## {table.title}" for table in tables} <= set(lines)


def test_c8_the_page_that_sums_up_is_one_page(committed: list[Results]):
    text = PAGE.read_text(encoding="utf-8")
    assert len(text.split()) < 2000
    for results in committed:
        assert f"](results/{results.about.name}.md)" in text
        for verdict in results.verdicts:
            assert (verdict.statement in text) == (verdict.word == "disagree")
