"""Draws the picture of the README: rewritten (made-up) support mail beside the beginning of its privacy card.

python examples/picture.py docs/images/rewrite.svg
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

import tacit
from tacit.card import Verdict, odds, strength, totals
from tacit.text.tokens import split

HERE = Path(__file__).parent


def changed_words(original: str, rewritten: str) -> Text:
    text = Text()
    for before, after in zip(split(original), rewritten.split(" "), strict=True):
        text.append(after, style="" if before == after else "bold yellow")
        text.append(" ")
    return text


def main(target: str) -> None:
    with (HERE / "support_mail.csv").open(encoding="utf-8", newline="") as file:
        messages = [row["message"] for row in csv.DictReader(file)][1:6]
    mechanism = tacit.build("santext+", {"epsilon": 3, "joining": "spaces"})
    release = mechanism.rewrite(messages)
    left = Text()
    for original, rewritten in zip(messages, release.texts, strict=True):
        left.append(original + "\n", style="dim")
        left.append_text(changed_words(original, rewritten))
        left.append("\n\n")
    left.rstrip()
    card = release.card()
    content = card.content()
    right = Text(content.sentence + "\n\n")
    for label, value in content.rows[:6]:
        right.append(f"{label:<22}", style="bold green")
        right.append(value.partition(":")[0] + "\n")
    right.append(f"\nWhat it adds up to ({content.heading})\n", style="bold green")
    for what, exponent, _ in totals(card.guarantee, card.facts):
        right.append(f"{what:<51}{odds(exponent):>8}\n")
        right.append(f"  {strength(exponent)}\n", style="bold red" if strength(exponent) is Verdict.NOMINAL else "")
    right.append("\nNot covered\n", style="bold green")
    for item in content.not_covered:
        right.append(f"- {item}\n")
    right.rstrip()
    console = Console(record=True, width=150, file=sys.stderr)
    console.print(
        Columns(
            [
                Panel(left, title="private.csv (changed words in yellow)", title_align="left", width=80),
                Panel(
                    right, title="private.csv.card.md (beginning)", title_align="left", border_style="green", width=68
                ),
            ]
        )
    )
    drawing = console.export_svg(title="tacit rewrite support_mail.csv --mechanism santext+ --epsilon 3")
    # No fonts from elsewhere: the picture must not call home when a page shows it.
    Path(target).write_text(re.sub(r"@font-face \{.*?\}", "", drawing, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
