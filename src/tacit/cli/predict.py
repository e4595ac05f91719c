"""`tacit predict`: use a model that `tacit train` has made."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder that 'tacit train' has made.")],
    data: Annotated[str, typer.Argument(metavar="DATA", help="The rows to predict for: csv, tsv, jsonl, parquet, …")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Where the rows go, with a column of predictions.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", help="Where the model finds what it reads, if the names differ: text=review …"),
    ] = None,
    prediction_column: Annotated[str, typer.Option(help="Name of the new column.")] = "prediction",
    score: Annotated[bool, typer.Option("--score", help="Compare with the target column of DATA.")] = False,
    batch: Annotated[int, typer.Option(help="Rows worked on at a time.")] = 64,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as one JSON object.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output file.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar.")] = False,
) -> None:  # fmt: skip
    """Predict with a trained model, and score the predictions if the truth is known.

    Each task writes what its target column holds: a label, a number, tags, an answer, a translation. A language model
    gives the perplexity of each text. Predictions cost no budget of the training records, which the card of the model
    protects. It does not protect the rows that are predicted for: the output holds them as they are.

    Example: tacit predict model new-reviews.csv -o predicted.csv
    """
    from tacit.cli.reports import deliver, progress_bars
    from tacit.errors import BadInputError, BadParameterError
    from tacit.evaluate.predictions import prediction_section
    from tacit.report import Report
    from tacit.text.files import read_columns, write_columns
    from tacit.training.prediction import load_trained, predict_rows

    if output is None and not score:
        raise BadParameterError("say where the predictions go (-o predicted.csv), or compare them (--score)")
    if output is not None and output.exists() and not force:
        raise BadInputError(f"{output} exists: give another name, or --force")
    task, network, tokenizer = load_trained(model)
    usual = task.columns or {role: role for role in task.roles if role != "pair"}
    names = {**usual, **_renamed(columns or [], task.roles)}
    if score and task.target and task.target not in names:
        raise BadInputError(
            f"the model does not say which column its {task.target} had: give --column {task.target}=NAME"
        )
    needed = [role for role in names if role != task.target or score]
    everything = read_columns(data, [names[role] for role in needed], rest=True)
    cells = {role: everything[names[role]] for role in needed}
    rows = [dict(zip(cells, values, strict=True)) for values in zip(*cells.values(), strict=True)]
    with progress_bars(shown=not quiet) as told:
        found = predict_rows(
            task, network, tokenizer, rows, batch=batch, progress=lambda done: told("predicting", done, len(rows))
        )
    if output is not None:
        write_columns(output, {**everything, prediction_column: found}, force=force)
        if not quiet:
            typer.echo(f"{len(rows):,} predictions: {output}", err=True)
    if score:
        truth = [row[task.target] for row in rows] if task.target else found
        section = prediction_section(task.name, truth, found, known=task.labels, title=f"{model.name} on {data}")
        deliver(Report("Predictions", [section]), None, None, as_json=as_json, force=force)


def _renamed(given: list[str], roles: tuple[str, ...]) -> dict[str, str]:
    from tacit.errors import BadParameterError

    found = {}
    for item in given:
        role, equals, column = item.partition("=")
        if not equals or role not in roles:
            raise BadParameterError(f"--column is ROLE=NAME with one of {', '.join(roles)}, not '{item}'")
        found[role] = column
    return found
