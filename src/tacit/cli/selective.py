"""`tacit train selective`: learn the harmless part of texts without noise, and the sensitive places privately."""

import secrets
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.errors import BadInputError, BadParameterError, StoppedError

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)

USUAL_MODELS = {"write": "smollm2", "fill": "minilm", "classify": "minilm"}
FIRST_RATES = 0.2
"""Without noise, smaller steps than the private phase takes."""


@app.command()
def selective(
    data: Annotated[str, typer.Argument(metavar="DATA", help="The private records (csv, tsv, jsonl, txt …).")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder for the model and its privacy card.")],
    epsilon: Annotated[float, typer.Option(help="The privacy budget of the second, private phase.")],
    sensitive: Annotated[
        str,
        typer.Option(
            "--sensitive", help="What is sensitive: 'patterns', 'spacy', 'spacy:PIPELINE', or a file, one word a line."
        ),
    ] = "patterns",
    first: Annotated[
        str,
        typer.Option(
            "--first",
            help="First phase: 'redacted' (only redacted places are protected), or for whole records 'public' or "
            "'private'.",
        ),
    ] = "redacted",
    public_data: Annotated[
        str | None, typer.Option("--public-data", help="With --first public: a file of public texts.")
    ] = None,
    public: Annotated[
        str, typer.Option("--public", metavar="NAME", help="The name by which that text is known to be public.")
    ] = "",
    first_epsilon: Annotated[
        float | None, typer.Option("--first-epsilon", help="With --first private: its budget, which is added.")
    ] = None,
    task: Annotated[str, typer.Option(help="write, fill or classify.")] = "write",
    text_column: Annotated[str, typer.Option("--text-column", help="The column of texts.")] = "text",
    label_column: Annotated[str, typer.Option("--label-column", help="For classify: the column of labels.")] = "label",
    model: Annotated[
        str | None,
        typer.Option(
            "--model", help="A folder or a hub name; by default 'smollm2' for write, 'minilm' for fill and classify."
        ),
    ] = None,
    strategy: Annotated[str, typer.Option(help="What is trained: lora, full, last-2 …")] = "lora",
    delta: Annotated[
        str, typer.Option(help="What every probability may grow by; 'auto': well below 1 / records.")
    ] = "auto",
    first_epochs: Annotated[float, typer.Option("--first-epochs", help="Passes of the first phase.")] = 1.0,
    epochs: Annotated[float, typer.Option(help="Passes of the second phase, on average.")] = 5.0,
    batch: Annotated[int, typer.Option("--batch", help="Records per private step, on average.")] = 256,
    first_batch: Annotated[int, typer.Option("--first-batch", help="Records per step without noise.")] = 32,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", help="Of the private phase; as in 'tacit train'.")
    ] = None,
    length: Annotated[int, typer.Option(help="Word pieces of a record that count.")] = 64,
    bound: Annotated[float, typer.Option("--bound", help="Longest gradient of one record.")] = 1.0,
    trials: Annotated[int, typer.Option(help="How many such runs you compare before keeping one.")] = 1,
    physical: Annotated[int, typer.Option(help="Records worked on at a time; no influence on the result.")] = 32,
    show: Annotated[int, typer.Option("--show", help="Only show so many redacted texts (private), and stop.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run.")] = False,
    seed: Annotated[int | None, typer.Option(help="Test seed: repeatable, and without any guarantee.")] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar and no card.")] = False,
) -> None:
    """Fine-tune twice: on redacted text without noise, then on the original text under differential privacy.

    The promise covers what was redacted, and nothing else: a name that the detector misses is learned without any
    protection. '--first public' and '--first private' keep the promise to whole records.

    Example: tacit train selective letters.csv --sensitive patterns --epsilon 3 -o writer
    """
    given = dict(locals())
    given["model"] = model or USUAL_MODELS.get(task, "")
    if show < 0:
        raise BadParameterError(f"--show takes a number of texts, such as 20, not {show}")
    kind = _kind(given)
    redaction, rule, detect = _detector(sensitive)
    rows = _rows(given)
    from tacit.training.selective import redact_rows

    redacted = redact_rows(rows, ["text"], detect)
    if show:
        for row in redacted.rows[:show]:
            typer.echo(row["text"])
        return
    if not redacted.removed:
        raise BadInputError(
            f"'{sensitive}' finds nothing sensitive in these texts, so nothing would be protected: give another "
            "--sensitive, or train with 'tacit train'"
        )
    if not quiet:
        typer.echo(
            f"redacted: {redacted.removed:,} of {redacted.tokens:,} words ({redacted.share:.1%}) in "
            f"{redacted.touched:,} of {len(rows):,} texts; look at some with --show 20 (for your eyes only)",
            err=True,
        )
    try:
        _run(given, kind, rows, redacted.rows, redaction, rule)
    except KeyboardInterrupt:
        raise StoppedError(f"stopped: repeat the command with --resume to go on; {output} holds the run") from None


def _kind(given: dict[str, Any]) -> Any:
    from tacit.training.selective import FirstKind

    try:
        kind = FirstKind(given["first"])
    except ValueError:
        raise BadParameterError(
            f"the first phase is redacted, public or private, not '{given['first']}': see --first"
        ) from None
    if (kind is FirstKind.PUBLIC) != (given["public_data"] is not None):
        raise BadParameterError("--first public and --public-data belong together: give both or none")
    if kind is FirstKind.PUBLIC and not given["public"].strip():
        raise BadParameterError("name the public text with --public NAME: it is learned without any protection")
    if (kind is FirstKind.PRIVATE) != (given["first_epsilon"] is not None):
        raise BadParameterError("--first private and --first-epsilon belong together: give both or none")
    return kind


