"""`tacit run`: any job again, from a file of its options."""

from __future__ import annotations

import importlib
import os
from typing import Annotated, Any, ClassVar, Final

import click
from pydantic import Field

from tacit.cli.generated import SectionedCommand, command_for
from tacit.errors import BadInputError
from tacit.jobs.config import Config, Varied, read_mapping
from tacit.jobs.fields import File, Quiet
from tacit.jobs.registry import config_class, config_from

COMMAND_OF: Final = {
    "codebook": ("codebook", "build"),
    "vocabulary": ("vocabulary", "build"),
    "sketch": ("sketch", "build"),
    "pool": ("pool", "build"),
    "pool recipe": ("pool", "recipe", "build"),
    "experiment": ("experiment", "run"),
}
"""Jobs whose command is not called as they are."""

HELP = """Run a job again, from a file of its options.

The file is TOML or JSON: the name of the job, and its options by the names that they have in Python. A result gives
its own with `result.config.to_toml()`.

Example of such a file:

\b
    job = "rewrite"
    input = "reviews.csv"
    output = "private.csv"
    columns = ["text"]
    epsilon = 2.0
"""


class RunOptions(Config):
    """Which file is run, and what is shown."""

    job: ClassVar[str] = "run"

    file: Annotated[File, Field(description="A file of options (.toml or .json)."), Varied(metavar="CONFIG")]
    quiet: Quiet = False


def run(options: RunOptions) -> None:
    values = read_mapping(options.file)
    config = config_from({**values, **_from_environment(values)})
    command = command_of(config.job)
    others = [_with_quiet(other, options.quiet) for other in command.configs[1:]]
    command.begin([config, *others])


def command_of(job: str) -> SectionedCommand:
    """The command that does a job and shows what comes out."""
    words = COMMAND_OF.get(job, tuple(job.split()))
    command: Any = importlib.import_module(f"tacit.cli.{words[0]}").command
    for word in words[1:]:
        command = command.get_command(click.Context(command), word)
    if not isinstance(command, SectionedCommand):
        raise BadInputError("no-command-for-job", "'{job}' cannot be run from a file", job=job)
    return command


def _from_environment(values: dict[str, Any]) -> dict[str, Any]:
    """Options that the environment gives, as for the command of the job: what an operator set there, no file undoes."""
    if not isinstance(values.get("job"), str):
        return {}
    return {
        name: os.environ[option.variable]
        for name, _, option in config_class(values["job"]).declared_options()
        if option.variable is not None and os.environ.get(option.variable)
    }


def _with_quiet(config: type[Config], quiet: bool) -> Config:
    return config(quiet=quiet) if "quiet" in config.model_fields else config()


command: click.Command = command_for("run", [RunOptions], run, help=HELP)
