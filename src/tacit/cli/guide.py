"""`tacit guide`: a few plain questions, and one command that fits, with its promise and what to expect from it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit.card_words import MODELS, UNITS
from tacit.cli.bars import Bars
from tacit.cli.command_line import command_line
from tacit.cli.generated import command_for
from tacit.cli.naming import TERMINAL
from tacit.cli.options import Printing
from tacit.cli.terminal import output_console
from tacit.jobs.guide.advice import Advice, run
from tacit.jobs.guide.config import GuideConfig
from tacit.jobs.guide.measures import expectation_sentence
from tacit.jobs.guide.questions import QUESTIONS, PlainQuestion
from tacit.jobs.guide.rules import EPSILON, Way
from tacit.rounding import exact

HELP = """Which command fits? Answer at most five plain questions, and get one command to paste, what it promises, what
it does not, and what to expect from it, as measured on public data of about that size.

Only the names of the columns and the number of rows of FILE are looked at, and nothing is run or spent. Every question
is also answered by an option; with all of them it asks nothing.

Example: tacit guide tickets.csv

Example: tacit guide tickets.csv --protect text --seen-by curator --purpose share
"""


def guide(config: GuideConfig, printing: Printing) -> None:
    guide_by(with_answers(config) if is_interactive() else config, as_json=printing.as_json)


def guide_by(config: GuideConfig, headline: str | None = None, *, as_json: bool = False) -> None:
    """Show the advice for answers that are there, below a headline."""
    with Bars(shown=not as_json) as bars:
        advice = run(config, lambda done, total: bars.show("counting rows", done, total))
    if headline is not None:
        output_console().print(headline, markup=False)
    show_advice(advice, as_json=as_json)


def is_interactive() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


# Questions ------------------------------------------------------------------------------------------------------------


def with_answers(config: GuideConfig) -> GuideConfig:
    """The answers of a configuration, and for what it leaves open those that are given on the terminal."""
    answers: dict[str, object] = {}
    for question in QUESTIONS:
        open_fields = [name for name in question.fields if getattr(config, name) is None]
        if config.data is not None and "private_rows" in open_fields:
            open_fields.remove("private_rows")
        if open_fields:
            answers |= _asked_for(question, open_fields)
    values = {name: getattr(config, name) for name in config.model_fields_set}
    return GuideConfig(**{**values, **answers})


def _asked_for(question: PlainQuestion, fields: list[str]) -> dict[str, object]:
    click.echo("", err=True)
    if question.choices:
        click.echo(question.sentence, err=True)
        for name, meaning in question.choices.items():
            click.echo(f"  {name:<12}{meaning}", err=True)
        choices = click.Choice([str(name) for name in question.choices])
        return {fields[0]: click.prompt("Your answer", type=choices, show_choices=False, err=True)}
    if fields == ["public_text"]:
        click.echo(f"{question.sentence} It makes the result better.", err=True)
        name = click.prompt("Its name (empty: there is none)", default="", show_default=False, err=True)
        return {"public_text": name or None}
    return _numbers(question, fields)


def _numbers(question: PlainQuestion, fields: list[str]) -> dict[str, object]:
    """Rows, and rows of one person at most, in one line; what is not known is left empty."""
    sentence = question.sentence if len(fields) == 2 else "How many rows has one person at most?"
    example = "such as 3000 1; empty if not known" if len(fields) == 2 else "empty if not known"
    while True:
        words = click.prompt(f"{sentence} ({example})", default="", show_default=False, err=True)
        numbers = words.replace(",", "").split()
        if len(numbers) <= len(fields) and all(number.isdigit() and int(number) > 0 for number in numbers):
            return dict(zip(fields, map(int, numbers), strict=False))
        click.echo("Give whole numbers above 0.", err=True)


# Advice ---------------------------------------------------------------------------------------------------------------


def show_advice(advice: Advice, *, as_json: bool = False) -> None:
    """The command, its promise and what to expect."""
    commands = [command_line(each) for each in (*advice.before, advice.config)]
    if as_json:
        values = {**advice.to_dict(TERMINAL), "command": commands[-1], "commands": commands}
        click.echo(json.dumps(values, ensure_ascii=False))
        return
    console = output_console()
    for line in commands:
        console.print(Text(line, style="bold"), soft_wrap=True)
    if advice.install is not None:
        console.print(f"It needs what is not installed: {advice.install}", markup=False, soft_wrap=True)
    _section(console, "What it promises", [_facts(advice), advice.promise])
    _section(console, "What it does not cover", advice.not_covered)
    if advice.expected:
        _section(
            console,
            "What to expect, measured on public data sets (docs/guide.md)",
            [expectation_sentence(each) for each in advice.expected],
        )
    if advice.compared:
        _section(
            console,
            f"For comparison: learners on the corpus of 'tacit synthesize' at epsilon {exact(EPSILON[Way.MATCHING])}",
            [expectation_sentence(each) for each in advice.compared],
        )
    _section(console, "Good to know", [remark.rendered(TERMINAL) for remark in advice.remarks])


def _facts(advice: Advice) -> str:
    budget = f"epsilon {exact(advice.epsilon)} for {UNITS[advice.unit]}"
    return f"{budget}; noise is added {MODELS[advice.model]}."


def _section(console: Console, heading: str, lines: Sequence[str]) -> None:
    console.print()
    console.print(Text(heading, style="bold"))
    bullets = Table.grid(padding=(0, 1))
    for line in lines:
        bullets.add_row("-", Text(line))
    console.print(bullets)


command = command_for("guide", [GuideConfig, Printing], guide, help=HELP)
