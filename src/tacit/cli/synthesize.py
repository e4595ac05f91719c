"""`tacit synthesize`: a model learns to write like the private rows, under differential privacy, and writes others."""

import secrets
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.errors import BadInputError, BadParameterError, StoppedError
from tacit.rounding import rounded_up

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)

ENUMERATED = 10_000
"""Candidates of a canary format that are all scored; of more, a sample."""

WRITING, PRIVACY, TRAINING, CHECK, RUN = "Writing", "Privacy", "Training", "Check (private)", "Running"


@app.command()
def synthesize(
    data: Annotated[
        str | None,
        typer.Argument(metavar="DATA", help="The private rows (csv, tsv, jsonl, parquet; also .gz)."),
    ] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The file of synthetic rows; its card stands beside it.")
    ] = Path("synthetic.csv"),
    number: Annotated[int, typer.Option("-n", "--number", help="Rows to write.")] = 1_000,
    text_column: Annotated[str, typer.Option("--text-column", help="The column of texts.")] = "text",
    label_column: Annotated[
        list[str] | None, typer.Option("-l", "--label-column", help="A column of labels; may be repeated.")
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--labels",
            metavar="COLUMN=A,B,C",
            help="All names of a label column, if they are known; otherwise those in DATA are declared public.",
        ),
    ] = None,
    keep_model: Annotated[
        Path | None,
        typer.Option("--keep-model", metavar="DIR", help="The folder of the model; by default beside the output."),
    ] = None,
    from_model: Annotated[
        Path | None,
        typer.Option("--from-model", metavar="DIR", help="Write more with such a folder, at no further cost."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="The privacy budget of one record, for all; 'inf': none.", rich_help_panel=PRIVACY),
    ] = None,
    delta: Annotated[
        str,
        typer.Option(
            help="What every probability may grow by; 'auto': well below 1 / records.", rich_help_panel=PRIVACY
        ),
    ] = "auto",
    count_share: Annotated[
        float, typer.Option(help="Part of epsilon that pays for the label counts.", rich_help_panel=PRIVACY)
    ] = 0.05,
    balanced: Annotated[
        bool,
        typer.Option(
            "--balanced", help="As many rows for every label, and no budget for counts.", rich_help_panel=PRIVACY
        ),
    ] = False,
    replace_one: Annotated[
        bool,
        typer.Option(
            "--replace-one",
            help="Neighbors differ by replacing a record (twice the sensitivity).",
            rich_help_panel=PRIVACY,
        ),
    ] = False,
    trials: Annotated[
        int, typer.Option(help="How many such runs you compare before keeping one.", rich_help_panel=PRIVACY)
    ] = 1,
    model: Annotated[
        str,
        typer.Option(
            "--model", help="'smollm2', a folder, or a hub name: a causal language model.", rich_help_panel=TRAINING
        ),
    ] = "smollm2",
    strategy: Annotated[
        str, typer.Option(help="What is trained: lora, full, last-2 …", rich_help_panel=TRAINING)
    ] = "lora",
    epochs: Annotated[float, typer.Option(help="Passes over the rows, on average.", rich_help_panel=TRAINING)] = 5.0,
    batch: Annotated[int, typer.Option("--batch", help="Rows per step, on average.", rich_help_panel=TRAINING)] = 256,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", help="As in 'tacit train'.", rich_help_panel=TRAINING)
    ] = None,
    length: Annotated[
        int, typer.Option(help="Word pieces of a row, control codes included.", rich_help_panel=TRAINING)
    ] = 64,
    bound: Annotated[
        float, typer.Option("--bound", help="Longest gradient of one record.", rich_help_panel=TRAINING)
    ] = 1.0,
    physical: Annotated[
        int, typer.Option(help="Rows worked on at a time; no influence on the result.", rich_help_panel=TRAINING)
    ] = 32,
    temperature: Annotated[float, typer.Option(help="Below 1: safer texts.", rich_help_panel=WRITING)] = 1.0,
    top_p: Annotated[float, typer.Option(help="Nucleus sampling.", rich_help_panel=WRITING)] = 0.95,
    sample_seed: Annotated[
        int | None,
        typer.Option(help="Repeat a writing; otherwise another one each time. It is public.", rich_help_panel=WRITING),
    ] = None,
    shortest: Annotated[int, typer.Option(help="Fewest words of a text.", rich_help_panel=WRITING)] = 2,
    keep_duplicates: Annotated[
        bool, typer.Option("--keep-duplicates", help="Texts may repeat each other.", rich_help_panel=WRITING)
    ] = False,
    perplexity: Annotated[
        float | None,
        typer.Option(help="Drop texts that the public model finds less likely than this.", rich_help_panel=WRITING),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            metavar="REPORT",
            help="Compare the finished texts with DATA and write a private report (html or json).",
            rich_help_panel=CHECK,
        ),
    ] = None,
    canaries: Annotated[
        Path | None,
        typer.Option(
            "--canaries", help="Coins of 'tacit audit canaries' whose texts stand in DATA.", rich_help_panel=CHECK
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a stopped run.", rich_help_panel=RUN)] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.", rich_help_panel=RUN)] = False,
    seed: Annotated[int | None, typer.Option(help="Test seed of the noise: no guarantee.", rich_help_panel=RUN)] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar and no card.", rich_help_panel=RUN)] = (
        False
    ),
) -> None:
    """Write synthetic rows: text with labels that may be shared, from a model trained under differential privacy.

    Budget is spent on the model and on the label counts; writing costs nothing, so a kept model writes any amount.

    Example: tacit synthesize reviews.csv --label-column stars --epsilon 3 -n 1000 -o synthetic.csv

    Example: tacit synthesize --from-model synthetic-model -n 5000 -o more.csv
    """
    given = dict(locals())
    _check_files(given)
    folder = from_model or keep_model or output.with_name(f"{output.name.split('.')[0]}-model")
    try:
        if from_model is None:  # a folder that is finished is only compared with what is asked for
            _train(given, folder)
        _write(given, folder)
    except KeyboardInterrupt:
        raise StoppedError("stopped: repeat the command with --resume to go on; nothing is lost") from None


