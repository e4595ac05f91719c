"""Options of commands that only say how a result is shown."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tacit.jobs.config import Config, Group, Option

AsJson = Annotated[bool, Field(description="Print one JSON object instead of tables."), Option(Group.RUN, name="json")]


class Printing(Config):
    """Whether a command prints for people or for programs."""

    job: ClassVar[str] = "printing"

    as_json: AsJson = False
