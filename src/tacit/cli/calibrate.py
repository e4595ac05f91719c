"""`tacit calibrate`: from epsilon, delta and sensitivity to the noise scale, and back."""

from __future__ import annotations

import json
from typing import Any

import click

from tacit.cli.generated import command_for, group_of
from tacit.cli.options import Printing
from tacit.jobs.calibrate import Calibration, GaussianConfig, LaplaceConfig, ResponseConfig, SgdConfig, run
from tacit.rounding import rounded_down, rounded_up

LAPLACE = """Laplace mechanism (pure DP): scale b = l1 sensitivity / epsilon.

Clipping a vector to l1 norm C has l1 sensitivity 2 C between any two inputs; clipping n coordinates to [-C, C] has
2 C n.
"""
GAUSSIAN = """Gaussian mechanism (approximate DP), calibrated exactly for every epsilon (Balle & Wang 2018).

The textbook rule sqrt(2 ln(1.25 / delta)) / epsilon is shown for comparison where it is proven, below epsilon 1.
Clipping a vector to l2 norm C has l2 sensitivity 2 C between any two inputs.
"""
RESPONSE = """Randomized response (pure DP, local): how often to tell the truth.

With k answers the truth is told with probability e^epsilon / (e^epsilon + k - 1), and every false answer with the same
smaller probability.
"""
SGD = """DP-SGD: noise multiplier to epsilon and back, for Poisson-sampled lots.

Each step must take every record independently with probability lot size / records. Shuffled batches of a fixed size
are not covered. Needs the extra 'accounting'.
"""


def show(config: Calibration, printing: Printing) -> None:
    numbers = run(config)
    if printing.as_json:
        click.echo(json.dumps(numbers))
    else:
        show_table(numbers)


def show_table(numbers: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False)
    for name, value in numbers.items():
        # Loss and noise are shown larger than they are, the chance of telling the truth smaller: safe to copy.
        shown = str(value)
        if isinstance(value, float):
            shown = rounded_down(value) if name == "truth_probability" else rounded_up(value)
        table.add_row(name.replace("_", " "), shown)
    Console().print(table)


command = group_of(
    "calibrate",
    [
        command_for(
            "laplace",
            [LaplaceConfig, Printing],
            show,
            help=LAPLACE,
            epilog="Example: tacit calibrate laplace --epsilon 0.5 --sensitivity 2 gives scale 4.",
        ),
        command_for(
            "gaussian",
            [GaussianConfig, Printing],
            show,
            help=GAUSSIAN,
            epilog="Example: tacit calibrate gaussian --epsilon 1 --delta 1e-5 gives sigma 3.7306; --sigma 3.7306 in "
            "place of --epsilon 1 leads back.",
        ),
        command_for(
            "response",
            [ResponseConfig, Printing],
            show,
            help=RESPONSE,
            epilog="Example: tacit calibrate response --epsilon 1.0986 tells the truth with probability 0.75 (two fair "
            "coins); --truth 0.75 leads back.",
        ),
        command_for(
            "sgd",
            [SgdConfig, Printing],
            show,
            help=SGD,
            epilog="Example: tacit calibrate sgd --records 60000 --lot-size 256 --epochs 60 --epsilon 3 --delta 1e-5; "
            "--noise-multiplier 1.1 in place of --epsilon 3 leads back.",
        ),
    ],
    help="How much noise a given epsilon needs, and what epsilon a given noise buys.",
)
