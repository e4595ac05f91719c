"""Output of the commands: consoles, warnings, readable numbers, original and rewritten words side by side."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tacit.card import Card
from tacit.text.tokens import split

if TYPE_CHECKING:
    from tacit.account.ledger import Ledger


def error_console() -> Console:
    """Everything but results goes to standard error, so that output can be piped."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def output_console() -> Console:
    return Console(highlight=False)


def warn(message: str) -> None:
    """One line that a user should know of, and that stops nothing."""
    error_console().print(f"warning: {message}", markup=False)


def tell_if_new(ledger: Ledger) -> None:
    """Say loudly, also with --quiet, that a ledger was made: whoever misspelled a name, or lost the file, has to know
    that what was spent before is not counted."""
    if ledger.making is not None:
        click.echo(ledger.making, err=True)


def warn_if_nominal(card: Card) -> None:
    """One loud line at the end of a run, quiet or not, where the formal bound of a release no longer protects."""
    if not card.is_nominal:
        return
    console = error_console()
    if not card.guarantee.is_private:
        line = f"NO GUARANTEE: {card.guarantee.void}"
    else:
        line = f"NOMINAL: the formal bound alone no longer protects ({card.worst_line})"
    console.print(Text(line, style="bold red"))


def readable_bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def readable_seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min {rest:02} s"


# Side by side -----------------------------------------------------------------------------------------------


def show_diff(console: Console, pairs: Iterable[tuple[str, str]]) -> None:
    """Original and released words beside each other, changed ones in color."""
    table = Table(show_lines=True, expand=True)
    table.add_column("", justify="right", style="dim")
    table.add_column("original (PRIVATE)", ratio=1)
    table.add_column("rewritten", ratio=1)
    for number, (original, released) in enumerate(pairs, start=1):
        left, right = side_by_side(split(original), split(released))
        table.add_row(str(number), left, right)
    console.print(Text("This view shows private text: do not save or share it.", style="bold red"))
    console.print(table)


def side_by_side(before: Sequence[str], after: Sequence[str]) -> tuple[Text, Text]:
    """The two word sequences, aligned position by position."""
    left, right = Text(), Text()
    for old, new in zip_longest(before, after, fillvalue=""):
        same = old == new
        for text, word, style in ((left, old, "red"), (right, new, "bold green")):
            text.append(_printable(word), style="dim" if same else style)
            text.append(" ")
    return left, right


def _printable(word: str) -> str:
    """A text must not be able to send commands to the terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in word)


def is_terminal_output() -> bool:
    return sys.stdout.isatty()
