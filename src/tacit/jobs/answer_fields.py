"""The options of question answering that several jobs share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tacit.jobs.config import Group, Option
from tacit.jobs.sources import Source

ThresholdRows = Annotated[
    Source,
    Field(description="Public rows with answers, which choose the threshold for no answer."),
    Option(Group.DATA, metavar="FILE"),
]
