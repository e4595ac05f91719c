"""Shared parts of the commands that end in a report: options, and the report as a file, as JSON or on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import click
from pydantic import Field

from tacit.cli.bars import Bars
from tacit.cli.rendering import show_report
from tacit.cli.terminal import output_console
from tacit.errors import BadParameterError
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import AsJson, Force, Quiet
from tacit.needs import PLOTS, Ability
from tacit.places import refuse_existing
from tacit.progress import WorkProgress
from tacit.report import Light, Report
from tacit.report.parts import REFUTED_EXIT_CODE

FailOn = Literal["bad", "warn"]
FAILING: dict[FailOn, frozenset[Light]] = {
    "bad": frozenset({Light.RED}),
    "warn": frozenset({Light.RED, Light.AMBER}),
}


Page = Annotated[
    Path | None, Field(description="Write one page with tables and plots. It quotes the texts."), Option(Group.RUN)
]


class ReportFiles(Config):
    """Where a report goes."""

    job: ClassVar[str] = "report files"

    html: Page = None
    json_file: Annotated[Path | None, Field(description="Write the report as JSON to a file."), Option(Group.RUN)] = (
        None
    )
    as_json: AsJson = False

    def needs(self) -> list[Ability]:
        return [PLOTS] if self.html is not None else []

    def check_files_for(self, *, force: bool) -> None:
        """Say before any work that a file cannot be written; with `force`, existing ones are replaced."""
        for path in (self.html, self.json_file):
            if path is not None:
                refuse_existing(path, force=force)
        if self.html is not None and self.html.suffix == ".json":
            raise BadParameterError(
                "not-a-page-name",
                "{option.html} writes a page: name it {better}, or use {option.json_file}",
                better=self.html.with_suffix(".html").name,
            )
        if self.json_file is not None and self.json_file.suffix != ".json":
            raise BadParameterError(
                "not-a-json-name",
                "a report for machines ends in .json: name it {better}",
                better=self.json_file.with_suffix(".json").name,
            )


class ReportOptions(ReportFiles):
    """How a command shows its report."""

    job: ClassVar[str] = "report"

    force: Force = False
    quiet: Annotated[Quiet, Field(description="No progress bar.")] = False

    def check_files(self) -> None:
        """Say before any work that a file cannot be written."""
        self.check_files_for(force=self.force)

    def show_job(self, job: Callable[[WorkProgress], Report]) -> None:
        """Do a job under progress bars and deliver its report; for files that cannot be written nothing is begun."""
        self.check_files()
        with Bars(shown=not self.quiet) as bars:
            report = job(bars.show)
        self.deliver(report)

    def deliver(self, report: Report) -> None:
        deliver(report, self.html, self.json_file, as_json=self.as_json, force=self.force)


class AuditReportOptions(ReportOptions):
    """How an audit shows its report, and which findings end it with exit code 3."""

    job: ClassVar[str] = "audit report"

    fail_on: Annotated[
        FailOn | None,
        Field(
            description="Exit with code 3 at a finding that is bad (red), or with 'warn' at one to look at (amber) as "
            "well. A refuted claim always does."
        ),
        Option(Group.RUN),
    ] = None

    def deliver(self, report: Report) -> None:
        deliver(report, self.html, self.json_file, as_json=self.as_json, force=self.force, fail_on=self.fail_on)


def deliver(
    report: Report,
    html: Path | None,
    json_file: Path | None,
    *,
    as_json: bool,
    force: bool,
    fail_on: FailOn | None = None,
) -> None:
    """Write the files that were asked for and say in a line each what was found; without files, show everything.

    Ends the command with exit code 3 for a refuted claim, and for findings that `fail_on` asks to fail on.
    """
    for path in (html, json_file):
        if path is not None:
            report.save(path, force=force)
            private = " (quotes the original text: readable by you only, keep it private)" if report.private else ""
            click.echo(f"report: {path}{private}", err=True)
    if as_json:
        click.echo(report.to_json(), nl=False)
    elif html is None and json_file is None:
        show_report(report, output_console())
    else:
        for finding in report.findings:
            click.echo(f"{finding.light.word}: {finding.name}: {finding.sentence}")
    failing = report.failing(FAILING[fail_on]) if fail_on is not None else []
    if failing:
        names = ", ".join(dict.fromkeys(finding.name for finding in failing))
        click.echo(
            f"FAILED (--fail-on {fail_on}): {len(failing):,} of {len(report.findings):,} findings: {names}", err=True
        )
    if report.exit_code or failing:
        raise click.exceptions.Exit(REFUTED_EXIT_CODE)
