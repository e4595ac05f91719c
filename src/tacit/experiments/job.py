"""An experiment as a job: run it, go on with it, write its tables and its page again.

run(ExperimentConfig(file="experiments/santext.toml", size="quick", workers=2))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from tacit.errors import BadInputError
from tacit.experiments.collecting import collect, costs
from tacit.experiments.config import data_folders, load
from tacit.experiments.data_sets import DataFolder
from tacit.experiments.execution import folder_of, is_finished, rescore
from tacit.experiments.findings import findings_file, load_findings
from tacit.experiments.plan import Plan, make_plan
from tacit.experiments.report import cost_table, page, timing_tables, write_files
from tacit.experiments.results import Results
from tacit.experiments.runner import Watch, run_plan
from tacit.experiments.started import COPY, Settings, read_settings, refuse_changed, refuse_lost, write_settings
from tacit.experiments.tables import table_csv
from tacit.experiments.validation import validate
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import File, Folder, Force, Output, Workers
from tacit.needs import EXPERIMENT_PAGES, Ability
from tacit.report.parts import put

BUILD = Path("build/experiments")
CACHE = BUILD / "cache"
RESULTS = "results.json"

Cache = Annotated[
    Path,
    Field(description="Where finished steps are kept. It holds the data: keep it private."),
    Option(Group.RUN),
]
RunFolder = Annotated[Folder, Field(description="The folder of the results of a run.")]


class ExperimentConfig(Config):
    """An experiment file, in one size, and where its results go."""

    job: ClassVar[str] = "experiment"

    file: Annotated[File, Field(description="The experiment."), Varied(metavar="FILE.toml")]
    size: Annotated[
        str, Field(description="quick (minutes) or full (the paper's own models and data)."), Option(Group.MEASURES)
    ] = "quick"
    only: Annotated[
        tuple[str, ...],
        Field(description="Run this step and what it needs; repeatable."),
        Option(Group.MEASURES, metavar="STEP"),
    ] = ()
    output: Annotated[
        Output[Path | None], Field(description="Folder of the results; default build/experiments/NAME-SIZE.")
    ] = None
    data_folder: DataFolder = None
    test_seed: Annotated[
        int | None,
        Field(description="Repeatable noise for tests. Everybody can undo it: the cards promise nothing."),
        Option(Group.PRIVACY),
    ] = None
    cache: Cache = CACHE
    workers: Workers = 2
    force: Force = False

    def needs(self) -> list[Ability]:
        return [EXPERIMENT_PAGES]


class StartedConfig(Config):
    """A run that was started before, and whether it goes on although something has changed since."""

    job: ClassVar[str] = "experiment started"

    folder: RunFolder
    data_folder: DataFolder = None
    force: Force = False

    def needs(self) -> list[Ability]:
        return [EXPERIMENT_PAGES]


class ResumeConfig(StartedConfig):
    """A run to go on with."""

    job: ClassVar[str] = "experiment resume"

    workers: Workers = 2


class ReportConfig(StartedConfig):
    """A run whose tables and page are written again."""

    job: ClassVar[str] = "experiment report"

    rescore: Annotated[bool, Field(description="Derive all scores again from the raw files."), Option(Group.RUN)] = (
        False
    )


@dataclass(frozen=True)
class ExperimentRun:
    """The results of a run, its folder, and why cells failed, by their labels."""

    results: Results
    folder: Path
    failed: Mapping[str, str]


# Running ----------------------------------------------------------------------------------------------------------


def plan_of(config: ExperimentConfig) -> Plan:
    """All cells of an experiment, checked before any of them runs."""
    plan = _plan(config.file, config.size, data_folders(config.file, config.data_folder), config.test_seed)
    names = list(plan.experiment.steps)
    for name in config.only:
        if name not in names:
            raise BadInputError(
                "unknown-step",
                "{option.only} names the step '{name}', which does not exist: the steps are {steps}",
                name=name,
                steps=", ".join(names),
            )
    validate(plan)
    return plan


def folder_of_results(config: ExperimentConfig, plan: Plan) -> Path:
    return config.output or BUILD / f"{plan.experiment.experiment.name}-{config.size}"


def run(config: ExperimentConfig, watch: Watch | None = None, *, plan: Plan | None = None) -> ExperimentRun:
    """The results of an experiment. What an earlier run finished is not run again, and no released text gets new noise.
    `plan` is that of the configuration, if it is known already."""
    plan = plan or plan_of(config)
    folder = folder_of_results(config, plan)
    _refuse_others(folder, plan, force=config.force)
    folder.mkdir(parents=True, exist_ok=True)
    for file, copy in ((config.file, folder / COPY), (findings_file(config.file), findings_file(folder / COPY))):
        copy.unlink(missing_ok=True)
        if file.is_file():
            put(copy, file.read_text(encoding="utf-8"))
    settings = Settings(
        file=str(config.file.absolute()),
        size=config.size,
        test_seed=config.test_seed,
        cache=str(config.cache.absolute()),
        # The data folder of now: another shell that resumes this run may have another TACIT_DATA.
        data=str(data_folders(config.file, config.data_folder)[-1].absolute()),
        only=list(config.only) or None,
    )
    write_settings(folder, settings.of_plan(plan))
    return _finished(plan, folder, config.cache, config.workers, settings.only, watch)


def resume(config: ResumeConfig, watch: Watch | None = None) -> ExperimentRun:
    """The results of a run that was stopped or killed, with the configuration it was started with."""
    plan, settings = _started(config)
    validate(plan)
    write_settings(config.folder, settings)
    return _finished(plan, config.folder, Path(settings.cache), config.workers, settings.only, watch)


def report(config: ReportConfig) -> Results:
    """The results of a run, whose tables and page are written again from what is in the cache."""
    plan, settings = _started(config)
    write_settings(config.folder, settings)
    cache = Path(settings.cache)
    if config.rescore:
        for step in {step.key: step for step in plan.steps if is_finished(folder_of(cache, step))}.values():
            rescore(step, cache)
    return _written(plan, config.folder, cache)


def _finished(
    plan: Plan, folder: Path, cache: Path, workers: int, only: list[str] | None, watch: Watch | None
) -> ExperimentRun:
    status = run_plan(plan, cache, workers=workers, only=None if only is None else set(only), watch=watch)
    failed = {status.steps[key].label: reason for key, reason in status.failed.items()}
    return ExperimentRun(_written(plan, folder, cache), folder, failed)


def _written(plan: Plan, folder: Path, cache: Path) -> Results:
    results = collect(plan, cache)
    write_files(results, folder)
    spent = cost_table(costs(plan, cache), plan.experiment.experiment.watts)
    put(folder / "costs.csv", table_csv([spent, *timing_tables(plan, cache)]))
    put(folder / "report.html", page(plan, results, cache).to_html(), private=True)
    return results


def _plan(file: Path, size: str, folders: list[Path], test_seed: int | None) -> Plan:
    """The cells of an experiment file, and the findings beside it."""
    return make_plan(load(file, size), size, folders, test_seed=test_seed).judged_by(load_findings(file))


def _started(config: StartedConfig) -> tuple[Plan, Settings]:
    """The plan of a run as it was started, unless it would be another one now; and the settings to go on with."""
    settings = read_settings(config.folder)
    if config.data_folder is not None:
        settings = settings.model_copy(update={"data": str(config.data_folder.absolute())})
    # Data that was moved since is looked for where a new run would look: its content counts, not its place.
    place = Path(settings.data) if settings.data is not None and Path(settings.data).is_dir() else config.data_folder
    folders = data_folders(Path(settings.file), place)
    plan = _plan(config.folder / COPY, settings.size, folders, settings.test_seed)
    if not config.force:
        known = _known_results(config.folder)
        refuse_changed(config.folder, settings, plan, known)
        refuse_lost(config.folder, plan, Path(settings.cache), known)
    return plan, settings.of_plan(plan)


# Looking ----------------------------------------------------------------------------------------------------------


def read_results(path: Path) -> Results:
    """The results of a file, or of the folder of a run."""
    file = path / RESULTS if path.is_dir() else path
    try:
        return Results.from_json(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError):
        raise BadInputError(
            "unreadable-results",
            "'{file}' cannot be read: give a results.json, or the folder of a finished run",
            file=file,
        ) from None


def _known_results(folder: Path) -> Results | None:
    """The results in a folder; a file that nobody can read is nothing to lose."""
    try:
        return read_results(folder)
    except BadInputError:
        return None


def _refuse_others(folder: Path, plan: Plan, *, force: bool) -> None:
    """Results of the same configuration are made again; those of another one are not replaced silently."""
    if not (folder / RESULTS).is_file() or force:
        return
    if read_results(folder).digest != plan.digest:
        raise BadInputError(
            "results-of-another-configuration",
            "'{folder}' holds the results of another configuration: give another {option.output}, or {option.force} "
            "to replace them",
            folder=folder,
        )


def finished_cells(file: Path, size: str, data: Path | None, cache: Path) -> tuple[int, int]:
    """How many cells of an experiment are finished, of how many."""
    plan = make_plan(load(file, size), size, data_folders(file, data))
    cells = {step.key: step for step in plan.steps}
    return sum(is_finished(folder_of(cache, step)) for step in cells.values()), len(cells)
