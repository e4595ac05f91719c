"""What commands that end in a report share: progress while they work, and the report as file, as JSON or shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, ClassVar

import typer
from pydantic import Field

from tacit.errors import BadParameterError
from tacit.jobs.config import Config, Group, Option
from tacit.report import Report
from tacit.report.parts import refuse_existing

Told = Callable[[str, int, int], None]
"""(what is being done, so much, of so much)"""

Update = Callable[[int, int], None]


class ReportOptions(Config):
    """How a command shows its report."""

    job: ClassVar[str] = "report"

    html: Annotated[
        Path | None, Field(description="Write one page with tables and plots. It quotes the texts."), Option(Group.RUN)
    ] = None
    json_file: Annotated[Path | None, Field(description="Write the report as JSON to a file."), Option(Group.RUN)] = (
        None
    )
    as_json: Annotated[
        bool, Field(description="Print one JSON object instead of tables."), Option(Group.RUN, name="json")
    ] = False
    force: Annotated[bool, Field(description="Replace existing report files."), Option(Group.RUN)] = False
    quiet: Annotated[bool, Field(description="No progress bar."), Option(Group.RUN)] = False

    def check_files(self) -> None:
        """Say before any work that a file cannot be written."""
        for path in (self.html, self.json_file):
            if path is not None:
                refuse_existing(path, force=self.force)
        if self.json_file is not None and self.json_file.suffix != ".json":
            raise BadParameterError(
                "not-a-json-name",
                "a report for machines ends in .json: name it {better}",
                better=self.json_file.with_suffix(".json").name,
            )

    def deliver(self, report: Report) -> None:
        deliver(report, self.html, self.json_file, as_json=self.as_json, force=self.force)


def deliver(report: Report, html: Path | None, json_file: Path | None, *, as_json: bool, force: bool) -> None:
    """Write the files that were asked for and say in a line each what was found; without files, show everything.

    Ends the command with the exit code of the report, 3 for a refuted claim.
    """
    from tacit.cli.terminal import output_console

    for path in (html, json_file):
        if path is not None:
            report.save(path, force=force)
            private = " (quotes the original text: keep it private)" if report.private else ""
            typer.echo(f"report: {path}{private}", err=True)
    if as_json:
        typer.echo(report.to_json(), nl=False)
    elif html is None and json_file is None:
        report.show(output_console())
    else:
        for finding in report.findings:
            typer.echo(f"{finding.light.word}: {finding.name}: {finding.sentence}")
    if report.exit_code:
        raise typer.Exit(report.exit_code)


@contextmanager
def progress_bars(*, shown: bool) -> Iterator[Told]:
    """A bar for what is being done, on a terminal; silent anywhere else."""
    from rich.progress import Progress, TaskID

    from tacit.cli.terminal import error_console

    console = error_console()
    if not (shown and console.is_terminal):
        yield lambda what, done, total: None
        return
    with Progress(console=console, transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def told(what: str, done: int, total: int) -> None:
            if what not in tasks:
                for task in tasks.values():
                    bar.update(task, visible=False)
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done, total=total, visible=True)

        yield told


def step_of(told: Told) -> Callable[[str], Update]:
    """The same, for work that names itself first and counts later."""
    return lambda what: lambda done, total: told(what, done, total)
