"""`tacit experiment`: run experiment files, resume them, look at what came out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.errors import BadInputError, StoppedError, require

if TYPE_CHECKING:
    from tacit.experiments.plan import Plan
    from tacit.experiments.results import Results
    from tacit.experiments.runner import Status
    from tacit.experiments.started import Settings

BUILD = Path("build/experiments")
CACHE = BUILD / "cache"

app = typer.Typer(
    help="Experiments: mechanisms, epsilons, tasks and attackers in one file; published numbers beside ours.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Workers = Annotated[int, typer.Option(help="Processes that work at the same time, one thread each.")]
Cache = Annotated[Path, typer.Option(help="Where finished steps are kept. It holds the data: keep it private.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No live table.")]
DataAgain = Annotated[Path | None, typer.Option(help="Folder of the data sets; default: the one of the run.")]
ForceChanged = Annotated[
    bool, typer.Option("--force", help="Even if data, code or cache have changed since the run: replace its results.")
]


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The experiment.")],
    size: Annotated[str, typer.Option(help="quick (minutes) or full (the paper's own models and data).")] = "quick",
    workers: Workers = 2,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="STEP", help="Run this step and what it needs; repeatable.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder of the results; default build/experiments/NAME-SIZE.")
    ] = None,
    cache: Cache = CACHE,
    data: Annotated[Path | None, typer.Option(help="Folder of the data sets; default: TACIT_DATA, or ./data.")] = None,
    test_seed: Annotated[
        int | None, typer.Option(help="Repeatable noise for tests. Everybody can undo it: the cards promise nothing.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only check the file, and say what would run.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the results of another configuration.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment. What an earlier run finished is not run again, and no released text gets new noise.

    Example: tacit experiment run experiments/santext.toml --size quick --workers 2
    """
    _needs()
    from tacit.experiments.config import data_folders, load
    from tacit.experiments.started import COPY, Settings, write_settings
    from tacit.experiments.validation import validate
    from tacit.report.parts import put

    plan = _plan(file, load(file, size), size, data, test_seed)
    if only is not None:
        _check_only(plan, only)
    target = output or BUILD / f"{plan.experiment.experiment.name}-{size}"
    validate(plan)
    if check:
        typer.echo(_planned(plan, cache))
        return
    _refuse_others(target, plan, force=force)
    target.mkdir(parents=True, exist_ok=True)
    put(target / COPY, file.read_text(encoding="utf-8"))
    # With the data folder of now: another shell that resumes this run may have another TACIT_DATA.
    settings = Settings(file=str(file.absolute()), size=size, test_seed=test_seed, cache=str(cache.absolute()),
                        data=str(data_folders(file, data)[-1].absolute()), only=only)  # fmt: skip
    write_settings(target, settings.of_plan(plan))
    _run(plan, target, cache, workers, only, quiet)


