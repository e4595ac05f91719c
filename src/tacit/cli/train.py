"""`tacit train`: models under differential privacy; `tacit train check` proves that a model can be trained so."""

import inspect
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.selective import selective
from tacit.errors import BadInputError, BadParameterError, StoppedError

app = typer.Typer(
    help="Train a model so that no single record can be recognized in it; name the task first: tacit train classify …",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Data = Annotated[str, typer.Argument(metavar="DATA", help="The private records: csv, tsv, jsonl, parquet (also .gz).")]
Model = Annotated[str, typer.Option("--model", help="minilm, bilstm (from scratch), a folder, or a name on the hub.")]
Strategy = Annotated[
    str | None,
    typer.Option(
        help="What is trained: bias (default for one label or number), last-2 (any number; default for tags), lora "
        "(default otherwise), ia3, head, frozen-lstm, no-embeddings, full (default from scratch)."
    ),
]
Output = Annotated[Path, typer.Option("-o", "--output", help="The folder for the model and its privacy card.")]
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
Test = Annotated[
    str | None, typer.Option("--test", help="Rows to score the finished model on. They must not be private.")
]
Tokenizer = Annotated[
    str | None, typer.Option("--tokenizer", help="Another tokenizer: a folder ('tacit vocabulary' makes private ones).")
]
Rank = Annotated[int, typer.Option(help="Rank of the lora matrices.")]
Labels = Annotated[
    str | None,
    typer.Option(help="All labels, with commas, if they are known: then DATA does not even show which ones occur."),
]
Curves = Annotated[bool, typer.Option("--tensorboard", help="Also log for TensorBoard (private/tensorboard).")]
Delta = Annotated[str, typer.Option(help="Chance of failure; 'auto' takes one well below 1 / records.")]
Epochs = Annotated[float, typer.Option(help="Passes over the data, on average.")]
BatchSize = Annotated[int, typer.Option("--batch", help="Records per step, on average; large batches need less noise.")]
Rate = Annotated[float | None, typer.Option("--learning-rate", help="By default 5e-4 to 5e-3, by strategy.")]
Length = Annotated[int, typer.Option(help="Word pieces of a record that count.")]
Clipping = Annotated[str, typer.Option(help="flat, per-layer, quantile or automatic.")]
Bound = Annotated[float, typer.Option("--bound", help="Longest gradient of one record.")]
Replace = Annotated[
    bool, typer.Option("--replace-one", help="Neighbors differ by replacing a record (twice the sensitivity).")
]
Trials = Annotated[
    int, typer.Option(help="How many runs on these records you compare before keeping one: their budgets add up.")
]
Engine = Annotated[str, typer.Option(help="Gradient engine: auto, taps, vmap, loop, opacus.")]
Physical = Annotated[int, typer.Option(help="Records worked on at a time; no influence on the result.")]
Optimizer = Annotated[str, typer.Option(help="adamw, adam or sgd.")]
Schedule = Annotated[str, typer.Option(help="Learning rate over time: linear, cosine, constant.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run in the output folder.")]
Seed = Annotated[int | None, typer.Option(help="Test seed: repeatable, and without any guarantee.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar and no card.")]

USUAL_STRATEGIES = {"classify": "bias", "regress": "bias", "tag": "last-2"}
DEFAULT_RATES = {
    "lora": 1e-3, "ia3": 5e-3, "head": 5e-3, "bias": 5e-3, "frozen-lstm": 2e-3, "from scratch": 5e-3, "full": 5e-4,
    "no-embeddings": 5e-4,
}  # fmt: skip


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
    length: Length = 64,
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


ROLES: dict[str, dict[str, str | None]] = {
    "classify": {"text": "text", "label": "label", "pair": None},
    "regress": {"text": "text", "label": "label", "pair": None},
    "tag": {"text": "tokens", "tags": "tags"},
    "answer": {"question": "question", "context": "context", "answer": "answer"},
    "write": {"text": "text"},
    "fill": {"text": "text"},
    "translate": {"source": "source", "target": "target"},
}
"""The columns of each task and their usual names; None: only if named."""

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
    "regress": {
        "pooling": (POOLING, "auto"),
        "label_range": (
            Annotated[str, typer.Option(help="Smallest and largest possible label, known beforehand, as in 0,5.")],
            "-1,1",
        ),
    },
}
"""Options that only one task has: annotation and default."""

