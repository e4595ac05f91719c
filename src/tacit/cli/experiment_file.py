"""The file of an experiment, as several commands take it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tacit.jobs.config import Group, Option

ExperimentFile = Annotated[Path | None, Option(Group.DATA, metavar="FILE")]
