"""The groups that options ask for, and the sections of a report about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tacit.evaluation.groups.grouping import RowGroups, groups_of_column, numbered
from tacit.evaluation.groups.report import group_sections
from tacit.evaluation.groups.scores import Answers, scores_by_class, scores_by_group
from tacit.report import Section

Reader = Callable[[str], Sequence[str]]
"""Reads a column of the test rows by its name."""


@dataclass(frozen=True)
class WantedGroups:
    """The groups of the rows by a column, whether classes are groups as well, and whose the rows are."""

    groups: RowGroups | None = None
    by_class: bool = False
    users: Sequence[str] | None = None

    def __bool__(self) -> bool:
        return self.groups is not None or self.by_class

    def sections(self, task: str, truth: Sequence[str], model: Answers, beside: Answers | None = None) -> list[Section]:
        """The sections on these predictions; `task` names what they are scored as."""
        reports = []
        if self.groups is not None:
            reports.append(scores_by_group(task, truth, model, self.groups, beside=beside))
        if self.by_class:
            reports.append(scores_by_class(task, truth, model, users=numbered(self.users), beside=beside))
        return group_sections(reports)


def wanted_groups(
    read: Reader, group_column: str | None, *, by_class: bool, user_column: str | None = None
) -> WantedGroups:
    """The groups that options ask for, read from the test rows."""
    users = None if user_column is None else read(user_column)
    groups = None if group_column is None else groups_of_column(group_column, read(group_column), users)
    return WantedGroups(groups, by_class, users)
