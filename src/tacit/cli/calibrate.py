"""`tacit calibrate`: from epsilon, delta and sensitivity to the noise scale, and back."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from tacit.errors import BadParameterError
from tacit.rounding import rounded_down, rounded_up

app = typer.Typer(
    help="How much noise a given epsilon needs, and what epsilon a given noise buys.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Epsilon = Annotated[float | None, typer.Option(help="Privacy parameter; smaller is more private.")]
Delta = Annotated[
    float, typer.Option(help="Probability with which the epsilon bound may fail; well below 1 / records.")
]


class Neighbors(StrEnum):
    """Which two data sets must look alike."""

    add_remove = "add-remove"
    replace_one = "replace-one"


@app.command(epilog="Example: `tacit calibrate laplace --epsilon 0.5 --sensitivity 2` gives scale 4.")
def laplace(
    sensitivity: Annotated[
        float, typer.Option(help="l1 sensitivity: the most that one change moves all numbers together.")
    ] = 1.0,
    epsilon: Epsilon = None,
    scale: Annotated[float | None, typer.Option(help="Noise scale b, to get its epsilon.")] = None,
    as_json: Json = False,
) -> None:
    """Laplace mechanism (pure DP): scale b = l1 sensitivity / epsilon.

    Clipping a vector to l1 norm C has l1 sensitivity 2 C between any two inputs; clipping n coordinates to
    [-C, C] has 2 C n.
    """
    from tacit.noise.laplace import laplace_epsilon, laplace_scale

    if _one_of(("--epsilon", epsilon), ("--scale", scale)) == "--epsilon":
        assert epsilon is not None
        scale = laplace_scale(epsilon, sensitivity)
    else:
        assert scale is not None
        epsilon = laplace_epsilon(scale, sensitivity)
    _show(
        {
            "mechanism": "laplace",
            "notion": "pure",
            "epsilon": epsilon,
            "delta": 0.0,
            "l1_sensitivity": sensitivity,
            "scale": scale,
            "standard_deviation": scale * 2**0.5,
        },
        as_json,
    )


@app.command(
    epilog="Example: `tacit calibrate gaussian --epsilon 1 --delta 1e-5` gives sigma 3.7306; "
    "`--sigma 3.7306` in place of `--epsilon 1` leads back."
)
def gaussian(
    delta: Delta = 1e-6,
    sensitivity: Annotated[
        float, typer.Option(help="l2 sensitivity: the farthest that one change moves the vector.")
    ] = 1.0,
    epsilon: Epsilon = None,
    sigma: Annotated[float | None, typer.Option(help="Standard deviation, to get its epsilon.")] = None,
    as_json: Json = False,
) -> None:
    """Gaussian mechanism (approximate DP), calibrated exactly for every epsilon (Balle & Wang 2018).

    The textbook rule sqrt(2 ln(1.25 / delta)) / epsilon is shown for comparison where it is proven, below
    epsilon 1. Clipping a vector to l2 norm C has l2 sensitivity 2 C between any two inputs.
    """
    from tacit.noise.gaussian import analytic_gaussian_sigma, classical_gaussian_sigma, gaussian_epsilon

    if _one_of(("--epsilon", epsilon), ("--sigma", sigma)) == "--epsilon":
        assert epsilon is not None
        sigma = analytic_gaussian_sigma(epsilon, delta, sensitivity)
    else:
        assert sigma is not None
        epsilon = gaussian_epsilon(sigma, delta, sensitivity)
    result: dict[str, Any] = {
        "mechanism": "gaussian",
        "notion": "approximate",
        "epsilon": epsilon,
        "delta": delta,
        "l2_sensitivity": sensitivity,
        "sigma": sigma,
    }
    if 0 < epsilon < 1:
        result["classical_sigma"] = classical_gaussian_sigma(epsilon, delta, sensitivity)
    _show(result, as_json)


@app.command(
    epilog="Example: `tacit calibrate response --epsilon 1.0986` tells the truth with probability "
    "0.75 (two fair coins); `--truth 0.75` leads back."
)
def response(
    categories: Annotated[int, typer.Option(help="Number of possible answers; 2 is a yes/no question.")] = 2,
    epsilon: Epsilon = None,
    truth: Annotated[float | None, typer.Option(help="Probability of the true answer, to get its epsilon.")] = None,
    as_json: Json = False,
) -> None:
    """Randomized response (pure DP, local): how often to tell the truth.

    With k answers the truth is told with probability e^epsilon / (e^epsilon + k - 1), and every false answer with
    the same smaller probability.
    """
    from math import log

    from tacit.noise.response import response_shares

    if _one_of(("--epsilon", epsilon), ("--truth", truth)) == "--truth":
        assert truth is not None
        if categories < 2 or not 1 / categories < truth < 1:
            raise BadParameterError(
                f"with {categories} answers the truth must be told with a probability above 1/{categories} and "
                "below 1: give --truth in between"
            )
        epsilon = log(truth * (categories - 1) / (1 - truth))
    assert epsilon is not None
    true_share, false_share = response_shares(epsilon, categories)
    total = true_share + (categories - 1) * false_share
    _show(
        {
            "mechanism": "randomized response",
            "notion": "pure",
            "epsilon": epsilon,
            "delta": 0.0,
            "categories": categories,
            "truth_probability": true_share / total,
            "probability_of_each_false_answer": false_share / total,
        },
        as_json,
    )


@app.command(
    epilog="Example: `tacit calibrate sgd --records 60000 --lot-size 256 --epochs 60 --epsilon 3 --delta 1e-5"
    "`; `--noise-multiplier 1.1` in place of `--epsilon 3` leads back."
)
def sgd(
    records: Annotated[int, typer.Option(help="Number of training records (units of privacy).")],
    lot_size: Annotated[float, typer.Option(help="Expected number of records in a step.")],
    epochs: Annotated[float | None, typer.Option(help="Expected passes over the records.")] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps, instead of epochs.")] = None,
    delta: Annotated[float | None, typer.Option(help="Below 1 / records. Default: records to the power -1.5.")] = None,
    epsilon: Epsilon = None,
    noise_multiplier: Annotated[
        float | None,
        typer.Option("--noise-multiplier", "--sigma", help="Noise over clipping norm, to get its epsilon."),
    ] = None,
    adjacency: Annotated[
        Neighbors, typer.Option(help="Data sets that must look alike: one record more or less, or another.")
    ] = Neighbors.add_remove,
    as_json: Json = False,
) -> None:
    """DP-SGD: noise multiplier to epsilon and back, for Poisson-sampled lots.

    Each step must take every record independently with probability lot size / records. Shuffled batches of a fixed
    size are not covered. Needs the extra 'accounting'.
    """
    from tacit.account.sgd import sgd_epsilon, sgd_noise_multiplier
    from tacit.guarantee import Adjacency

    if records < 2 or not 0 < lot_size <= records:
        raise BadParameterError("the lot size must be positive and at most the number of records (at least 2)")
    if _one_of(("--epochs", epochs), ("--steps", steps)) == "--epochs":
        assert epochs is not None
        steps = max(1, round(epochs * records / lot_size))
    assert steps is not None
    run: dict[str, Any] = {
        "sampling_rate": lot_size / records,
        "steps": steps,
        "delta": records**-1.5 if delta is None else delta,
        "records": records,
        "adjacency": (Adjacency.ADD_REMOVE if adjacency is Neighbors.add_remove else Adjacency.REPLACE_ONE),
    }
    if _one_of(("--epsilon", epsilon), ("--noise-multiplier", noise_multiplier)) == "--epsilon":
        assert epsilon is not None
        noise_multiplier = sgd_noise_multiplier(epsilon=epsilon, **run)
    assert noise_multiplier is not None
    _show(
        {
            "mechanism": "dp-sgd",
            "notion": "approximate",
            "epsilon": sgd_epsilon(noise_multiplier=noise_multiplier, **run),
            "delta": run["delta"],
            "noise_multiplier": noise_multiplier,
            "sampling_rate": run["sampling_rate"],
            "steps": steps,
            "adjacency": adjacency.value,
            "assumes": "Poisson sampling",
        },
        as_json,
    )


def _one_of(first: tuple[str, float | None], second: tuple[str, float | None]) -> str:
    """The name of the option that was given; exactly one must be."""
    given = [name for name, value in (first, second) if value is not None]
    if len(given) != 1:
        raise BadParameterError(f"give exactly one of {first[0]} and {second[0]}: the other one is computed")
    return given[0]


def _show(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(result))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False)
    for name, value in result.items():
        # Loss and noise are shown larger than they are, the chance of telling the truth smaller: safe to copy.
        shown = str(value)
        if isinstance(value, float):
            shown = rounded_down(value) if name == "truth_probability" else rounded_up(value)
        table.add_row(name.replace("_", " "), shown)
    Console().print(table)
