"""`tacit train`: models under differential privacy; `tacit train check` proves that a model can be trained so."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.rewriter import rewriter
from tacit.cli.selective import selective
from tacit.cli.tasks import (
    HELP,
    Bound,
    Clipping,
    Curves,
    Data,
    Delta,
    Labels,
    Length,
    Model,
    Output,
    Quiet,
    Rank,
    Resume,
    Schedule,
    Seed,
    Strategy,
    Test,
    Tokenizer,
    Trials,
    carry_out,
    command_of,
    delta_of,
    load_network,
    make_task,
    noise_of,
    origin_of,
    read_rows,
    usual_rate,
)
from tacit.errors import BadInputError, BadParameterError
from tacit.rounding import rounded_up

app = typer.Typer(
    help="Train a model so that no single record can be recognized in it; name the task first: tacit train classify …",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Epsilon = Annotated[
    float | None,
    typer.Option(help="The privacy budget of one record; 'inf' trains without privacy, for comparison."),
]
Released = Annotated[
    Path | None,
    typer.Option(
        "--released", help="The texts were released by 'tacit rewrite' with this card: no noise, and its promise."
    ),
]
Public = Annotated[
    str | None, typer.Option("--public", help="The texts are public; this is their name on the card. No noise.")
]
Epochs = Annotated[float, typer.Option(help="Passes over the data, on average.")]
BatchSize = Annotated[int, typer.Option("--batch", help="Records per step, on average; large batches need less noise.")]
Rate = Annotated[float | None, typer.Option("--learning-rate", help="By default 5e-4 to 5e-3, by strategy.")]
Replace = Annotated[
    bool, typer.Option("--replace-one", help="Neighbors differ by replacing a record (twice the sensitivity).")
]
Engine = Annotated[str, typer.Option(help="Gradient engine: auto, taps, vmap, loop, opacus.")]
Physical = Annotated[int, typer.Option(help="Records worked on at a time; no influence on the result.")]
Optimizer = Annotated[str, typer.Option(help="adamw, adam or sgd.")]

USUAL_STRATEGIES = {"classify": "bias", "regress": "bias", "tag": "last-2"}


def _train_command(
    data: Data,
    output: Output,
    epsilon: Epsilon = None,
    model: Model = "minilm",
    strategy: Strategy = None,
    delta: Delta = "auto",
    epochs: Epochs = 5.0,
    batch: BatchSize = 256,
    learning_rate: Rate = None,
    length: Length = None,
    clipping: Clipping = "flat",
    bound: Bound = 3.0,
    replace_one: Replace = False,
    trials: Trials = 1,
    engine: Engine = "auto",
    physical: Physical = 32,
    optimizer: Optimizer = "adamw",
    schedule: Schedule = "linear",
    tokenizer: Tokenizer = None,
    rank: Rank = 8,
    labels: Labels = None,
    released: Released = None,
    public: Public = None,
    test: Test = None,
    tensorboard: Curves = False,
    resume: Resume = False,
    seed: Seed = None,
    quiet: Quiet = False,
) -> None:
    """The options that all tasks share; see `_command`."""


POOLING = Annotated[
    str,
    typer.Option(help="What the head reads: mean (of all positions), own (the model's habit), auto."),
]

MORE: dict[str, dict[str, tuple[Any, Any]]] = {
    "classify": {
        "label_smoothing": (
            Annotated[float, typer.Option(help="Share of a label that is spread over all: less sure, less wrong.")],
            0.1,
        ),
        "pooling": (POOLING, "auto"),
    },
    "answer": {
        "unanswerable": (
            Annotated[
                bool,
                typer.Option(
                    "--unanswerable/--always-answered",
                    help="Whether a question may have no answer: known beforehand, never read off DATA.",
                ),
            ],
            True,
        ),
    },
    "regress": {
        "pooling": (POOLING, "auto"),
        "label_range": (
            Annotated[
                str | None,
                typer.Option(
                    help="Smallest and largest possible label, known beforehand, as in 0,5: the model learns on this "
                    "scale, and labels beyond count as the nearer end."
                ),
            ],
            None,
        ),
    },
}
"""Options that only one task has: annotation and default."""


def _command(task: str) -> Any:
    def action(given: dict[str, Any], roles: dict[str, str]) -> None:
        more = {name: given.pop(name) for name in MORE.get(task, {})}
        given["pooling"] = more.pop("pooling", "auto")
        _train(task, given, roles, _task_options(**more))

    return command_of(task, _train_command, action, MORE.get(task))


for _task, _help in HELP.items():
    app.command(_task, help=_help)(_command(_task))
app.command("rewrite")(rewriter)
app.command("selective")(selective)


@app.command()
def check(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="'minilm', a folder, or a name on the model hub.")],
    task: Annotated[str, typer.Option(help="What it would be trained for: classify, tag, answer, write, fill …")] = (
        "classify"
    ),
    strategy: Annotated[str, typer.Option(help="What would be trained.")] = "full",
    engine: Engine = "auto",
) -> None:
    """Compare the clipped gradients of a model with those of one example at a time, without noise.

    Exit code 0 and the largest deviation, or 2 and the weight whose gradient cannot be bounded. No data is needed.
    """
    from tacit.cli.terminal import output_console
    from tacit.training.gradients import choose
    from tacit.training.layout import choose_layout
    from tacit.training.models import load_model
    from tacit.training.strategies import apply_strategy
    from tacit.training.tasks import task_named

    wanted = task_named(task)(labels=["a", "b", "c"])
    network, tokenizer = load_model(wanted, model)
    network = apply_strategy(network, strategy)
    padding = choose_layout(wanted, network, tokenizer)
    _, result = choose(network, wanted.loss, wanted.probes(tokenizer), engine)
    console = output_console()
    console.print(
        f"engine {result.engine}: norms within {rounded_up(result.norm_deviation, 2)}, clipped sums within "
        f"{rounded_up(result.sum_deviation, 2)} of one example at a time ({result.parameters} weights, "
        f"{result.examples} examples)"
    )
    console.print(
        f"every record has to be filled up to one length, here {wanted.length} word pieces: what it adds depends on it"
        if wanted.constant
        else f"filled up on the {wanted.side}, a record adds the same as alone, within {rounded_up(padding, 2)}"
    )
    for name, reason in result.refused.items():
        console.print(f"not {name}: {reason}")


def _task_options(
    label_range: str | None = None, label_smoothing: float | None = None, unanswerable: bool | None = None
) -> dict[str, Any]:
    if unanswerable is not None:
        return {"unanswerable": unanswerable}
    if label_smoothing is not None:
        return {"smoothing": label_smoothing}
    if label_range is None:
        return {}
    try:
        low, high = (float(part) for part in label_range.split(","))
    except ValueError:
        raise BadParameterError(f"--label-range is two numbers with a comma, as in 0,5, not '{label_range}'") from None
    return {"mean": (low + high) / 2, "scale": (high - low) / 2, "bounded": True}


def _train(task_name: str, given: dict[str, Any], roles: dict[str, str], options: dict[str, Any]) -> None:
    from dataclasses import replace

    from tacit.cli.terminal import error_console
    from tacit.training.models import is_from_scratch
    from tacit.training.run import Settings, TrainingRun
    from tacit.training.team import Team

    rows = read_rows(given["data"], roles)
    tested = read_rows(given["test"], roles) if given["test"] else []
    task = make_task(task_name, given, roles, **options)
    task.learn(rows)
    plan = _plan(given, len(rows))
    from_scratch = is_from_scratch(given["model"])
    strategy = given["strategy"] or ("full" if from_scratch else USUAL_STRATEGIES.get(task_name, "lora"))
    rate = usual_rate("from scratch" if from_scratch else strategy, private=plan.private)
    settings = Settings(
        optimizer=given["optimizer"],
        learning_rate=rate if given["learning_rate"] is None else given["learning_rate"],
        schedule=given["schedule"],
        clipping=given["clipping"],
        bound=given["bound"],
        engine=given["engine"],
        physical=given["physical"],
        strategy=strategy,
        model=given["model"],
        tensorboard=given["tensorboard"],
    )
    model, tokenizer = load_network(task, given, strategy, pooling=given["pooling"])
    origin = replace(origin_of(given), public=given["public"], released=_released(given, task, len(rows)))
    run = TrainingRun(
        task, model, tokenizer, rows, plan, settings, given["output"], given["seed"], given["trials"],
        error_console().print, origin, Team.from_environment(),
    )  # fmt: skip
    carry_out(
        run, given, tested, f"{len(rows):,} records, {plan.steps:,} steps of about {plan.batch:,}, {noise_of(plan)}"
    )


def _plan(given: dict[str, Any], records: int) -> Any:
    from tacit.guarantee import Adjacency
    from tacit.training.plan import Plan

    if given["batch"] > records:
        raise BadInputError(
            f"there are {records:,} rows, fewer than a batch of {given['batch']:,}: give a smaller --batch"
        )
    epsilon, free = given["epsilon"], given["released"] is not None or given["public"] is not None
    if free and given["released"] is not None and given["public"] is not None:
        raise BadParameterError("text is either public or released: give --public or --released, not both")
    if free and epsilon is not None and epsilon != math.inf:
        raise BadParameterError("public and released text needs no noise: leave --epsilon out, or the other option")
    if epsilon is None and not free:
        raise BadParameterError("say how much privacy a record gets: --epsilon 3, or --epsilon inf for none at all")
    if free or epsilon == math.inf:
        return Plan.without_privacy(records=records, batch=given["batch"], epochs=given["epochs"])
    return Plan.calibrated(
        epsilon=epsilon,
        records=records,
        batch=given["batch"],
        epochs=given["epochs"],
        delta=delta_of(given["delta"]),
        adjacency=Adjacency.REPLACE_ONE if given["replace_one"] else Adjacency.ADD_REMOVE,
        releases=given["trials"],
    )


def _released(given: dict[str, Any], task: Any, rows: int) -> Any:
    """The promise of a released file; what the model learns to write must have passed the mechanism as well."""
    from tacit.training.origin import released_text

    if given["released"] is None:
        return None
    label = task.target if task.name in ("classify", "regress", "tag") else None
    read = [column for role, column in task.columns.items() if role != label]
    return released_text(given["released"], given["data"], rows, read)
