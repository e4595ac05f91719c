"""`tacit rewrite`: a file in, a rewritten file and its privacy card out."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperCommand

from tacit.account.ledger import Subject, open_ledger
from tacit.card import Card, ReleaseFacts, for_file, plain_sentence, row_sentences
from tacit.catalog import DEFAULT_MECHANISM, DEFAULT_OF_LEVEL, build, find
from tacit.cli import terminal
from tacit.cli.engine import ADDRESS_HELP, ENGINE_HELP, LOCAL, uses_cluster
from tacit.cli.ledger import tell_if_new
from tacit.engines.charging import Charging
from tacit.engines.job import (
    AlreadyCompleteError,
    RewriteJob,
    check_input,
    check_output,
    check_output_name,
    choose_for,
    choose_output_format,
)
from tacit.engines.local import rewrite_file
from tacit.engines.notices import Notices
from tacit.engines.users import UserRule
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import NOTE, Guarantee, check_epsilon
from tacit.labels import LOCAL_ONLY, LabelRule
from tacit.rounding import exact
from tacit.text.files import (
    STANDARD_STREAM,
    Selection,
    format_of,
    open_table,
    suffix_format,
    write_whole,
)

CARD_KINDS: Final = ("json", "md", "html")
DIFF_DOCUMENTS: Final = 10
FILES, PRIVACY, BUDGET, RUN = "Files and columns", "Privacy", "Spent budget", "Running"


class RewriteCommand(TyperCommand):
    """Lets `--diff` stand alone or with a number."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_diff_number(args))


def with_diff_number(arguments: Sequence[str]) -> list[str]:
    """`--diff` without a number means the default one."""
    result: list[str] = []
    for position, argument in enumerate(arguments):
        result.append(argument)
        following = arguments[position + 1] if position + 1 < len(arguments) else ""
        if argument == "--diff" and not following.isdigit():
            result.append(str(DIFF_DOCUMENTS))
    return result