HELP = {
    "classify": "One label for each text, or pair of texts: tacit train classify reviews.csv --epsilon 3 -o model",
    "regress": "A number for each text, or pair of texts.",
    "tag": "A tag for each word; words and tags are separated by spaces.",
    "answer": "The part of a context that answers a question, word for word.",
    "write": "A causal language model of the texts (give --model).",
    "fill": "A masked language model of the texts (give --model).",
    "translate": "A text for a text: translation, summaries (give --model).",
}


def _command(task: str) -> Any:
    """The command of a task: the shared options, and one for each of its columns."""

    def command(**given: Any) -> None:
        roles = {role: given.pop(f"{role}_column") for role in ROLES[task]}
        more = {name: given.pop(name) for name in MORE.get(task, {})}
        given["pooling"] = more.pop("pooling", "auto")
        _train(task, given, {role: column for role, column in roles.items() if column}, _task_options(**more))

    shared = inspect.signature(_train_command, eval_str=True)
    columns = [
        inspect.Parameter(
            f"{role}_column",
            inspect.Parameter.KEYWORD_ONLY,
            default=usual,
            annotation=Annotated[str | None, typer.Option(help=f"The column of the {role}.")],
        )
        for role, usual in ROLES[task].items()
    ]
    columns += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual, annotation=annotation)
        for name, (annotation, usual) in MORE.get(task, {}).items()
    ]
    options = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in shared.parameters.values()]
    command.__signature__ = inspect.Signature([*options, *columns])  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in (*options, *columns)}
    return command


for _task, _help in HELP.items():
    app.command(_task, help=_help)(_command(_task))
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
    from tacit.training.models import load_model
    from tacit.training.strategies import apply_strategy
    from tacit.training.tasks import task_named

    wanted = task_named(task)(labels=["a", "b", "c"])
    network, tokenizer = load_model(wanted, model)
    network = apply_strategy(network, strategy)
    _, result = choose(network, wanted.loss, wanted.probes(tokenizer), engine)
    console = output_console()
    console.print(
        f"engine {result.engine}: norms within {result.norm_deviation:.1e}, clipped sums within "
        f"{result.sum_deviation:.1e} of one example at a time ({result.parameters} weights, {result.examples} examples)"
    )
    for name, reason in result.refused.items():
        console.print(f"not {name}: {reason}")


def _task_options(label_range: str | None = None, label_smoothing: float | None = None) -> dict[str, Any]:
    if label_smoothing is not None:
        return {"smoothing": label_smoothing}
    if label_range is None:
        return {}
    try:
        low, high = (float(part) for part in label_range.split(","))
    except ValueError:
        raise BadParameterError(f"--label-range is two numbers with a comma, as in 0,5, not '{label_range}'") from None
    return {"mean": (low + high) / 2, "scale": (high - low) / 2}


def _train(task_name: str, given: dict[str, Any], roles: dict[str, str], options: dict[str, Any]) -> None:
    from dataclasses import replace

    import torch

    from tacit.card import Card
    from tacit.cli.terminal import error_console, output_console
    from tacit.training.models import is_from_scratch, load_model
    from tacit.training.run import Settings, TrainingRun
    from tacit.training.strategies import apply_strategy
    from tacit.training.tasks import task_named
    from tacit.training.team import Team

    console = error_console()
    rows = _rows(given["data"], roles)
    tested = _rows(given["test"], roles) if given["test"] else []
    task = task_named(task_name)(
        length=given["length"],
        columns=roles,
        labels=[label.strip() for label in (given["labels"] or "").split(",") if label.strip()],
        **options,
    )
    task.learn(rows)
    plan = _plan(given, len(rows))
    from_scratch = is_from_scratch(given["model"])
    strategy = given["strategy"] or ("full" if from_scratch else USUAL_STRATEGIES.get(task_name, "lora"))
    settings = Settings(
        optimizer=given["optimizer"],
        learning_rate=given["learning_rate"]
        or usual_rate("from scratch" if from_scratch else strategy, private=plan.private),
        schedule=given["schedule"],
        clipping=given["clipping"],
        bound=given["bound"],
        engine=given["engine"],
        physical=given["physical"],
        strategy=strategy,
        model=given["model"],
        tensorboard=given["tensorboard"],
    )
    # New heads start the same in a resumed run; weights before training are public.
    torch.manual_seed(given["seed"] or 0)
    model, tokenizer = load_model(task, given["model"], tokenizer=given["tokenizer"], pooling=given["pooling"])
    model = apply_strategy(model, strategy, rank=given["rank"])
    team = Team.from_environment()
    run = TrainingRun(
        task, model, tokenizer, rows, plan, settings, given["output"], given["seed"], given["trials"], console.print,
        replace(origin_of(given), public=given["public"], released=_released(given, task, len(rows))), team,
    )  # fmt: skip
    if team.first:
        run.check_folder(resume=given["resume"])
    loud = team.first and not given["quiet"]
    if loud:
        noise = (
            f", noise {plan.multiplier:.3f} x the bound, delta {plan.delta:g}" if plan.private else ", without noise"
        )
        console.print(f"{len(rows):,} records, {plan.steps:,} steps of about {plan.batch:,}{noise}")
    try:
        guarantee = run_with_bar(run, given, shown=loud and console.is_terminal)
    except KeyboardInterrupt:
        raise StoppedError(
            f"stopped: repeat the command with --resume to go on; {given['output']} holds the run"
        ) from None
    if loud:
        if run.checked is not None:
            console.print(f"gradients by '{run.checked.engine}', exact to {run.checked.norm_deviation:.0e}")
        Card(guarantee).print_to(output_console())
    if tested and team.first:
        show_scores(run, tested, given["test"])
    team.leave()


