"""`tacit experiment`: run experiment files, resume them, look at what came out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar

import click
from pydantic import Field
from rich.live import Live
from rich.table import Table

from tacit.cli.experiment_file import ExperimentFile
from tacit.cli.generated import command_for, group_of
from tacit.cli.quiet import Quiet
from tacit.cli.rendering import show_report
from tacit.cli.terminal import error_console, output_console, readable_seconds
from tacit.errors import BadInputError, StoppedError
from tacit.experiments import job
from tacit.experiments.comparing import NamedResults, comparison_page
from tacit.experiments.config import SIZES, load
from tacit.experiments.data_sets import DataFolder
from tacit.experiments.declared import shown as axis_text
from tacit.experiments.execution import folder_of, is_finished
from tacit.experiments.findings import load_findings
from tacit.experiments.job import CACHE, RESULTS, Cache, ExperimentConfig, ReportConfig, ResumeConfig
from tacit.experiments.pages import results_pages
from tacit.experiments.plan import Plan
from tacit.experiments.report import comparison
from tacit.experiments.results import Results
from tacit.experiments.runner import Status, Watch
from tacit.experiments.tables import markdown_table, table_csv
from tacit.experiments.verdicts import summary as verdicts_in_words
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import DryRun, Folder, Force, Output
from tacit.needs import EXPERIMENTS, PLOTS, Ability
from tacit.places import refuse_existing
from tacit.report.parts import put


class RunShown(Quiet):
    """Whether an experiment runs, or is only checked."""

    job: ClassVar[str] = "experiment shown"

    dry_run: Annotated[
        DryRun, Field(description="Only check the file, and say what would run."), Varied(old_names=("check",))
    ] = False


RUN = """Run an experiment. What an earlier run finished is not run again, and no released text gets new noise.

Example: tacit experiment run experiments/santext.toml --size quick --workers 2
"""


def run(config: ExperimentConfig, shown: RunShown) -> None:
    plan = job.plan_of(config)
    if shown.dry_run:
        click.echo(_planned(plan, config.cache))
        return
    folder = job.folder_of_results(config, plan)
    _watched(lambda watch: job.run(config, watch, plan=plan), folder, quiet=shown.quiet)


def resume(config: ResumeConfig, shown: Quiet) -> None:
    _watched(lambda watch: job.resume(config, watch), config.folder, quiet=shown.quiet)


def _watched(begin: Callable[[Watch | None], job.ExperimentRun], folder: Path, *, quiet: bool) -> None:
    """Run with a live table, and say what came out."""
    try:
        with _live(shown=not quiet) as watch:
            finished = begin(watch)
    except KeyboardInterrupt:
        raise StoppedError(
            "experiment-stopped", "stopped; go on with: tacit experiment resume {folder}", folder=folder
        ) from None
    for label, reason in finished.failed.items():
        click.echo(f"failed: {label}: {reason}", err=True)
    _say(finished.results, folder)
    if finished.failed:
        raise click.exceptions.Exit(1)


LISTED_SIZES = ("quick", "medium", "full")


class ListOptions(Config):
    """A folder of experiments, and where finished cells are looked for."""

    job: ClassVar[str] = "experiment list"

    folder: Annotated[Folder, Field(description="A folder of experiment files."), Varied(metavar="[FOLDER]")] = Path(
        "experiments"
    )
    cache: Cache = CACHE
    data_folder: DataFolder = None

    def needs(self) -> list[Ability]:
        return [EXPERIMENTS]


def list_experiments(options: ListOptions) -> None:
    files = sorted(options.folder.glob("*.toml")) if options.folder.is_dir() else []
    if not files:
        raise BadInputError(
            "no-experiments",
            "there is no experiment file (*.toml) in '{folder}': name another folder",
            folder=options.folder,
        )
    table = Table()
    for column in ("file", "title", *LISTED_SIZES):
        table.add_column(column, overflow="fold")
    notes = []
    for file in files:
        try:
            own = load(file)
            states = [own.experiment.title]
        except BadInputError as error:
            notes.append(str(error))
            continue
        for size in LISTED_SIZES:
            if size not in (*SIZES, *own.sizes):
                states.append("none")
                continue
            try:
                done, total = job.finished_cells(file, size, options.data_folder, options.cache)
                states.append(f"{done} of {total} cells")
            except BadInputError as error:
                states.append("not ready")
                notes.append(f"{file.name}, {size}: {error}")
        table.add_row(file.name, *states)
    output_console().print(table)
    for note in notes:
        click.echo(note)


def report(config: ReportConfig) -> None:
    _say(job.report(config), config.folder)


ResultFiles = Annotated[
    tuple[Path, ...],
    Field(description="Result files, or folders of runs."),
    Option(Group.DATA, positional=True, metavar="RESULTS..."),
]


class CompareOptions(Config):
    """Results of one experiment, and a file for the comparison."""

    job: ClassVar[str] = "experiment compare"

    files: Annotated[ResultFiles, Field(min_length=2, description="Two or more results.json, or folders of runs.")]
    experiment: Annotated[
        ExperimentFile,
        Field(description="The experiment file: a page (.html) then draws a forest plot for each finding beside it."),
    ] = None
    output: Annotated[Output[Path | None], Field(description="Write a .html page, or a .csv or .md file instead.")] = (
        None
    )
    force: Force = False

    def needs(self) -> list[Ability]:
        drawn = self.experiment is not None and self.output is not None and self.output.suffix == ".html"
        return [EXPERIMENTS, *([PLOTS] if drawn else [])]


COMPARE = """Results of one experiment side by side: published numbers, findings, scores.

