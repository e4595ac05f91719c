"""The card as lines of text: for a terminal, and in Markdown."""

from __future__ import annotations

from tacit.card.content import SECOND, Content


def as_text(c: Content) -> str:
    """The card for a terminal, without color."""
    lines = [c.title, "=" * len(c.title), c.sentence, ""]
    width = max(len(label) for label, _ in c.rows)
    lines += [f"{label:<{width}}  {value}" for label, value in c.rows]
    if c.totals:
        lines += ["", f"What it adds up to ({c.heading})"]
        wide = max(len(what) for what, _, _ in c.totals)
        lines += [f"  {what:<{wide}}  {value}: {verdict.sentence}" for what, value, verdict in c.totals]
    if c.second:
        lines += ["", SECOND, *(f"  {label}: {value}" for label, value in c.second)]
    for title, items in c.lists():
        lines += ["", title, *(f"  - {item}" for item in items)]
    return "\n".join(lines)


def as_markdown(c: Content) -> str:
    """The card for a repository or a data sheet."""
    lines = [f"# {c.title}", "", f"> {c.sentence}", "", "| | |", "|---|---|"]
    lines += [f"| {label} | {_cell(value)} |" for label, value in c.rows]
    if c.totals:
        lines += [
            "",
            "## What it adds up to",
            "",
            f"| for | {c.heading} | protection |",
            "|---|---|---|",
        ]
        lines += [f"| {what} | {_cell(value)} | {verdict.sentence} |" for what, value, verdict in c.totals]
    if c.second:
        lines += ["", f"## {SECOND}", "", "| | |", "|---|---|"]
        lines += [f"| {label} | {_cell(value)} |" for label, value in c.second]
    for title, items in c.lists():
        lines += ["", f"## {title}", "", *(f"- {item}" for item in items)]
    if c.release:
        lines += ["", "## Release", "", "| | |", "|---|---|"]
        lines += [f"| {label} | {_cell(value)} |" for label, value in c.release]
    lines += ["", f"*{c.footer}*", ""]
    return "\n".join(lines)


def _cell(value: str) -> str:
    return value.replace("|", "\\|").replace("\n", " ")
