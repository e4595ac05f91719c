"""Changed code is noticed: scores by themselves, raw results by a version that somebody has to raise.

After a change of what a step runs: raise the version in its KIND if it would write something else, then

    python -m tests.experiments.test_sources

A line of step_sources.json that changes without a new version says: it still writes the same files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tacit.experiments import sources
from tacit.experiments.sources import run_digest, scoring_digest
from tacit.experiments.steps import kinds

TABLE = Path(__file__).parent / "step_sources.json"
TREE_OF = sources._tree
PYTHON = (3, 11)  # other versions write the same tree in other words


def found() -> dict[str, str]:
    return {f"{kind.name} {kind.version}": run_digest(kind) for kind in kinds().values()}


@pytest.mark.skipif(sys.version_info[:2] != PYTHON, reason="the table is made with another version of Python")
@pytest.mark.parametrize("name", list(kinds()))
def test_what_a_step_runs_has_changed_only_with_its_version(name: str):
    place = f"{name} {kinds()[name].version}"
    said = "raise its version if it would write other files, then run: python -m tests.experiments.test_sources"
    known = json.loads(TABLE.read_text()).get(place)
    assert known is not None, f"'{place}' is not in step_sources.json: run python -m tests.experiments.test_sources"
    assert known == run_digest(kinds()[name]), f"what '{name}' runs has changed: {said}"


@pytest.fixture
def edited(monkeypatch: pytest.MonkeyPatch):
    """Lets a module say something else, without touching its file."""

    def edit(module: str, old: str, new: str) -> None:
        path = sources._file(module)
        assert path is not None
        text = path.read_text(encoding="utf-8")
        assert old in text
        tree = sources._parsed(text.replace(old, new))
        monkeypatch.setattr(sources, "_tree", lambda name: tree if name == module else TREE_OF(name))
        scoring_digest.cache_clear()

    yield edit
    scoring_digest.cache_clear()


STEPS = "tacit.experiments.steps"


def test_scores_see_the_code_that_derives_them(edited):
    before = scoring_digest("graph"), scoring_digest("accounting"), run_digest(kinds()["graph"])
    # graph takes its scores from train, and train from tacit.evaluation
    edited(f"{STEPS}.train", "[occurs] <= LOST", "[occurs] < LOST")
    assert scoring_digest("graph") != before[0]
    assert scoring_digest("accounting") == before[1]
    assert run_digest(kinds()["graph"]) == before[2]
    edited("tacit.evaluation.scores", "def bootstrap_interval(", "CHANGED = 1\n\n\ndef bootstrap_interval(")
    assert scoring_digest("graph") != before[0]
    edited(f"{STEPS}.train", "# ", "# a comment: ")
    assert scoring_digest("graph") == before[0]


def test_raw_results_see_what_is_run_and_not_how_it_is_scored(edited):
    before = run_digest(kinds()["statistics"])
    edited(f"{STEPS}.statistics", '"median of {name}"', '"middle of {name}"')
    assert run_digest(kinds()["statistics"]) == before
    edited(f"{STEPS}.statistics", 'folder / "words.jsonl"', 'folder / "other.jsonl"')
    assert run_digest(kinds()["statistics"]) != before


if __name__ == "__main__":
    TABLE.write_text(json.dumps(found(), indent=1) + "\n", encoding="utf-8")
