"""`tacit rewrite`: a file in, a rewritten file and its privacy card out."""

from __future__ import annotations

import shlex
import time
from itertools import islice
from typing import Annotated

from pydantic import Field

from tacit.catalog import find
from tacit.cli import terminal
from tacit.cli.bars import RewriteBar
from tacit.cli.generated import command_for
from tacit.cli.naming import TERMINAL
from tacit.cli.quiet import Quiet
from tacit.cli.recommend import Given, RecommendingCommand, first, recommending
from tacit.cli.rendering import show_card
from tacit.engines.notices import Notices
from tacit.errors import BadInputError
from tacit.guarantee import NOTE, Guarantee
from tacit.jobs.config import Group, Option
from tacit.jobs.rewrite import RewriteConfig, RewriteResult, run
from tacit.jobs.rewrite_config import shown_options
from tacit.text.files import STANDARD_STREAM, open_table

DIFF_DOCUMENTS = 10
FLAGS = ("shuffle",)
"""Options of a shown command that have no value."""

HELP = """Rewrite the texts of a file under differential privacy.

Writes the rewritten file and, beside it, a privacy card that says what was promised.

Columns that are not named are dropped.

Example: tacit rewrite reviews.csv --column text --keep stars --epsilon 2 -o private.csv
"""


class Shown(Quiet):
    """Options of what the command shows."""

    diff: Annotated[
        int,
        Field(
            ge=0,
            description="Afterwards show the first N texts (10 if no N is given), original and rewritten. Shows "
            "PRIVATE text.",
        ),
        Option(Group.RUN, metavar="[N]", alone=DIFF_DOCUMENTS),
    ] = 0


def rewrite(config: RewriteConfig, shown: Shown) -> None:
    if config.output is None:
        config = config.model_copy(update={"output": STANDARD_STREAM})
    if config.dry_run:
        show_plan(run(config))
        return
    check_diff(config, shown)
    started = time.monotonic()
    preview = Preview(shown.diff)
    mechanism = config.build_mechanism()
    notices = Notices(mechanism, terminal.warn)

    def seen(originals: list[str], released: list[str] | None) -> None:
        preview.add(originals, released)
        notices.add(originals)

    def warn_of(promised: Guarantee) -> None:
        if (
            config.workers > 1 and NOTE in promised.parameters
        ):  # with one worker this process prepares, and warns itself
            terminal.warn(str(promised.parameters[NOTE]))

    with RewriteBar(shown=not shown.quiet) as bar:
        result = run(
            config, bar.update, mechanism=mechanism, on_block=seen, on_promise=warn_of, on_ledger=terminal.tell_if_new,
            command=shown_command("rewrite", shown_options(config)),
        )  # fmt: skip
    notices.finish()
    if shown.diff:
        terminal.show_diff(terminal.error_console(), preview.pairs(result))
    if not shown.quiet:
        show_summary(result, time.monotonic() - started)
    terminal.warn_if_nominal(result.card)


def check_diff(config: RewriteConfig, shown: Shown) -> None:
    """The view of private text needs somewhere private."""
    if shown.diff and config.shuffle:
        raise BadInputError(
            "differences-of-shuffled-rows", "--diff does not go with --shuffle: nobody may know which row is whose"
        )
    if shown.diff and config.on_cluster:
        raise BadInputError(
            "differences-on-a-cluster", "--diff needs --engine local: with a cluster, no text comes to this process"
        )
    if shown.diff and config.output == STANDARD_STREAM and not terminal.is_terminal_output():
        raise BadInputError(
            "differences-need-a-terminal",
            "--diff shows private text, so it needs a file (-o) or a terminal as output, not a pipe",
        )


def show_plan(plan: RewriteResult) -> None:
    """The card and the fate of each column."""
    console, selection = terminal.output_console(), plan.selection
    assert selection is not None
    show_card(plan.card, console)
    lines = [
        ("Columns rewritten", selection.texts),
        ("Columns randomized", () if plan.config.randomize is None else (plan.config.randomize,)),
        ("Columns copied as they are, NOT covered", selection.kept),
        ("Columns dropped", selection.dropped),
    ]
    for what, names in lines:
        if names:
            console.print(f"{what}: {', '.join(names)}", markup=False)


def show_summary(result: RewriteResult, seconds: float) -> None:
    cards = f"; card: {', '.join(result.card_files)}" if result.card_files else ""
    took = terminal.readable_seconds(seconds)
    lines = [f"{result.counts()} in {took} -> {result.facts.output}{cards}"]
    if result.left_out:
        lines.append(
            f"{result.left_out:,} rows were left out: their users have more than {result.config.documents_per_user:,} "
            "(for your eyes; not on the card)"
        )
    lines += result.sentences()
    if result.spent is not None:
        dataset = result.config.ledger_place().dataset  # type: ignore[union-attr]
        lines.append(f"ledger: one document of '{dataset}' has now spent at most {result.spent}")
    console = terminal.error_console()
    for line in lines:
        console.print(line, markup=False)


def shown_command(command: str, options: list[tuple[str, str]]) -> str:
    """The command for the card."""
    words = [f"tacit {command}"]
    for option, value in options:
        name, equals, text = value.partition("=") if option == "options" else ("", "", value)
        flag = option in FLAGS
        words.append(
            TERMINAL.name(option) if flag else TERMINAL.with_value(option, f"{name}{equals}{shlex.quote(text)}")
        )
    return " ".join(words)


class Preview:
    """Keeps the first texts of a run, as they were and as they were released: never a second draw."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._originals: list[str] = []
        self._released: list[str] = []

    def add(self, originals: list[str], released: list[str] | None) -> None:
        self._originals += originals[: self._limit - len(self._originals)]
        if released is not None:
            self._released += released[: self._limit - len(self._released)]

    def pairs(self, result: RewriteResult) -> list[tuple[str, str]]:
        released = self._released
        if result.output is not None:  # a resumed run has not seen what the earlier one released
            with open_table(result.output, result.format, result.facts.columns) as table:
                released = list(islice((str(value) for _, values in table.rows() for value in values), self._limit))
        return list(zip(self._originals, released, strict=False))


def answers(given: Given) -> dict[str, object]:
    """The questions of the guide, answered by options of this command: every text is protected by itself."""
    level = given.get("level") or (find(given["mechanism"]).level if given.get("mechanism") else "document")
    whole = "text" if given.get("user_column") is None else "person"
    return {
        "protect": "word" if level == "word" else whole,
        "seen_by": "nobody",
        "purpose": "share",
        "data": given.get("input"),
        "column": first(given.get("columns")),
        "label_column": given.get("randomize") or first(given.get("keep")),
        **{name: given.get(name) for name in ("user_column", "labels", "epsilon", "format")},
    }


command = recommending(
    command_for("rewrite", [RewriteConfig, Shown], rewrite, help=HELP, kind=RecommendingCommand), answers
)