Example: tacit experiment compare docs/results/graphs_published.json build/experiments/graphs_published-medium
"""


def compare(options: CompareOptions) -> None:
    every = [NamedResults(name, job.read_results(file)) for name, file in _names_of(options.files).items()]
    scores = comparison([named.results for named in every], [named.name for named in every])
    if not scores.rows:
        raise BadInputError(
            "nothing-to-compare",
            "these results have no score to compare: give results of runs that have finished",
        )
    findings = () if options.experiment is None else load_findings(options.experiment)
    is_page = options.output is not None and options.output.suffix == ".html"
    page = comparison_page(every, findings if is_page else (), scores)
    if options.output is None:
        show_report(page, output_console())
        return
    refuse_existing(options.output, force=options.force)
    if is_page:
        put(options.output, page.to_html())
    elif options.output.suffix == ".md":
        tables = [table for section in page.sections for table in section.tables]
        put(options.output, "\n".join(line for table in tables for line in markdown_table(table)) + "\n")
    else:
        put(options.output, table_csv([scores]))


def _names_of(files: Sequence[Path]) -> dict[str, Path]:
    """A name for each result: that of its folder or file, with a number where several have the same."""
    names = [file.parent.name if file.name == RESULTS else file.stem for file in map(Path.absolute, files)]
    seen = [f"{name} ({names[: i + 1].count(name)})" if names.count(name) > 1 else name for i, name in enumerate(names)]
    return dict(zip(seen, files, strict=True))


class SummaryOptions(Config):
    """Results, and the page that sums them up."""

    job: ClassVar[str] = "experiment summary"

    files: Annotated[ResultFiles, Field(min_length=1)]
    output: Annotated[
        Output[Path], Field(description="The Markdown page that sums up; the others go to a folder beside it.")
    ]
    force: Force = False

    def needs(self) -> list[Ability]:
        return [EXPERIMENTS]


SUMMARY = """Pages with the verdicts and published tables of several experiments: one that sums up, and one for each.

