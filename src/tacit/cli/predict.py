"""`tacit predict`: use a model that `tacit train` has made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import click
from pydantic import Field

from tacit.cli import ensemble
from tacit.cli.bars import Bars
from tacit.cli.generated import SectionedCommand, command_for
from tacit.cli.quiet import Quiet
from tacit.cli.reports import Page, ReportFiles, deliver
from tacit.errors import BadParameterError
from tacit.jobs.fields import AsJson
from tacit.jobs.fields import Quiet as QuietOption
from tacit.jobs.predict import PredictConfig, run
from tacit.training.ensemble.folder import is_ensemble

ENSEMBLE = "ensemble"
OF_ENSEMBLES = ("--ledger", "--tokens")
HELP = """Predict with a trained model, and score the predictions if the truth is known.

Each task writes what its target column holds: a label, a number, tags, an answer, a translation. A language model gives
the perplexity of each text. Predictions cost no budget of the training records, which the card of the model protects.
It does not protect the rows that are predicted for: the output holds them as they are.

An ensemble ('tacit train ensemble') continues prompts instead, and every token spends budget: 'tacit predict FOLDER
--help' explains it when FOLDER holds one.

With --group-column the scores come by group, with the largest gap; --beside names the same model without privacy and
says which group pays for it. Rows that are scored must not be private.

Example: tacit predict model new-reviews.csv -o predicted.csv

Example: tacit predict model test.csv --group-column dialect --beside model-without-privacy --html groups.html
"""


class PredictionOptions(ReportFiles, Quiet):
    """How predictions are shown."""

    html: Annotated[Page, Field(description="Write the scores as one page with tables.")] = None
    as_json: Annotated[AsJson, Field(description="Print the scores as one JSON object.")] = False
    quiet: Annotated[QuietOption, Field(description="No progress bar.")] = False


class PredictCommand(SectionedCommand):
    """The command for a trained model; the folder of an ensemble leads to the one that draws tokens."""

    @property
    def commands(self) -> dict[str, click.Command]:
        return {ENSEMBLE: ensemble.answers_command}

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return self.commands.get(name)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if asks_an_ensemble(args):
            return self.commands[ENSEMBLE].make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def asks_an_ensemble(arguments: Sequence[str]) -> bool:
    """Whether arguments name the folder of an ensemble, or an option that only ensembles have.

    >>> asks_an_ensemble(["model", "in.csv", "--ledger=l.db"]), asks_an_ensemble(["model", "in.csv"])
    (True, False)
    """
    flags = {argument.partition("=")[0] for argument in arguments}
    return not flags.isdisjoint(OF_ENSEMBLES) or any(is_ensemble(argument) for argument in arguments)


def predict(config: PredictConfig, shown: PredictionOptions) -> None:
    shown.check_files_for(force=config.force)
    if (shown.html or shown.json_file) and not config.scored:
        raise BadParameterError(
            "report-without-scores", "a report shows scores: add {option.score}, or {option.group_column}"
        )
    if config.output is None and not config.scored:
        raise BadParameterError(
            "predictions-go-nowhere",
            "say where the predictions go ({option.output[predicted.csv]}), or compare them ({option.score})",
        )
    with Bars(shown=not shown.quiet) as bars:
        result = run(config, bars.show)
    for remark in result.remarks:
        click.echo(remark, err=True)
    if result.threshold is not None and not shown.quiet:
        click.echo(f"threshold for no answer, from public rows: {result.threshold:.4g}", err=True)
    if result.path is not None and not shown.quiet:
        click.echo(f"{len(result):,} predictions: {result.path}", err=True)
    if result.scores is not None:
        deliver(result.scores, shown.html, shown.json_file, as_json=shown.as_json, force=config.force)


command = command_for("predict", [PredictConfig, PredictionOptions], predict, help=HELP, kind=PredictCommand)