@app.command()
def resume(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the results of a run.")],
    workers: Workers = 2,
    data: DataAgain = None,
    force: ForceChanged = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a run that was stopped or killed, with the configuration it was started with."""
    _needs()
    from tacit.experiments.started import write_settings
    from tacit.experiments.validation import validate

    plan, settings = _started(folder, data, force=force)
    validate(plan)
    write_settings(folder, settings)
    _run(plan, folder, Path(settings.cache), workers, settings.only, quiet)


@app.command("list")
def list_experiments(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder of experiment files.")] = Path(
        "experiments"
    ),
    cache: Cache = CACHE,
    data: Annotated[Path | None, typer.Option(help="Folder of the data sets.")] = None,
) -> None:
    """The experiments of a folder, and how much of each is finished."""
    _needs()
    from rich.table import Table

    from tacit.cli.terminal import output_console
    from tacit.experiments.config import SIZES, load

    files = sorted(folder.glob("*.toml")) if folder.is_dir() else []
    if not files:
        raise BadInputError(f"there is no experiment file (*.toml) in '{folder}': name another folder")
    table = Table()
    for column in ("file", "title", *SIZES):
        table.add_column(column, overflow="fold")
    notes = []
    for file in files:
        try:
            states = [load(file).experiment.title]
        except BadInputError as error:
            notes.append(str(error))
            continue
        for size in SIZES:
            try:
                states.append(_state(file, size, data, cache))
            except BadInputError as error:
                states.append("not ready")
                notes.append(f"{file.name}, {size}: {error}")
        table.add_row(file.name, *states)
    output_console().print(table)
    for note in notes:
        typer.echo(note)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the results of a run.")],
    rescore: Annotated[bool, typer.Option("--rescore", help="Derive all scores again from the raw files.")] = False,
    data: DataAgain = None,
    force: ForceChanged = False,
) -> None:
    """Write the tables and the page again, from what is in the cache."""
    _needs()
    from tacit.experiments.started import write_settings

    plan, settings = _started(folder, data, force=force)
    write_settings(folder, settings)
    cache = Path(settings.cache)
    if rescore:
        from tacit.experiments.runner import folder_of, is_finished
        from tacit.experiments.runner import rescore as derive

        for step in {step.key: step for step in plan.steps if is_finished(folder_of(cache, step))}.values():
            derive(step, cache)
    _show(_write(plan, folder, cache), folder)


@app.command()
def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="A results.json, or the folder of a run.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write a .csv or .md file instead.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Two result files side by side, cell by cell."""
    _needs()
    from tacit.experiments.report import comparison
    from tacit.experiments.tables import markdown_table, table_csv
    from tacit.report import Report, Section
    from tacit.report.parts import put, refuse_existing

    names = (
        first.stem if first.stem != second.stem else str(first),
        second.stem if first.stem != second.stem else str(second),
    )
    table = comparison(_results(first), _results(second), names)
    if not table.rows:
        raise BadInputError("the two results have no score to compare: give results of runs that have finished")
    if output is None:
        from tacit.cli.terminal import output_console

        Report("Comparison", [Section("Comparison", tables=[table])]).show(output_console())
        return
    refuse_existing(output, force=force)
    put(output, "\n".join(markdown_table(table)) + "\n" if output.suffix == ".md" else table_csv([table]))


@app.command()
def summary(
    files: Annotated[list[Path], typer.Argument(metavar="RESULTS...", help="Result files, or folders of runs.")],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="The Markdown page that sums up; the others go to a folder beside it."),
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace existing pages.")] = False,
) -> None:
    """Pages with the verdicts and published tables of several experiments: one that sums up, and one for each.

    Example: tacit experiment summary docs/results/*.json -o docs/results.md
    writes docs/results.md and docs/results/NAME.md for each of them.
    """
    _needs()
    from tacit.experiments.pages import results_pages
    from tacit.report.parts import put, refuse_existing

    folder = output.with_suffix("")
    if folder == output or (folder.exists() and not folder.is_dir()):
        raise BadInputError(
            f"the pages of the experiments go into the folder {folder}, but that is the name of a file: name the page "
            "that sums up otherwise, such as summary.md"
        )
    shown = " ".join(map(str, files))
    command = f"tacit experiment summary {shown} -o {output}{' --force' if force else ''}"
    pages = results_pages([_results(file) for file in files], command, output)
    refuse_existing(output, force=force)
    folder.mkdir(exist_ok=True)
    for page in pages:
        refuse_existing(page, force=force)
    for page, text in pages.items():
        put(page, text)


# Parts ------------------------------------------------------------------------------------------------------------


def _needs() -> None:
    require("pydantic", extra="experiments", purpose="running experiments")


def _plan(file: Path, experiment: Any, size: str, data: Path | None, test_seed: int | None) -> Plan:
    from tacit.experiments.config import data_folders
    from tacit.experiments.plan import make_plan

    return make_plan(experiment, size, data_folders(file, data), test_seed=test_seed)


def _check_only(plan: Plan, only: list[str]) -> None:
    names = list(plan.experiment.steps)
    for name in only:
        if name not in names:
            raise BadInputError(
                f"--only names the step '{name}', which does not exist: the steps are {', '.join(names)}"
            )


def _started(folder: Path, data: Path | None, *, force: bool) -> tuple[Plan, Settings]:
    """The plan of a run as it was started, unless it would be another one now; and the settings to go on with."""
    from tacit.experiments.config import load
    from tacit.experiments.started import COPY, read_settings, refuse_changed, refuse_lost

    settings = read_settings(folder)
    if data is not None:
        settings = settings.model_copy(update={"data": str(data.absolute())})
    experiment = load(folder / COPY, settings.size)
    # Data that was moved since is looked for where a new run would look: its content counts, not its place.
    place = Path(settings.data) if settings.data is not None and Path(settings.data).is_dir() else data
    plan = _plan(Path(settings.file), experiment, settings.size, place, settings.test_seed)
    if not force:
        known = _known_results(folder)
        refuse_changed(folder, settings, plan, known)
        refuse_lost(folder, plan, Path(settings.cache), known)
    return plan, settings.of_plan(plan)


def _known_results(folder: Path) -> Results | None:
    """The results in a folder; a file that nobody can read is nothing to lose."""
    try:
        return _results(folder)
    except BadInputError:
        return None


def _refuse_others(folder: Path, plan: Plan, *, force: bool) -> None:
    """Results of the same configuration are made again; those of another one are not replaced silently."""
    if not (folder / "results.json").is_file() or force:
        return
    if _results(folder).digest != plan.digest:
        raise BadInputError(
            f"'{folder}' holds the results of another configuration: give another --output, or --force to replace them"
        )


