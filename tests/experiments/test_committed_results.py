"""The results in docs/results are those of the experiment files as they are now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.errors import BadInputError
from tacit.experiments.config import DATA_VARIABLE, data_folders, load
from tacit.experiments.plan import Plan, make_plan
from tacit.experiments.results import Results

ROOT = Path(__file__).parent.parent.parent
FILES = sorted((ROOT / "docs" / "results").glob("*.json"))


def plan_now(found: Results, name: str) -> Plan:
    """The plan of an experiment, or a skipped test where its data is absent: the content of the data is part of it."""
    file = ROOT / "experiments" / f"{name}.toml"
    try:
        return make_plan(load(file, found.size), found.size, data_folders(file), test_seed=found.test_seed)
    except BadInputError as error:
        if DATA_VARIABLE in str(error):
            pytest.skip(f"the data is absent: {error}")
        raise


def test_there_are_committed_results():
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_committed_results_are_those_of_the_experiment_file(file: Path):
    found = Results.from_json(file.read_text(encoding="utf-8"), file.name)
    again = f"tacit experiment run experiments/{file.stem}.toml --size {found.size}"
    assert found.digest == plan_now(found, file.stem).digest, f"{file.name} is of another configuration: {again}"
