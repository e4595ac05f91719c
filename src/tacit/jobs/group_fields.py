"""The options of scores by group, which several jobs share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tacit.jobs.config import Group, Option

GroupColumn = Annotated[
    str | None,
    Field(
        description="A column of the test rows that says which group a row belongs to, such as a dialect: scores by "
        "group with intervals, and the largest gap. It must not be private."
    ),
    Option(Group.MEASURES, private=True),
]
ByClass = Annotated[
    bool,
    Field(description="Take classes as groups too: rare ones are often served worse."),
    Option(Group.MEASURES, private=True),
]