def _rows(data: str, roles: dict[str, str]) -> list[dict[str, str]]:
    from tacit.text.files import read_columns

    columns = read_columns(data, list(dict.fromkeys(roles.values())))
    cells = {role: columns[column] for role, column in roles.items()}
    return [dict(zip(cells, values, strict=True)) for values in zip(*cells.values(), strict=True)]


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
    )


def origin_of(given: dict[str, Any]) -> Any:
    """What is known about weights and words; see training/origin.py."""
    from dataclasses import replace

    from tacit.training.models import is_from_scratch, model_folder
    from tacit.training.origin import Origin, starting_weights

    found = (
        Origin(from_scratch=True) if is_from_scratch(given["model"]) else starting_weights(model_folder(given["model"]))
    )
    if given["tokenizer"]:
        found = replace(found, vocabulary=starting_weights(given["tokenizer"]).vocabulary)
    return found


def _released(given: dict[str, Any], task: Any, rows: int) -> Any:
    """The promise of a released file; what the model learns to write must have passed the mechanism as well."""
    from tacit.training.origin import released_text

    if given["released"] is None:
        return None
    label = task.target if task.name in ("classify", "regress", "tag") else None
    read = [column for role, column in task.columns.items() if role != label]
    return released_text(given["released"], given["data"], rows, read)


def run_with_bar(run: Any, given: dict[str, Any], *, shown: bool) -> Any:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from tacit.cli.terminal import error_console

    with Progress(
        BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn(), console=error_console(), disable=not shown
    ) as bar:
        line = bar.add_task("checking the gradients", total=run.plan.steps)

        def show(now: Any) -> None:
            private = f", clipped {now.facts.shortened:.0%}, epsilon {now.epsilon:.2f}" if run.plan.private else ""
            said = f"step {now.step:,} of {now.steps:,}, loss {now.facts.loss:.3f}{private}"
            bar.update(line, completed=now.step, description=said)

        def prepared(done: int, total: int) -> None:
            bar.update(line, description=f"running the frozen layers once: {done:,} of {total:,} records")

        run.prepared = prepared
        return run.run(show, resume=given["resume"])


def show_scores(run: Any, rows: list[dict[str, str]], name: str) -> None:
    from tacit.cli.reports import deliver
    from tacit.evaluate.predictions import prediction_section
    from tacit.report import Report
    from tacit.training.prediction import predict_rows

    task = run.task
    found = predict_rows(task, run.model, run.tokenizer, rows)
    truth = [row[task.target] for row in rows] if task.target else found
    section = prediction_section(task.name, truth, found, known=task.labels, title=f"Scores on {name}")
    deliver(Report("Scores", [section]), None, None, as_json=False, force=False)


def usual_rate(strategy: str, *, private: bool) -> float:
    # Noise allows, and large batches need, larger steps than usual.
    return DEFAULT_RATES.get(strategy, 1e-3) * (1.0 if private else 0.2)


def delta_of(given: str) -> float | None:
    if given == "auto":
        return None
    try:
        return float(given)
    except ValueError:
        raise BadParameterError(f"delta is a number or 'auto', not '{given}'") from None
