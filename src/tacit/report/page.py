"""A report as one HTML page that needs nothing else: no scripts, no fonts, no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tacit.report.parts import Finding, Light, Report, Table, cell_text
from tacit.templates import rendered

_MEANING = {
    Light.GREEN: "no problem found at the thresholds named below; that is not a proof of safety",
    Light.AMBER: "read it before deciding",
    Light.RED: "a problem at the thresholds named below",
    Light.NONE: "a number without a verdict",
}


@dataclass(frozen=True)
class Summary:
    """Findings at a glance, with the meaning of the lights among them."""

    title: str
    findings: Sequence[Finding]
    meanings: Sequence[tuple[Light, str]]


def page(report: Report) -> str:
    """The report as a whole HTML page."""
    return rendered(
        "report.html",
        report=report,
        summaries=list(_summaries(report)),
        cell_text=cell_text,
        numeric_columns=_numeric_columns,
    )


def _summaries(report: Report) -> Iterator[Summary]:
    """All findings in one summary without a title; sections with a meaning of their own stand apart."""
    shared = [finding for section in report.sections if not section.meaning for finding in section.findings]
    if shared:
        yield Summary("", shared, _meanings(shared, report.meaning))
    for section in report.sections:
        if section.meaning and section.findings:
            yield Summary(section.title, section.findings, _meanings(section.findings, section.meaning))


def _meanings(findings: Sequence[Finding], meaning: Mapping[Light, str]) -> list[tuple[Light, str]]:
    used = {finding.light for finding in findings}
    return [(light, meaning.get(light, usual)) for light, usual in _MEANING.items() if light in used]


def _numeric_columns(table: Table) -> list[bool]:
    """Whether each column holds numbers only."""
    return [_are_numbers([row[column] for row in table.rows]) for column in range(len(table.columns))]


def _are_numbers(cells: Sequence[object]) -> bool:
    values = [cell for cell in cells if cell is not None]
    return bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