app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command(cls=RewriteCommand)
def rewrite(
    input: str = typer.Argument(..., metavar="INPUT", help="The file to rewrite, or - for standard input."),
    output: str = typer.Option(
        STANDARD_STREAM, "-o", "--output", help="The file to write; by default standard output.", rich_help_panel=FILES
    ),
    column: list[str] = typer.Option(
        [],
        "-c",
        "--column",
        help="A column of texts to rewrite; may be repeated. By default the only column, or 'text'.",
        rich_help_panel=FILES,
    ),
    keep: list[str] = typer.Option(
        [],
        "-k",
        "--keep",
        help="A column to copy as it is, without any protection; may be repeated. All others are dropped.",
        rich_help_panel=FILES,
    ),
    format: str | None = typer.Option(
        None,
        help="Format of the input (txt, csv, tsv, tsv-raw, jsonl, parquet, or with .gz), if its name does not tell.",
        rich_help_panel=FILES,
    ),
    mechanism: str | None = typer.Option(
        None,
        "-m",
        "--mechanism",
        help=f"See 'tacit mechanisms'. By default {DEFAULT_MECHANISM}, or what --level asks for.",
        rich_help_panel=PRIVACY,
    ),
    level: str | None = typer.Option(
        None,
        help="What one secret is: 'word' (every word on its own) or 'document' (a whole text).",
        rich_help_panel=PRIVACY,
    ),
    epsilon: float | None = typer.Option(
        None,
        "-e",
        "--epsilon",
        help="The privacy budget of one token, document or user; smaller is more private.",
        rich_help_panel=PRIVACY,
    ),
    vectors: str | None = typer.Option(
        None, help="Public word vectors: a known name or a file.", rich_help_panel=PRIVACY
    ),
    option: list[str] = typer.Option(
        [],
        metavar="NAME=VALUE",
        help="Another option of the mechanism; may be repeated. 'tacit mechanisms NAME' lists them.",
        rich_help_panel=PRIVACY,
    ),
    user_column: str | None = typer.Option(
        None,
        help="The column that says who wrote a row: --epsilon is then the budget of a person (document level).",
        rich_help_panel=PRIVACY,
    ),
    user_mode: str = typer.Option(
        "divide",
        help="'divide' the budget over a user's rows, or 'concatenate' them into one text (rows sorted by user).",
        rich_help_panel=PRIVACY,
    ),
    documents_per_user: int = typer.Option(
        1, help="With 'divide': how many rows of a user are used; further ones are left out.", rich_help_panel=PRIVACY
    ),
    randomize: str | None = typer.Option(
        None,
        metavar="COLUMN",
        help="A column of labels to release by randomized response; needs --label-epsilon and --labels.",
        rich_help_panel=PRIVACY,
    ),
    label_epsilon: float | None = typer.Option(
        None,
        help="The budget of the label of a row (or of a user's labels); adds to --epsilon.",
        rich_help_panel=PRIVACY,
    ),
    labels: str | None = typer.Option(
        None,
        metavar="A,B,C",
        help="All labels that exist, from public knowledge: never read off the data.",
        rich_help_panel=PRIVACY,
    ),
    refuse_nominal: bool = typer.Option(
        False,
        "--refuse-nominal",
        envvar="TACIT_REFUSE_NOMINAL",
        help="Stop, before any noise is drawn, where the card would say that the bound no longer protects (exit 3).",
        rich_help_panel=PRIVACY,
    ),
    seed: int | None = typer.Option(
        None, help="Repeatable noise for tests. The output then has NO guarantee.", rich_help_panel=PRIVACY
    ),
    card: str = typer.Option(
        "json,md", help="Kinds of privacy cards beside the output: json, md, html.", rich_help_panel=PRIVACY
    ),
    card_file: Path | None = typer.Option(
        None, help="Write the card to this file (.json, .md or .html) as well.", rich_help_panel=PRIVACY
    ),
    ledger: str | None = typer.Option(
        None,
        metavar="FILE|URL",
        help="Write down what is spent in this ledger, and keep its limits ('tacit ledger --help').",
        rich_help_panel=BUDGET,
    ),
    dataset: str | None = typer.Option(
        None,
        help="Name of the data set in the ledger: releases of one name add up. By default the name of the input.",
        rich_help_panel=BUDGET,
    ),
    document_column: str | None = typer.Option(
        None,
        help="The column that names a document in the ledger; by default it is recognized by its text.",
        rich_help_panel=BUDGET,
    ),
    workers: int = typer.Option(1, "-w", "--workers", help="Processes to use.", rich_help_panel=RUN),
    engine: str = typer.Option(LOCAL, help=ENGINE_HELP, rich_help_panel=RUN),
    address: str | None = typer.Option(None, help=ADDRESS_HELP, rich_help_panel=RUN),
    resume: bool = typer.Option(False, "--resume", help="Go on with a run that was stopped.", rich_help_panel=RUN),
    force: bool = typer.Option(
        False, "--force", help="Overwrite the output, and throw away an unfinished run.", rich_help_panel=RUN
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Show the privacy card without reading any text.", rich_help_panel=RUN
    ),
    diff: int = typer.Option(
        0,
        metavar="[N]",
        help="Afterwards show the first N texts (10 if no N is given), original and rewritten. Shows PRIVATE text.",
        rich_help_panel=RUN,
        show_default=False,
    ),
    quiet: bool = typer.Option(False, "-q", "--quiet", help="No progress bar and no summary.", rich_help_panel=RUN),
) -> None:
    """Rewrite the texts of a file under differential privacy.

    Writes the rewritten file and, beside it, a privacy card that says what was promised.

    Columns that are not named are dropped.

    Example: tacit rewrite reviews.csv --column text --keep stars --epsilon 2 -o private.csv
    """
    kinds = card_kinds(card)
    dataset = name_in_ledger(input, ledger, dataset, document_column)
    on_cluster = uses_cluster(engine, address)
    if card_file is not None:
        card_kind(card_file)
    mechanism = chosen_mechanism(mechanism, level)
    users = None if user_column is None else UserRule(user_column, user_mode, documents_per_user)
    options = mechanism_options(epsilon, vectors, option)
    rule = label_rule(randomize, label_epsilon, labels)
    command = shown_command(mechanism, options, column, keep, seed, users, rule)
    if rule is not None and on_cluster:
        raise BadInputError(LOCAL_ONLY)
    if rule is not None and users is not None:
        rule = replace(rule, epsilon=users.epsilon_of_document(rule.epsilon))
    if users is not None and "epsilon" in options:
        # The budget is the user's: all texts of all rows share it, one in each column that is rewritten.
        options["epsilon"] = users.epsilon_of_document(check_epsilon(options["epsilon"]), max(1, len(set(column))))
    job = RewriteJob(
        mechanism=build(mechanism, options),
        input=input,
        output=output,
        columns=tuple(column),
        keep=tuple(keep),
        input_format=format,
        workers=workers,
        resume=resume,
        force=force,
        seed=seed,
        command=command,
        users=users,
        labels=rule,
        refuse_nominal=refuse_nominal,
    )
    if dry_run:
        show_plan(job, on_cluster=on_cluster)
        return
    if on_cluster and diff:
        raise BadInputError("--diff needs --engine local: with a cluster, no text comes to this process")
    if diff and output == STANDARD_STREAM and not terminal.is_terminal_output():
        raise BadInputError("--diff shows private text, so it needs a file (-o) or a terminal as output, not a pipe")
    try:
        if on_cluster:
            from tacit.engines.cluster.rewrite import check_cluster_output

            check_cluster_output(job)
        else:
            check_input(job)
            check_output(job)
    except AlreadyCompleteError as done:
        typer.echo(str(done), err=True)
        return
    with charging(ledger, dataset, document_column) as charged:
        job = replace(job, charging=charged)
        run(job, kinds, card_file, diff, quiet, on_cluster=on_cluster, address=address, ledger=ledger)