def _check_files(given: dict[str, Any]) -> None:
    """Say what is missing before hours of work, not after."""
    from tacit.report.parts import refuse_existing
    from tacit.text.files import format_of

    output, check = given["output"], given["check"]
    if given["from_model"] is None and given["data"] is None:
        raise BadInputError("give the private rows, or --from-model DIR to write with a model that is there already")
    if given["from_model"] is None and given["epsilon"] is None:
        raise BadParameterError("say how much privacy a record gets: --epsilon 3, or --epsilon inf for none at all")
    if given["from_model"] is not None and (given["epsilon"] is not None or given["keep_model"] is not None):
        raise BadParameterError("a model that is there has its budget already: leave --epsilon and --keep-model out")
    if check is None and given["canaries"] is not None:
        raise BadParameterError("--canaries belong to a check: name its report with --check REPORT")
    if check is not None and given["data"] is None:
        raise BadInputError("a check compares with the private rows: give DATA as well")
    format_of(str(output))
    for path in (output, check):
        if path is not None:
            refuse_existing(path, force=given["force"])


# Training ---------------------------------------------------------------------------------------------------------


def _train(given: dict[str, Any], folder: Path) -> None:
    import torch

    from tacit.cli.terminal import error_console
    from tacit.cli.training import TrainingBar
    from tacit.guarantee import Adjacency
    from tacit.training.origin import starting_weights
    from tacit.training.run import Settings
    from tacit.training.start import usual_rate
    from tacit.training.strategies import apply_strategy
    from tacit.training.synthesis import (
        Budget,
        ControlledWriting,
        WriterTraining,
        learn_codes,
        writing_plan,
    )

    console = error_console()
    columns = list(given["label_column"] or ())
    rows = _rows(given, columns)
    codes = learn_codes(rows, columns, _named(given["labels"] or (), columns))
    budget = Budget(given["epsilon"], given["count_share"])
    if given["batch"] > len(rows):
        raise BadInputError(
            f"there are {len(rows):,} rows, fewer than a batch of {given['batch']:,}: give a smaller --batch"
        )
    plan = writing_plan(
        budget,
        records=len(rows),
        batch=given["batch"],
        epochs=given["epochs"],
        counted=bool(columns) and not given["balanced"],
        delta=number_or_auto(given["delta"]),
        adjacency=Adjacency.REPLACE_ONE if given["replace_one"] else Adjacency.ADD_REMOVE,
        trials=given["trials"],
    )
    strategy = given["strategy"]
    usual, asked = usual_rate(strategy, private=plan.private), given["learning_rate"]
    settings = Settings(
        learning_rate=usual if asked is None else asked,
        bound=given["bound"],
        physical=given["physical"],
        strategy=strategy,
        model=given["model"],
    )
    task = ControlledWriting(length=given["length"], columns={"text": given["text_column"]}, codes=codes)
    # New weights start the same in a resumed run; weights before training are public.
    torch.manual_seed(given["seed"] or 0)
    network, tokenizer = load_public(task, given["model"])
    training = WriterTraining(
        rows, task, apply_strategy(network, strategy), tokenizer, plan, budget, settings, folder,
        given["text_column"], given["balanced"], given["seed"], given["trials"], console.print,
        starting_weights(given["model"]),
    )  # fmt: skip
    training.check_folder(resume=given["resume"])
    if not given["quiet"]:
        noise = f", noise {plan.multiplier:.3f} x the bound" if plan.private else ", without noise"
        counted = (
            f", label counts for epsilon {rounded_up(budget.for_counts(counted=True), 3)}" if training.counted else ""
        )
        console.print(f"{len(rows):,} records, {plan.steps:,} steps of about {plan.batch:,}{noise}{counted}")
    with TrainingBar(quiet=given["quiet"]) as bar:
        bar.begin(plan)
        training.run(bar.stepped, resume=given["resume"])


