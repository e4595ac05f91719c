"""A report in plain text, as `print` shows it: findings as lines, tables as aligned columns, no colors."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from tacit.report.parts import Report, Section, Table, cell_text

WIDTH: Final = 100
LEAST_COLUMN: Final = 12
"""Columns are not made narrower than this to fit the width."""


def plain_text(report: Report) -> str:
    """The findings and tables of a report; its figures are on its page only."""
    lines = [line for section in report.sections for line in _section(section)]
    if report.private:
        lines += ["", "This view quotes the original text: it is private."]
    return "\n".join(lines).strip("\n")


def _section(section: Section) -> Iterator[str]:
    yield from ("", section.title)
    if section.text:
        yield from textwrap.wrap(section.text, WIDTH)
    for finding in section.findings:
        sentence = f"● {finding.light.word} {finding.name}: {finding.sentence}"
        yield from textwrap.wrap(sentence, WIDTH, subsequent_indent="  ")
    for table in section.tables:
        yield from _table(table)


def _table(table: Table) -> Iterator[str]:
    rows = [table.headings, *([cell_text(cell) for cell in row] for row in table.rows)]
    widths = _widths([max(len(row[place]) for row in rows) for place in range(len(table.columns))])
    yield from ("", table.title)
    for number, row in enumerate(rows):
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        for line in range(max(map(len, cells))):
            parts = [cell[line] if line < len(cell) else "" for cell in cells]
            yield "  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in widths)
    if table.note:
        yield from textwrap.wrap(table.note, WIDTH)


def _widths(wanted: list[int]) -> list[int]:
    """The widths of columns that fit into a line: the widest ones give way first."""
    widths = [max(1, width) for width in wanted]
    while sum(widths) + 2 * (len(widths) - 1) > WIDTH and max(widths) > LEAST_COLUMN:
        widths[widths.index(max(widths))] -= 1
    return widths
