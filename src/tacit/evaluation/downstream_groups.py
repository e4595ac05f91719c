"""Scores by group of learners that were trained on releases, beside the same learner trained on the originals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tacit.evaluation.downstream import Arm, DownstreamResult
from tacit.evaluation.groups import Answers, wanted_groups
from tacit.evaluation.learners import Task
from tacit.evaluation.releases import ComparedRows, Splits
from tacit.report import Section
from tacit.text.files import check_column

SCORED_AS: Final[Mapping[Task, str]] = {
    "classification": "classify",
    "pairs": "classify",
    "tagging": "tag",
    "similarity": "regress",
}


def sections_by_group(
    comparison: ComparedRows, splits: Splits, downstream: DownstreamResult, group_column: str | None, *, by_class: bool
) -> list[Section]:
    """A section for each release and each way to group the test rows; the learner of the originals is the one without
    privacy."""
    rows = comparison.original if comparison.test is None else comparison.test

    def read(column: str) -> Sequence[str]:
        check_column(column, list(rows.others))
        return [rows.others[column][place] for place in splits.tested]

    wanted = wanted_groups(read, group_column, by_class=by_class)
    if not wanted:
        return []
    task = SCORED_AS[downstream.task]
    ceiling = _answers("originals", downstream.ceiling)
    truth = _lines(downstream.ceiling.truth)
    sections = []
    for arm in downstream.on_originals:
        for section in wanted.sections(task, truth, _answers(arm.name, arm), ceiling):
            title = section.title if len(downstream.on_originals) == 1 else f"{section.title}: {arm.name}"
            sections.append(replace(section, title=title))
    return sections


def _answers(name: str, arm: Arm) -> Answers:
    return Answers(name, [_lines(run) for run in arm.runs])


def _lines(labels: Sequence[object]) -> list[str]:
    """Labels as cells have them: tags of a text with spaces between them."""
    return [" ".join(map(str, label)) if isinstance(label, list | tuple) else str(label) for label in labels]
