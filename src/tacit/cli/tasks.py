"""What `tacit train` and `tacit federate` share: the options, the tasks with their columns, how a run is shown."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.errors import BadParameterError, StoppedError
from tacit.rounding import rounded_up

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
Delta = Annotated[str, typer.Option(help="What every probability may grow by; 'auto': well below 1 / records.")]
Length = Annotated[
    int | None,
    typer.Option(
        help="Word pieces of a record that count; of a question and its context, those that are read at a time.",
        show_default="64; 384 for 'answer'",
    ),
]
Clipping = Annotated[str, typer.Option(help="flat, per-layer, quantile or automatic.")]
Bound = Annotated[float, typer.Option("--bound", help="Longest gradient of one record.")]
Trials = Annotated[
    int, typer.Option(help="How many runs on these records you compare before keeping one: their budgets add up.")
]
Schedule = Annotated[str, typer.Option(help="Learning rate over time: linear, cosine, constant.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run in the output folder.")]
Seed = Annotated[int | None, typer.Option(help="Test seed: repeatable, and without any guarantee.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar and no card.")]

DEFAULT_RATES = {
    "lora": 1e-3, "ia3": 5e-3, "head": 5e-3, "bias": 5e-3, "frozen-lstm": 2e-3, "from scratch": 5e-3, "full": 5e-4,
    "no-embeddings": 5e-4,
}  # fmt: skip

USUAL_LENGTH = 64
USUAL_LENGTHS = {"answer": 384}

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

HELP = {
    "classify": "One label for each text, or pair of texts: tacit train classify reviews.csv --epsilon 3 -o model",
    "regress": "A number for each text, or pair of texts.",
    "tag": "A tag for each word; words and tags are separated by spaces.",
    "answer": "The part of a context that answers a question, word for word.",
    "write": "A causal language model of the texts (give --model).",
    "fill": "A masked language model of the texts (give --model).",
    "translate": "A text for a text: translation, summaries (give --model).",
}


def command_of(
    task: str,
    options: Callable[..., None],
    action: Callable[[dict[str, Any], dict[str, str]], None],
    more: Mapping[str, tuple[Any, Any]] | None = None,
) -> Any:
    """The command of a task: the shared options, one for each of its columns, and more that only it has.

    `options` is a function for its parameters only; `more` gives annotation and default by name.
    """

    def command(**given: Any) -> None:
        roles = {role: given.pop(f"{role}_column") for role in ROLES[task]}
        action(given, {role: column for role, column in roles.items() if column})

    columns = {
        f"{role}_column": (Annotated[str | None, typer.Option(help=f"The column of the {role}.")], usual)
        for role, usual in ROLES[task].items()
    }
    shared = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(options, eval_str=True).parameters.values()
    ]
    own = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual, annotation=annotation)
        for name, (annotation, usual) in {**columns, **(more or {})}.items()
    ]
    command.__signature__ = inspect.Signature([*shared, *own])  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in (*shared, *own)}
    return command


def read_rows(data: str, roles: Mapping[str, str]) -> list[dict[str, str]]:
    """The rows of a file, each as its values by role."""
    from tacit.text.files import read_columns

    columns = read_columns(data, list(dict.fromkeys(roles.values())))
    cells = {role: columns[column] for role, column in roles.items()}
    return [dict(zip(cells, values, strict=True)) for values in zip(*cells.values(), strict=True)]


def make_task(name: str, given: dict[str, Any], roles: dict[str, str], **options: Any) -> Any:
    from tacit.training.tasks import task_named

    labels = [label.strip() for label in (given["labels"] or "").split(",") if label.strip()]
    length = USUAL_LENGTHS.get(name, USUAL_LENGTH) if given["length"] is None else given["length"]
    return task_named(name)(length=length, columns=roles, labels=labels, **options)


def load_network(task: Any, given: dict[str, Any], strategy: str, **options: Any) -> tuple[Any, Any]:
    """The model with the strategy on it, and its tokenizer."""
    import torch

    from tacit.cli.terminal import warn
    from tacit.training.models import load_model
    from tacit.training.strategies import apply_strategy

    # New heads start the same in a resumed run; weights before training are public.
    torch.manual_seed(given["seed"] or 0)
    model, tokenizer = load_model(task, given["model"], tokenizer=given["tokenizer"], warn=warn, **options)
    return apply_strategy(model, strategy, rank=given["rank"]), tokenizer


def origin_of(given: dict[str, Any]) -> Any:
    """What is known about weights and words; see training/origin.py."""
    from tacit.training.models import is_from_scratch, model_folder
    from tacit.training.origin import Origin, starting_weights, with_tokenizer

    from_scratch = is_from_scratch(given["model"])
    found = Origin(from_scratch=True) if from_scratch else starting_weights(model_folder(given["model"]))
    if given["tokenizer"] or from_scratch:
        return with_tokenizer(found, given["tokenizer"] or "minilm")
    return found


def carry_out(run: Any, given: dict[str, Any], tested: list[dict[str, str]], *said: str) -> None:
    """Train with a bar, then show the card and the scores. Of several processes only the first one speaks."""
    from tacit.card import Card
    from tacit.cli.terminal import error_console, output_console, warn_if_nominal

    console = error_console()
    if run.team.first:
        run.check_folder(resume=given["resume"])
    loud = run.team.first and not given["quiet"]
    if loud:
        for line in said:
            console.print(line)
    try:
        guarantee = run_with_bar(run, resume=given["resume"], shown=loud and console.is_terminal)
    except KeyboardInterrupt:
        raise StoppedError(
            f"stopped: repeat the command with --resume to go on; {given['output']} holds the run"
        ) from None
    if loud:
        if run.checked is not None:
            console.print(f"gradients by '{run.checked.engine}', exact to {rounded_up(run.checked.deviation, 1)}")
        Card(guarantee).print_to(output_console())
    if tested and run.team.first:
        show_scores(run, tested, given["test"])
    elif loud and run.task.name in ROLES:
        console.print(how_to_score(given["output"]))
    if run.team.first:
        warn_if_nominal(Card(guarantee))
    run.team.leave()


def how_to_score(folder: Path, *, after_training: bool = True) -> str:
    """What to do for a score: none is computed on the private records, about which it would tell something."""
    at_once = " (--test ROWS does so right after training)" if after_training else ""
    return (
        f"No score yet: tacit predict {folder} ROWS --score compares with what is true of rows that are not private"
        f"{at_once}. A score on private rows is not covered by the card."
    )


def noise_of(plan: Any) -> str:
    """The noise of a plan in words."""
    if not plan.private:
        return "without noise"
    return f"noise {plan.multiplier:.3f} x the bound, delta {rounded_up(plan.delta)}"


def run_with_bar(run: Any, *, resume: bool, shown: bool) -> Any:
    """Train with a bar; whoever runs frozen layers beforehand shows that too."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from tacit.cli.terminal import error_console

    with Progress(
        BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn(), console=error_console(), disable=not shown
    ) as bar:
        line = bar.add_task("checking the gradients", total=run.plan.steps)

        def show(now: Any) -> None:
            private = (
                f", clipped {now.facts.shortened:.0%}, epsilon {rounded_up(now.epsilon, 3)}" if run.plan.private else ""
            )
            said = f"step {now.step:,} of {now.steps:,}, loss {now.facts.loss:.3f}{private}"
            bar.update(line, completed=now.step, description=said)

        def prepared(done: int, total: int) -> None:
            bar.update(line, description=f"running the frozen layers once: {done:,} of {total:,} records")

        if hasattr(run, "prepared"):
            run.prepared = prepared
        return run.run(show, resume=resume)


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