Example: tacit experiment summary docs/results/*.json -o docs/results.md
writes docs/results.md and docs/results/NAME.md for each of them.
"""


def summary(options: SummaryOptions) -> None:
    output, force = options.output, options.force
    folder = output.with_suffix("")
    if folder == output or (folder.exists() and not folder.is_dir()):
        raise BadInputError(
            "page-named-like-its-folder",
            "the pages of the experiments go into the folder {folder}, but that is the name of a file: name the page "
            "that sums up otherwise, such as summary.md",
            folder=folder,
        )
    shown = " ".join(map(str, options.files))
    again = f"tacit experiment summary {shown} -o {output}{' --force' if force else ''}"
    pages = results_pages([job.read_results(file) for file in options.files], again, output)
    refuse_existing(output, force=force)
    folder.mkdir(exist_ok=True)
    for page in pages:
        refuse_existing(page, force=force)
    for page, text in pages.items():
        put(page, text)


# What is shown ----------------------------------------------------------------------------------------------------


def _planned(plan: Plan, cache: Path) -> str:
    lines = []
    for name in plan.names:
        cells = plan.named(name)
        done = sum(is_finished(folder_of(cache, step)) for step in cells)
        lines.append(f"{name} ({cells[0].kind}): {len(cells)} cells, {done} of them finished")
    return "\n".join(lines)


def _say(results: Results, folder: Path) -> None:
    missing = sum(not cell.finished for cell in results.cells)
    counted = f"{len(results.cells) - missing} of {len(results.cells)} cells have a result"
    verdicts = results.verdicts
    click.echo(f"{counted}{f'; {verdicts_in_words(verdicts)}' if verdicts else ''}.")
    click.echo(f"Page: {folder / 'report.html'}    Tables: {folder / 'tables.md'}    Scores: {folder / 'scores.csv'}")


@contextmanager
def _live(*, shown: bool) -> Iterator[Any]:
    """A table of the steps that is drawn anew while they run; nothing where there is no terminal."""
    console = error_console()
    if not shown or not console.is_terminal:
        yield None
        return
    started = time.monotonic()
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield lambda status: live.update(live_table(status, time.monotonic() - started))


def live_table(status: Status, seconds: float) -> Any:
    table = Table(title=status.plan.experiment.experiment.title, title_justify="left", expand=True)
    for column in ("step", "kind", "cells", "from cache", "done", "failed", "now"):
        table.add_column(column, justify="left" if column in ("step", "kind", "now") else "right")
    for name in status.plan.names:
        cells = {step.key: step for step in status.plan.named(name) if step.key in status.steps}
        if not cells:
            continue
        now = ", ".join(_now(status, key, step.axes) for key, step in cells.items() if key in status.running)
        groups = (status.cached, status.finished, status.failed)
        counts = [len(cells), *(sum(key in group for key in cells) for group in groups)]
        table.add_row(name, next(iter(cells.values())).kind, *map(str, counts), now)
    left = len(status.steps) - len(status.cached)
    done = len(status.finished)
    rest = f", about {readable_seconds(seconds / done * (left - done))} left" if done and left > done else ""
    table.caption = f"{done} of {left} cells in {readable_seconds(seconds)}{rest}"
    return table


def _now(status: Status, key: str, axes: Any) -> str:
    done, total = status.progress.get(key, (0, 0))
    share = f" {done / total:.0%}" if total else ""
    return f"{' '.join(axis_text(value) for value in axes.values())}{share}"


command = group_of(
    "experiment",
    [
        command_for("run", [ExperimentConfig, RunShown], run, help=RUN),
        command_for(
            "resume",
            [ResumeConfig, Quiet],
            resume,
            help="Go on with a run that was stopped or killed, with the configuration it was started with.",
        ),
        command_for(
            "list",
            [ListOptions],
            list_experiments,
            help="The experiments of a folder, and how much of each is finished.",
        ),
        command_for(
            "report", [ReportConfig], report, help="Write the tables and the page again, from what is in the cache."
        ),
        command_for("compare", [CompareOptions], compare, help=COMPARE),
        command_for("summary", [SummaryOptions], summary, help=SUMMARY),
    ],
    help="Experiments: mechanisms, epsilons, tasks and attackers in one file; published numbers beside ours.",
)
