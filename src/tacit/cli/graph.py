"""`tacit graph`: labels for the nodes of a private graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console

from tacit.cli.bars import Bars
from tacit.cli.generated import command_for, group_of
from tacit.cli.quiet import Quiet
from tacit.cli.rendering import show_card
from tacit.cli.terminal import error_console, output_console, warn_if_nominal
from tacit.errors import BadParameterError
from tacit.evaluation.collapse import prediction_flags
from tacit.jobs.graph import GraphConfig, GraphPredictConfig, GraphProgress, GraphResult, run, run_predict
from tacit.rounding import rounded_up

if TYPE_CHECKING:
    from tacit.training.graphs.subgraphs import SubgraphPlan

TRAIN_HELP = """Learn to label nodes from some that have a label.

Which nodes have a label, how many nodes there are and their names count as public; words, labels and links are
private.

Example: tacit graph train nodes.tsv edges.tsv --epsilon 8 --hold-out 0.15 -o model
"""
PREDICT_HELP = """Label the nodes of a file with a trained model, and write a privacy card beside the predictions.

Models of the method 'messages' know what each node of the training graph received, so links are not read again;
new nodes are labeled from their words alone.

Example: tacit graph predict model nodes.tsv -o labels.csv
"""


def train(config: GraphConfig, shown: Quiet) -> None:
    with Bars(shown=not shown.quiet) as bars:
        result = run(config, GraphProgress() if shown.quiet else _Shown(config, bars))
    if not shown.quiet:
        _say(result, error_console())
        show_card(result.card, output_console())
    warn_if_nominal(result.card)


class _Shown(GraphProgress):
    """The noise of a graph convolution in all its readings, then a bar."""

    def __init__(self, config: GraphConfig, bars: Bars) -> None:
        self._config = config
        self._bars = bars

    def stepped(self, done: int, total: int) -> None:
        self._bars.show("training", done, total)

    def planned(self, plan: SubgraphPlan) -> None:
        from tacit.training.graphs.subgraphs import side_by_side

        console = error_console()
        console.print(
            f"noise {plan.multiplier:.3f} x the bound, delta {rounded_up(plan.delta)}; epsilon of this noise:"
        )
        for (reading, sampling), value in side_by_side(plan).items():
            same = (reading, sampling) == (self._config.reading, self._config.sampling)
            mark = "  <- this run" if same else ""
            console.print(f"  one {reading:<9} {sampling:<8} {rounded_up(value, 4):>8}{mark}")


def _say(result: GraphResult, console: Console) -> None:
    if result.scores is None:
        console.print(
            "No score yet: --hold-out 0.2 keeps a fifth of the labeled nodes from training and scores on it; or write "
            "labels with 'tacit graph predict' and compare them where the true ones are not private."
        )
        return
    console.print(
        f"{result.trained:,} nodes trained, {result.held_out:,} held out: macro-F1 {result.scores.macro_f1:.3f}, "
        f"accuracy {result.scores.accuracy:.3f} (a score of private nodes: not covered by the guarantee)"
    )
    for flag in prediction_flags(result.scores):
        console.print(f"note: {flag.sentence}")


def predict(config: GraphPredictConfig) -> None:
    if config.output is None:
        raise BadParameterError("output-missing", "say where to write the labels: {option.output[labels.csv]}")
    made = run_predict(config)
    click.echo(f"{len(made.labels):,} nodes -> {config.output}, card in {config.output}.card.json", err=True)


command = group_of(
    "graph",
    [
        command_for("train", [GraphConfig, Quiet], train, help=TRAIN_HELP),
        command_for("predict", [GraphPredictConfig], predict, help=PREDICT_HELP),
    ],
    help="Private graph models: train on nodes, their words and their links so that no single node can be recognized.",
)
