"""`tacit synthesize --by prompting`: a public model reads batches of private rows, and its words are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from tacit.cli.bars import Bars
from tacit.cli.generated import command_for
from tacit.cli.quiet import Quiet
from tacit.cli.rendering import show_card
from tacit.cli.terminal import error_console, output_console, warn_if_nominal
from tacit.errors import StoppedError
from tacit.jobs.synthesize_prompting import PromptingConfig, PromptingPlan, run
from tacit.rounding import rounded_up

HELP = """Write synthetic rows without training: a public language model reads batches of private rows, and every word
that comes out is drawn from the average of their predictions, each of which is bounded.

A row is in one batch, chosen by a secret hash of itself, and pays for the tokens of that batch. More records give more
text for the same budget. --dry-run says what an epsilon buys.

Example: tacit synthesize --by prompting tickets.csv --label-column intent --labels refund,delivery --epsilon 4 -n 500

Example: tacit synthesize --by prompting notes.csv --epsilon 2 --user-column author --dry-run
"""


def synthesize(config: PromptingConfig, shown: Quiet) -> None:
    with stoppable(), Bars(shown=not shown.quiet) as bars:
        made = run(config, bars.show)
    if isinstance(made, PromptingPlan):
        say_plan(made, output_console())
        return
    if not shown.quiet:
        refused = ", ".join(f"{count:,} {reason}" for reason, count in sorted(made.refused.items()))
        line = f"{len(made):,} rows -> {made.output}" + (f"; refused: {refused}" if refused else "")
        error_console().print(line, markup=False)
        if len(made) < config.rows:
            error_console().print(
                f"{config.rows - len(made):,} of {config.rows:,} rows are missing: the budget did not suffice for more "
                "texts of this length",
                markup=False,
            )
        show_card(made.card, output_console())
    warn_if_nominal(made.card)


def say_plan(plan: PromptingPlan, console: Console) -> None:
    """Print what the budget buys, label by label."""
    console.print(
        f"epsilon {rounded_up(plan.epsilon)}, delta {rounded_up(plan.delta)} buys about {plan.rows:,} of "
        f"{plan.wanted:,} texts, for {plan.readings:,} predictions of the model",
        markup=False,
    )
    for label in plan.labels:
        console.print(
            f"{label.label or 'all rows'}: {label.batches:,} batches of about {label.batch_records:,} records, "
            f"{label.tokens:,} tokens each, about {label.rows:,} texts",
            markup=False,
        )
    if not plan.labels:
        console.print("no label has records enough for a text: spend more, or give more records", markup=False)
    console.print("(this plan counts the private rows: it is for you alone)", markup=False)


@contextmanager
def stoppable() -> Iterator[None]:
    """Work that can be stopped with Ctrl-C and taken up again."""
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError(
            "stopped-synthesis", "stopped: repeat the command with {option.resume} to go on; nothing is lost"
        ) from None


command = command_for("prompting", [PromptingConfig, Quiet], synthesize, help=HELP)
"""The command behind `--by prompting`."""