def _rows(given: dict[str, Any], columns: list[str]) -> list[dict[str, str]]:
    from tacit.text.files import read_columns

    text = given["text_column"]
    if text in columns:
        raise BadInputError(f"'{text}' cannot be the text and a label: name another --label-column")
    found = read_columns(given["data"], [text, *columns])
    cells = {"text": found[text], **{column: found[column] for column in columns}}
    return [dict(zip(cells, values, strict=True)) for values in zip(*cells.values(), strict=True)]


def _named(listed: Any, columns: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in listed:
        column, mark, names = item.partition("=")
        values = [name.strip() for name in names.split(",") if name.strip()]
        if not mark or not values or column not in columns:
            raise BadParameterError(
                f"--labels names the values of a label column, such as --labels stars=1,2,3,4,5, not '{item}'"
            )
        found[column] = values
    return found


def number_or_auto(given: str) -> float | None:
    """A delta from the command line."""
    if given == "auto":
        return None
    try:
        return float(given)
    except ValueError:
        raise BadParameterError(f"delta is a number or 'auto', not '{given}'") from None


def load_public(task: Any, name: str) -> tuple[Any, Any]:
    """A public model; 'smollm2' comes from its package."""
    from tacit.cli.terminal import warn
    from tacit.training.models import CAUSAL, load_model

    if name != "smollm2":
        return load_model(task, name, warn=warn)
    if task.model_class != CAUSAL:
        raise BadParameterError(f"'smollm2' writes texts: for '{task.name}' give another --model, such as minilm")
    import copy

    from tacit.documents.language_models import load_generator

    found = load_generator(name)
    return copy.deepcopy(found.model), found.tokenizer


# Writing ----------------------------------------------------------------------------------------------------------


def _write(given: dict[str, Any], folder: Path) -> None:
    from tacit.card import Card
    from tacit.cli.reports import progress_bars
    from tacit.cli.terminal import output_console, warn_if_nominal
    from tacit.text.files import partial_path, write_columns, write_whole
    from tacit.training.synthesis import (
        Draft,
        Filters,
        PrivateWriter,
        Sampling,
        causal_perplexity,
        corpus_guarantee,
        draft_settings,
        model_writer,
        write_rows,
    )

    writer = PrivateWriter.open(folder)
    filters = Filters(
        shortest=given["shortest"], duplicates=not given["keep_duplicates"], perplexity=given["perplexity"]
    )
    output: Path = given["output"]
    place = partial_path(output)
    seed = given["sample_seed"]
    if seed is None:
        seed = Draft.seed_of(place) if given["resume"] else None
    sampling = Sampling(given["temperature"], given["top_p"], seed=secrets.randbelow(1 << 31) if seed is None else seed)
    told = draft_settings(
        rows=given["number"], counts=writer.counts, filters=filters, sampling=sampling, task=writer.task,
        weights=writer.weights(),
    )  # fmt: skip
    if given["force"] and not given["resume"]:
        place.unlink(missing_ok=True)
    model, tokenizer = writer.load()
    judge = None
    if filters.perplexity is not None:
        judge = causal_perplexity(*load_public(writer.task, writer.base_model))
    draft = Draft(place, told, resume=given["resume"])
    with progress_bars(shown=not given["quiet"]) as told_progress:
        found = write_rows(
            model_writer(model, tokenizer, writer.task, sampling),
            writer.counts,
            given["number"],
            task=writer.task,
            filters=filters,
            sampling=sampling,
            judge=judge,
            draft=draft,
            progress=lambda done, total: told_progress("writing", done, total),
        )
        if not found.rows:
            raise BadInputError(
                f"none of {found.generated:,} texts passed the filters: raise epsilon or epochs, or lower --shortest"
            )
        columns = writer.task.codes.columns
        table: dict[str, list[str]] = {name: [c[i] for c, _ in found.rows] for i, name in enumerate(columns)}
        table[writer.text_column] = [text for _, text in found.rows]
        promised = corpus_guarantee(writer.guarantee, filters, sampling)
        card = Card(promised, _facts(given, table, writer.text_column))
        # The card first: no file of texts is there without one.
        write_whole(Path(f"{output}.card.json"), card.to_json())
        write_whole(Path(f"{output}.card.md"), card.to_markdown())
        write_columns(output, table, force=True)
        draft.remove()
        if given["check"] is not None:
            _check(given, writer, table[writer.text_column], model, tokenizer, told_progress)
    if not given["quiet"]:
        _say(found, output, folder)
        card.print_to(output_console())
    warn_if_nominal(card)


def _say(found: Any, output: Path, folder: Path) -> None:
    """What was written, and what was not."""
    from tacit.cli.terminal import error_console

    console = error_console()
    refused = ", ".join(f"{count:,} {reason}" for reason, count in sorted(found.refused.items()))
    console.print(
        f"{len(found.rows):,} rows -> {output}; model: {folder}" + (f"; refused: {refused}" if refused else ""),
        markup=False,
    )
    if found.missing:
        console.print(
            f"{sum(found.missing.values()):,} rows of {len(found.missing):,} labels are missing: their texts did not "
            "pass the filters",
            markup=False,
        )


def _facts(given: dict[str, Any], table: dict[str, list[str]], text_column: str) -> Any:
    import datetime

    from tacit.card import ReleaseFacts
    from tacit.text.tokens import split

    lengths = [len(split(text)) for text in table[text_column]]
    words = ["tacit synthesize", f"-n {given['number']}"]
    words += [] if given["from_model"] is None else ["--from-model …"]
    return ReleaseFacts(
        rows=len(lengths),
        documents=len(lengths),
        units=sum(lengths),
        longest_document=max(lengths),
        longest_row=max(lengths),
        output=given["output"].name,
        command=" ".join(words),
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )


# The check --------------------------------------------------------------------------------------------------------


def _check(given: dict[str, Any], writer: Any, texts: list[str], model: Any, tokenizer: Any, told: Any) -> None:
    """An audit for the holder of the private rows; it changes nothing of what was written."""
    from tacit.audit.models.canaries import canary_section, exposures, load_canaries
    from tacit.audit.models.synthetic import (
        canaries_in,
        compare_with_private,
        copies_section,
        written_canaries_section,
    )
    from tacit.noise.source import new_source
    from tacit.report import Report
    from tacit.text.files import read_columns

    private = read_columns(given["data"], [writer.text_column])[writer.text_column]
    found = compare_with_private(texts, private, progress=lambda done, total: told("comparing", done, total))
    sections = [copies_section(found)]
    if given["canaries"] is not None:
        listed = load_canaries(given["canaries"])
        losses = _canary_losses(writer, model, tokenizer)
        sections += [
            canary_section(exposures(losses, listed, source=new_source(0), enumerated=ENUMERATED)),
            written_canaries_section(canaries_in(texts, listed)),
        ]
    report = Report("Synthetic text beside its private rows", sections, {"rows": len(private), "texts": len(texts)})
    report.save(given["check"], force=given["force"], private=True)
    for finding in report.findings:
        typer.echo(f"{finding.light.word}: {finding.name}: {finding.sentence}", err=True)
    typer.echo(f"report: {given['check']} (private: it speaks of the private rows; readable by you only)", err=True)


def _canary_losses(writer: Any, model: Any, tokenizer: Any) -> Any:
    """The loss of a text, the mean over the control codes of the most frequent labels: canaries may stand under any."""
    import numpy as np
    import torch

    counts = writer.counts.counts
    asked = sorted(counts, key=lambda combination: -counts[combination])[:4]

    def losses(texts: Any) -> Any:
        total = np.zeros(len(texts))
        with torch.inference_mode():
            for combination in asked:
                codes = dict(zip(writer.task.codes.columns, combination, strict=True))
                for start in range(0, len(texts), 64):
                    part = texts[start : start + 64]
                    encoded = [writer.task.encode({"text": text, **codes}, tokenizer, train=True) for text in part]
                    numbers = writer.task.collate(encoded, tokenizer)
                    pieces = (numbers["targets"] != -100).sum(1)
                    total[start : start + len(part)] += (writer.task.loss(model, numbers) * pieces).numpy()
        return total / len(asked)

    return losses
