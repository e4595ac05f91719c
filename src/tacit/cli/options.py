"""Options of commands that only say how a result is shown."""

from __future__ import annotations

from typing import ClassVar

from tacit.jobs.config import Config
from tacit.jobs.fields import AsJson


class Printing(Config):
    """Whether a command prints for people or for programs."""

    job: ClassVar[str] = "printing"

    as_json: AsJson = False