def run(
    job: RewriteJob,
    kinds: Sequence[str],
    card_file: Path | None,
    diff: int,
    quiet: bool,
    *,
    on_cluster: bool = False,
    address: str | None = None,
    ledger: str | None = None,
) -> None:
    """Do the job, write the cards just before the output gets its name, and say what happened."""
    started = time.monotonic()
    console = terminal.error_console()
    preview = Preview(diff)
    notices = Notices(job.mechanism, terminal.warn)

    def seen(originals: list[str], released: list[str] | None) -> None:
        preview.add(originals, released)
        notices.add(originals)

    card_places: list[str] = []
    written: list[Card] = []

    def warn_of(promised: Guarantee) -> None:
        if job.workers > 1 and NOTE in promised.parameters:  # with one worker this process prepares, and warns itself
            terminal.warn(str(promised.parameters[NOTE]))

    def write_cards(facts: ReleaseFacts) -> None:
        promised = job.promise(facts)
        shown = for_file(promised, facts.kept_columns)
        if on_cluster and suffix_format(job.output) is None:
            shown = shown.also_not_covered("how many files there are, and how many rows each of them has")
        card = Card(shown, facts)
        written.append(card)
        paths: list[Path | str] = [card_file] if card_file else []
        if job.output != STANDARD_STREAM:
            paths += [f"{job.output.rstrip('/')}.card.{kind}" for kind in kinds]
        for path in paths:
            write_card(path, rendered(card, card_kind(Path(path))))
        card_places.extend(str(path) for path in paths)
        if not paths:
            typer.echo(card.to_markdown(), err=True)

    with terminal.ProgressBar(shown=not quiet) as bar:
        if on_cluster:
            from tacit.engines.cluster.rewrite import rewrite_dataset

            facts = rewrite_dataset(
                job, address=address, ledger=ledger, progress=bar.update, on_promise=warn_of, before_release=write_cards
            )
        else:
            warn_of(job.promise())  # refused before any work where none can be made
            facts = rewrite_file(job, progress=bar.update, on_block=seen, before_release=write_cards)
    seconds = time.monotonic() - started
    notices.finish()
    if diff:
        terminal.show_diff(console, preview.pairs(job, facts))
    if not quiet:
        console.print(summary(facts, seconds, card_places), markup=False)
        if job.users is not None and job.users.left_out:
            console.print(
                f"{job.users.left_out:,} rows were left out: their users have more than "
                f"{job.users.documents:,} (for your eyes; not on the card)",
                markup=False,
            )
        promised = job.promise(facts)
        console.print(plain_sentence(promised), markup=False)
        for line in row_sentences(promised, facts):
            console.print(line, markup=False)
        if job.charging is not None:
            console.print(ledger_line(job.charging), markup=False)
    for card in written:
        terminal.warn_if_nominal(card)


