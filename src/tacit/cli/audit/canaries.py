"""`tacit audit canaries`: make the secrets that `tacit audit model --canaries` looks for."""

from __future__ import annotations

import click

from tacit.cli.generated import command_for
from tacit.jobs.audit.canaries import CanariesConfig, run

HELP = """Make canaries: made-up secrets of a public format, each included by its own fair coin.

Add the texts of the output to the training data, train, and run 'tacit audit model MODEL --canaries SECRET'. The
secret file says how the coins fell: keep it from whoever trains.

With --like, canaries begin like ordinary texts and end in an unlikely secret: models remember them far better, and
synthetic texts echo them ('tacit audit corpus'). With --label-column they are rows with labels, for classifiers.

Example: tacit audit canaries -n 1000 -o add-to-training.txt --secret canaries.jsonl

Example: tacit audit canaries --like others.csv -l label -o add-to-training.csv --secret canaries.jsonl
"""


def canaries(config: CanariesConfig) -> None:
    made = run(config)
    click.echo(
        f"{made.included:,} of {config.count:,} canaries, {len(made.lines):,} lines -> {config.output}; coins -> "
        f"{config.secret}",
        err=True,
    )


command = command_for("canaries", [CanariesConfig], canaries, help=HELP)
