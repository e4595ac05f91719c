"""What commands that end in a report share: progress while they work, and the report as file, as JSON or shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from tacit.report import Report

Told = Callable[[str, int, int], None]
"""(what is being done, so much, of so much)"""

Update = Callable[[int, int], None]


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