def _results(path: Path) -> Results:
    from tacit.experiments.results import Results

    file = path / "results.json" if path.is_dir() else path
    try:
        return Results.from_json(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError):
        raise BadInputError(f"'{file}' cannot be read: give a results.json, or the folder of a finished run") from None


def _state(file: Path, size: str, data: Path | None, cache: Path) -> str:
    from tacit.experiments.config import load
    from tacit.experiments.runner import folder_of, is_finished

    plan = _plan(file, load(file, size), size, data, None)
    cells = {step.key: step for step in plan.steps}
    done = sum(is_finished(folder_of(cache, step)) for step in cells.values())
    return f"{done} of {len(cells)} cells"


def _planned(plan: Plan, cache: Path) -> str:
    from tacit.experiments.runner import folder_of, is_finished

    lines = []
    for name in plan.names:
        cells = plan.named(name)
        done = sum(is_finished(folder_of(cache, step)) for step in cells)
        lines.append(f"{name} ({cells[0].kind}): {len(cells)} cells, {done} of them finished")
    return "\n".join(lines)


def _run(plan: Plan, folder: Path, cache: Path, workers: int, only: list[str] | None, quiet: bool) -> None:
    from tacit.experiments.runner import run_plan

    try:
        with _live(shown=not quiet) as watch:
            status = run_plan(plan, cache, workers=workers, only=None if only is None else set(only), watch=watch)
    except KeyboardInterrupt:
        raise StoppedError(f"stopped; go on with: tacit experiment resume {folder}") from None
    for key, reason in status.failed.items():
        typer.echo(f"failed: {status.steps[key].label}: {reason}", err=True)
    _show(_write(plan, folder, cache), folder)
    if status.failed:
        raise typer.Exit(1)


def _write(plan: Plan, folder: Path, cache: Path) -> Results:
    from tacit.experiments.report import cost_table, page, timing_tables, write_files
    from tacit.experiments.results import collect, costs
    from tacit.experiments.tables import table_csv
    from tacit.report.parts import put

    results = collect(plan, cache)
    write_files(results, folder)
    spent = cost_table(costs(plan, cache), plan.experiment.experiment.watts)
    put(folder / "costs.csv", table_csv([spent, *timing_tables(plan, cache)]))
    put(folder / "report.html", page(plan, results, cache).to_html(), private=True)
    return results


def _show(results: Results, folder: Path) -> None:
    from tacit.experiments.findings import judge_all
    from tacit.experiments.findings import summary as in_words

    missing = sum(not cell.finished for cell in results.cells)
    told = f"{len(results.cells) - missing} of {len(results.cells)} cells have a result"
    verdicts = judge_all(results)
    typer.echo(f"{told}{f'; {in_words(verdicts)}' if verdicts else ''}.")
    typer.echo(f"Page: {folder / 'report.html'}    Tables: {folder / 'tables.md'}    Scores: {folder / 'scores.csv'}")


@contextmanager
def _live(*, shown: bool) -> Iterator[Any]:
    """A table of the steps that is drawn anew while they run; nothing where there is no terminal."""
    from rich.live import Live

    from tacit.cli.terminal import error_console

    console = error_console()
    if not shown or not console.is_terminal:
        yield None
        return
    started = time.monotonic()
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        yield lambda status: live.update(live_table(status, time.monotonic() - started))


def live_table(status: Status, seconds: float) -> Any:
    from rich.table import Table

    from tacit.cli.terminal import readable_seconds

    table = Table(title=status.plan.experiment.experiment.title, title_justify="left", expand=True)
    for column in ("step", "kind", "cells", "from cache", "done", "failed", "now"):
        table.add_column(column, justify="left" if column in ("step", "kind", "now") else "right")
    for name in status.plan.names:
        cells = {step.key: step for step in status.plan.named(name) if step.key in status.steps}
        if not cells:
            continue
        now = ", ".join(_now(status, key, step.axes) for key, step in cells.items() if key in status.running)
        counts = [len(cells), *(sum(key in found for key in cells) for found in
                                (status.cached, status.finished, status.failed))]  # fmt: skip
        table.add_row(name, next(iter(cells.values())).kind, *map(str, counts), now)
    left = len(status.steps) - len(status.cached)
    done = len(status.finished)
    rest = f", about {readable_seconds(seconds / done * (left - done))} left" if done and left > done else ""
    table.caption = f"{done} of {left} cells in {readable_seconds(seconds)}{rest}"
    return table


def _now(status: Status, key: str, axes: Any) -> str:
    from tacit.experiments.plan import shown

    done, total = status.progress.get(key, (0, 0))
    share = f" {done / total:.0%}" if total else ""
    return f"{' '.join(shown(value) for value in axes.values())}{share}"
