"""The option that every command with a progress bar has."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tacit.jobs.config import Config, Group, Option


class Quiet(Config):
    """Whether a command shows anything but its result."""

    job: ClassVar[str] = "shown"

    quiet: Annotated[bool, Field(description="No progress bar and no summary."), Option(Group.RUN)] = False
