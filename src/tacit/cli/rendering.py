"""Cards and reports on a terminal. What they say is theirs; frames, colors and grids are made here."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table as Grid
from rich.text import Text

from tacit.card import Card, Verdict
from tacit.report.parts import Light, Report, Section, Table, cell_text

VERDICT_COLORS: Final = {
    Verdict.STRONG: "green",
    Verdict.MODERATE: "green",
    Verdict.WEAK: "yellow",
    Verdict.NOMINAL: "red",
}
LIGHT_COLORS: Final = {Light.GREEN: "green", Light.AMBER: "yellow", Light.RED: "red", Light.NONE: "cyan"}


def show_card(card: Card, console: Console) -> None:
    """A privacy card in a frame of the color of its verdict."""
    border = "red" if card.verdict is None else VERDICT_COLORS[card.verdict]
    text = card.to_text().split("\n")
    console.print(Panel(Text("\n".join(text[2:])), title=text[0], border_style=border, title_align="left"))


def show_report(report: Report, console: Console) -> None:
    """The findings and tables of a report; its figures are on its page only."""
    for section in report.sections:
        _show_section(section, console)
    if report.private:
        console.print("\n[yellow]This view quotes the original text: it is private.[/yellow]")


def _show_section(section: Section, console: Console) -> None:
    console.print(f"\n[bold]{escape(section.title)}[/bold]")
    if section.text:
        console.print(escape(section.text))
    for finding in section.findings:
        light = f"[{LIGHT_COLORS[finding.light]}]● {finding.light.word}[/]"
        console.print(f"{light} [bold]{escape(finding.name)}[/bold]: {escape(finding.sentence)}")
    for table in section.tables:
        console.print(_grid(table))


def _grid(table: Table) -> Grid:
    grid = Grid(title=escape(table.title), title_justify="left", caption=escape(table.note) or None)
    grid.caption_justify = "left"
    for column in table.headings:
        grid.add_column(escape(column))
    for row in table.rows:
        grid.add_row(*(escape(cell_text(cell)) for cell in row))
    return grid