def show_plan(job: RewriteJob, *, on_cluster: bool = False) -> None:
    """The card and the fate of each column, from the header alone."""
    source = job.input
    if on_cluster:
        from tacit.engines.cluster.dataset import find_data_set

        source = find_data_set(job.input, job.input_format).files[0].url
    else:
        check_input(job)
    if job.output != STANDARD_STREAM:
        check_output_name(job.output)
    input_format = format_of(source, job.input_format)
    with open_table(source, input_format) as table:
        selection = choose_for(job, table)
    choose_output_format(job, input_format)
    label = None if job.labels is None else job.labels.column
    selection = replace(selection, kept=tuple(name for name in selection.kept if name != label))
    promised = for_file(job.promise(), selection.kept)
    console = terminal.output_console()
    Card(promised, planned_facts(selection)).print_to(console)
    for line in column_lines(selection, label):
        console.print(line, markup=False)


def planned_facts(selection: Selection) -> ReleaseFacts:
    """What is known of a release before any text is read: its columns."""
    return ReleaseFacts(
        rows=0, documents=0, units=0, longest_document=0, longest_row=0,
        columns=selection.texts, kept_columns=selection.kept,
    )  # fmt: skip


def column_lines(selection: Selection, label: str | None = None) -> list[str]:
    lines = [f"Columns rewritten: {', '.join(selection.texts)}"]
    if label is not None:
        lines.append(f"Columns randomized: {label}")
    if selection.kept:
        lines.append(f"Columns copied as they are, NOT covered: {', '.join(selection.kept)}")
    if selection.dropped:
        lines.append(f"Columns dropped: {', '.join(selection.dropped)}")
    return lines


# The card ---------------------------------------------------------------------------------------------------


def card_kinds(names: str) -> list[str]:
    kinds = [name.strip().lower() for name in names.split(",") if name.strip()]
    wrong = [kind for kind in kinds if kind not in CARD_KINDS]
    if wrong or not kinds:
        raise BadParameterError(
            f"--card takes a list of {', '.join(CARD_KINDS)}, such as --card json,md: a release always has a card"
        )
    return list(dict.fromkeys(kinds))


def card_kind(path: Path) -> str:
    kind = path.suffix.lower().removeprefix(".")
    if kind not in CARD_KINDS:
        raise BadParameterError(f"the name of a card ends in .json, .md or .html, and '{path.name}' does not")
    return kind


def write_card(path: Path | str, text: str) -> None:
    """Beside a local output, or beside one in a store that fsspec reaches."""
    if "://" not in str(path):
        write_whole(Path(path), text)
        return
    from tacit.engines.cluster.storage import Folder

    folder, _, name = str(path).rpartition("/")
    Folder(folder).write(name, text.encode())


def rendered(card: Card, kind: str) -> str:
    if kind == "json":
        return card.to_json()
    return card.to_html() if kind == "html" else card.to_markdown()


def summary(facts: ReleaseFacts, seconds: float, cards: Sequence[str]) -> str:
    where = f"; card: {', '.join(cards)}" if cards else ""
    took = terminal.readable_seconds(seconds)
    rows = f"{facts.rows:,} row{'' if facts.rows == 1 else 's'}"
    units = "" if facts.units == facts.documents else f", {facts.units:,} tokens"
    return f"{rows}{units} in {took} -> {facts.output}{where}"


# The ledger -------------------------------------------------------------------------------------------------


def name_in_ledger(source: str, ledger: str | None, dataset: str | None, document_column: str | None) -> str:
    """The name under which the releases of this file add up."""
    if ledger is None:
        if dataset is not None or document_column is not None:
            raise BadParameterError("--dataset and --document-column are for a ledger: name it with --ledger FILE")
        return ""
    if dataset is None and source == STANDARD_STREAM:
        raise BadParameterError("standard input has no name: give the data set one with --dataset NAME")
    return _without_folder(source) if dataset is None else dataset


@contextlib.contextmanager
def charging(place: str | None, dataset: str, document_column: str | None) -> Iterator[Charging | None]:
    """The ledger, open while the job runs."""
    if place is None:
        yield None
        return
    with open_ledger(place) as ledger:
        tell_if_new(ledger)  # also with --quiet
        yield Charging(ledger, dataset, document_column)


def ledger_line(charged: Charging) -> str:
    spent = charged.ledger.spent(Subject("dataset", charged.dataset))
    return f"ledger: one document of '{charged.dataset}' has now spent at most {spent}"


# The mechanism ----------------------------------------------------------------------------------------------