def _detector(name: str) -> tuple[str, str, Any]:
    """The name of the redaction for the card, what tells it from others (private), and the detector."""
    from tacit.text.sensitive import detector
    from tacit.training.selective import list_detector, list_digest

    if name == "none":
        raise BadParameterError("selective training needs something sensitive: give patterns, spacy or a word list")
    if Path(name).is_file():
        # Promises about different lists must not add up, and a hash of a list of names would give it away.
        return f"a word list (of the run {secrets.token_hex(4)})", list_digest(name), list_detector(name)
    found = detector(name)
    assert found is not None
    return f"the detector '{name}'", f"the detector '{name}'", found


def _rows(given: dict[str, Any]) -> list[dict[str, str]]:
    return _read(given["data"], given)


def _read(path: str, given: dict[str, Any]) -> list[dict[str, str]]:
    from tacit.text.files import read_columns

    roles = _roles(given)
    found = read_columns(path, list(roles.values()))
    return [
        dict(zip(roles, cells, strict=True)) for cells in zip(*(found[name] for name in roles.values()), strict=True)
    ]


def _roles(given: dict[str, Any]) -> dict[str, str]:
    """The columns of the task, by role; they are saved with the model, which asks for them again to predict."""
    if given["task"] not in USUAL_MODELS:
        raise BadParameterError(f"selective training knows write, fill and classify, not '{given['task']}'")
    text = {"text": given["text_column"]}
    return {**text, "label": given["label_column"]} if given["task"] == "classify" else text


def _run(given: dict[str, Any], kind: Any, rows: Any, redacted: Any, redaction: str, rule: str) -> None:
    import torch

    from tacit.card import Card
    from tacit.cli.synthesize import load_public, number_or_auto
    from tacit.cli.terminal import error_console, output_console, warn_if_nominal
    from tacit.cli.training import how_to_score
    from tacit.training.models import model_folder
    from tacit.training.origin import starting_weights
    from tacit.training.plan import Plan
    from tacit.training.run import Settings
    from tacit.training.selective import FirstKind, TwoPhases, needed_adjacency
    from tacit.training.start import usual_rate
    from tacit.training.strategies import apply_strategy
    from tacit.training.tasks import task_named

    if given["batch"] > len(rows):
        raise BadInputError(
            f"there are {len(rows):,} rows, fewer than a batch of {given['batch']:,}: give a smaller --batch"
        )
    task = task_named(given["task"])(length=given["length"], columns=_roles(given))
    task.learn(rows)
    delta = number_or_auto(given["delta"])
    adjacency = needed_adjacency(kind)
    # Both phases and all trials speak of the same records, and share one delta.
    releases = given["trials"] * (2 if kind is FirstKind.PRIVATE else 1)
    plan = Plan.calibrated(
        epsilon=given["epsilon"], records=len(rows), batch=given["batch"], epochs=given["epochs"], delta=delta,
        adjacency=adjacency, releases=releases,
    )  # fmt: skip
    first_rows = _read(given["public_data"], given) if kind is FirstKind.PUBLIC else redacted
    if kind is FirstKind.PRIVATE:
        first_plan = Plan.calibrated(
            epsilon=given["first_epsilon"], records=len(rows), batch=given["batch"], epochs=given["first_epochs"],
            delta=delta, adjacency=adjacency, releases=releases,
        )  # fmt: skip
    else:
        first_plan = Plan.without_privacy(
            records=len(first_rows), batch=min(given["first_batch"], len(first_rows)), epochs=given["first_epochs"]
        )
    rate = usual_rate(given["strategy"], private=True) if given["learning_rate"] is None else given["learning_rate"]
    shared = {"bound": given["bound"], "physical": given["physical"], "strategy": given["strategy"]}
    settings = Settings(learning_rate=rate, model=given["model"], **shared)
    first_rate = rate if first_plan.private else rate * FIRST_RATES
    first_settings = Settings(learning_rate=first_rate, model=given["model"], **shared)

    def load(folder: Path | None) -> tuple[Any, Any]:
        # New weights start the same in a resumed run; weights before training are public.
        torch.manual_seed(given["seed"] or 0)
        network, tokenizer = load_public(task, given["model"] if folder is None else str(folder))
        return apply_strategy(network, given["strategy"]), tokenizer

    console = error_console()
    phases = TwoPhases(
        task, load, rows, first_rows, kind, redaction, first_plan, plan, first_settings, settings, given["output"],
        given["public"], given["seed"], given["trials"], console.print,
        starting_weights(model_folder(given["model"])), rule,
    )  # fmt: skip
    phases.check_folder(resume=given["resume"])
    guarantee = _with_bar(phases, resume=given["resume"], shown=not given["quiet"] and console.is_terminal)
    if not given["quiet"]:
        Card(guarantee).print_to(output_console())
        console.print(how_to_score(given["output"], after_training=False))
    warn_if_nominal(Card(guarantee))


def _with_bar(phases: Any, *, resume: bool, shown: bool) -> Any:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from tacit.cli.terminal import error_console

    with Progress(
        BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn(), console=error_console(), disable=not shown
    ) as bar:
        steps = {1: phases.first_plan.steps, 2: phases.plan.steps}
        lines = {phase: bar.add_task(f"phase {phase}", total=count) for phase, count in steps.items()}

        def show(phase: int, now: Any) -> None:
            said = f"phase {phase}: step {now.step:,} of {now.steps:,}, loss {now.facts.loss:.3f}"
            bar.update(lines[phase], completed=now.step, description=said)

        return phases.run(show, resume=resume)
