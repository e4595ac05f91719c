"""`tacit predict`: use a model that `tacit train` has made."""

from __future__ import annotations

from typing import Annotated

import click
from pydantic import Field

from tacit.cli.bars import Bars
from tacit.cli.generated import command_for
from tacit.cli.quiet import Quiet
from tacit.cli.reports import deliver
from tacit.errors import BadParameterError
from tacit.jobs.fields import AsJson
from tacit.jobs.fields import Quiet as QuietOption
from tacit.jobs.predict import PredictConfig, run

HELP = """Predict with a trained model, and score the predictions if the truth is known.

Each task writes what its target column holds: a label, a number, tags, an answer, a translation. A language model gives
the perplexity of each text. Predictions cost no budget of the training records, which the card of the model protects.
It does not protect the rows that are predicted for: the output holds them as they are.

Example: tacit predict model new-reviews.csv -o predicted.csv
"""


class PredictionOptions(Quiet):
    """How predictions are shown."""

    as_json: Annotated[AsJson, Field(description="Print the scores as one JSON object.")] = False
    quiet: Annotated[QuietOption, Field(description="No progress bar.")] = False


def predict(config: PredictConfig, shown: PredictionOptions) -> None:
    if config.output is None and not config.score:
        raise BadParameterError(
            "predictions-go-nowhere",
            "say where the predictions go ({option.output[predicted.csv]}), or compare them ({option.score})",
        )
    with Bars(shown=not shown.quiet) as bars:
        result = run(config, bars.show)
    if result.path is not None and not shown.quiet:
        click.echo(f"{len(result):,} predictions: {result.path}", err=True)
    if result.scores is not None:
        deliver(result.scores, None, None, as_json=shown.as_json, force=config.force)


command = command_for("predict", [PredictConfig, PredictionOptions], predict, help=HELP)