def mechanism_options(epsilon: float | None, vectors: str | None, pairs: Sequence[str]) -> dict[str, Any]:
    """All options of the mechanism in one mapping."""
    options: dict[str, Any] = {}
    if epsilon is not None:
        options["epsilon"] = check_epsilon(epsilon)
    if vectors is not None:
        options["vectors"] = vectors
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise BadParameterError(f"write an option as --option name=value, not '{pair}'")
        name = name.strip().replace("-", "_")
        if name == "seed":
            raise BadParameterError("give a test seed with --seed, so that the card says that there is no guarantee")
        if name in options:
            raise BadParameterError(f"the option '{name}' is given twice: give it once")
        options[name] = value.strip()
    return options


def chosen_mechanism(name: str | None, level: str | None) -> str:
    """The mechanism asked for, or the default of a level."""
    if level is not None and level not in DEFAULT_OF_LEVEL:
        raise BadParameterError(f"--level must be one of {', '.join(DEFAULT_OF_LEVEL)}, not '{level}'")
    if name is None:
        return DEFAULT_OF_LEVEL[level or "word"]
    if level is not None and find(name).level != level:
        raise BadParameterError(f"{name} works at the {find(name).level} level: leave out --level {level}")
    return name


def label_rule(column: str | None, epsilon: float | None, labels: str | None) -> LabelRule | None:
    """The labels to randomize, with their own budget and their public list."""
    if column is None and epsilon is None and labels is None:
        return None
    if column is None or epsilon is None or labels is None:
        raise BadParameterError(
            "labels are randomized with all three of --randomize COLUMN, --label-epsilon E and --labels A,B,C: the "
            "list must be known publicly, so it is never read off the data"
        )
    return LabelRule(tuple(label.strip() for label in labels.split(",") if label.strip()), epsilon, column)


def shown_command(
    mechanism: str,
    options: Mapping[str, Any],
    columns: Sequence[str],
    keep: Sequence[str],
    seed: int | None,
    users: UserRule | None = None,
    labels: LabelRule | None = None,
) -> str:
    """The command for the card: what was promised depends on it, so it is public; names of folders are not."""
    words = ["tacit rewrite"]
    words += [f"--column {_quoted(name)}" for name in columns]
    words += [f"--keep {_quoted(name)}" for name in keep]
    words.append(f"--mechanism {mechanism}")
    for name, value in options.items():
        shown = _quoted(_without_folder(exact(value) if isinstance(value, float) else str(value)))
        words.append(f"--{name} {shown}" if name in ("epsilon", "vectors") else f"--option {name}={shown}")
    if users is not None:
        words += [f"--user-column {_quoted(users.column)}", f"--user-mode {users.mode}"]
        words += [f"--documents-per-user {users.documents}"] if users.mode == "divide" else []
    if labels is not None:
        words += [f"--randomize {_quoted(labels.column)}", f"--label-epsilon {exact(labels.epsilon)}"]
        words.append(f"--labels {_quoted(','.join(labels.labels))}")
    if seed is not None:
        words.append(f"--seed {seed}")
    return " ".join(words)


def _without_folder(value: str) -> str:
    return value.replace("\\", "/").rpartition("/")[2]


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)


# The view of both texts -------------------------------------------------------------------------------------


class Preview:
    """Keeps the first texts of a run, as they were and as they were released: never a second draw."""

    def __init__(self, limit: int) -> None:
        if limit < 0:
            raise BadParameterError(f"--diff takes a number of texts, not {limit}")
        self._limit = limit
        self._originals: list[str] = []
        self._released: list[str] = []

    def add(self, originals: list[str], released: list[str] | None) -> None:
        self._originals += originals[: self._limit - len(self._originals)]
        if released is not None:
            self._released += released[: self._limit - len(self._released)]

    def pairs(self, job: RewriteJob, facts: ReleaseFacts) -> list[tuple[str, str]]:
        released = self._released
        if job.output != STANDARD_STREAM:  # a resumed run has not seen what the earlier one released
            released = first_texts(job, facts, self._limit)
        return list(zip(self._originals, released, strict=False))


def first_texts(job: RewriteJob, facts: ReleaseFacts, limit: int) -> list[str]:
    """The first released texts, read back from the output."""
    written = choose_output_format(job, format_of(job.input, job.input_format))
    with open_table(job.output, written, facts.columns) as table:
        texts = (str(value) for _, values in table.rows() for value in values)
        return list(islice(texts, limit))
