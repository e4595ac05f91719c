"""The option that every command with a progress bar has."""

from __future__ import annotations

from typing import ClassVar

from tacit.jobs.config import Config
from tacit.jobs.fields import Quiet as QuietOption


class Quiet(Config):
    """Whether a command shows anything but its result."""

    job: ClassVar[str] = "shown"

    quiet: QuietOption = False
