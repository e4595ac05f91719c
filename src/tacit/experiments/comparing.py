"""Several results of one experiment beside each other and beside the published numbers: quick, medium, full.

published rows   each published number, and beside it what each run has, with the width of its 95 % interval
findings         the verdict of each run on each statement
scores           the main scores, cell by cell
forest plots     for each statement a difference for each group and run, with its 95 % interval; 0 is no difference
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.experiments.chance import REACH, Number
from tacit.experiments.declared import Value, Where, shown
from tacit.experiments.evaluation import NotTestableError, evaluate
from tacit.experiments.findings import Comparison, ExperimentFinding, MeasuredScores, Relation, group_name
from tacit.experiments.quantities import Amount, quantity_of
from tacit.experiments.results import Results
from tacit.experiments.verdicts import Judgment
from tacit.report import Figure, Report, Section, Table
from tacit.report.plot import COLORS, axes, figure

INCHES_OF_A_ROW = 0.24
LONGEST_TITLE = 100


@dataclass(frozen=True)
class NamedResults:
    """Results under the name that stands above their column."""

    name: str
    results: Results


def comparison_page(every: Sequence[NamedResults], findings: Sequence[ExperimentFinding], scores: Table) -> Report:
    """All of it on one page. `findings` are those that are drawn; without them only tables are shown."""
    about = every[0].results.about
    sections = [Section("Published numbers", tables=[table]) for table in [published_rows(every)] if table.rows]
    figures = [drawing for finding in findings if (drawing := forest(finding, every)) is not None]
    said = [table for table in [verdicts(every)] if table.rows]
    if said or figures:
        sections.append(Section("Findings", text=FOREST_NOTE if figures else "", tables=said, figures=figures))
    sections.append(Section("Scores", tables=[scores]))
    return Report(f"{about.title}: {', '.join(named.name for named in every)}", sections)


FOREST_NOTE = (
    "Each mark is the difference that a statement is about, in one group of one run, with its 95 % interval: left "
    "minus right of the comparison, or the last value minus the first of a trend. Where a bar reaches over the line, "
    "chance alone could have made the difference."
)


def published_rows(every: Sequence[NamedResults]) -> Table:
    """Each published number, and beside it what each run has."""
    rows: list[list[object]] = []
    for table in every[0].results.published:
        for *place, value in table.rows:
            at: dict[str, Value | list[Value]] = {axis: v for axis, v in zip(table.axes, place, strict=True) if v != ""}
            cell = ", ".join(f"{axis}={shown(v)}" for axis, v in zip(table.axes, place, strict=True) if v != "")
            row: list[object] = [table.source, cell, float(value)]
            for named in every:
                number = _known(named.results, table.ours, at)
                row += [None, None] if number is None else [number.value, _half(number)]
            rows.append(row)
    columns = ["source", "row", "published", *(c for named in every for c in (named.name, f"{named.name} ± 95 %"))]
    return Table("Published numbers and ours", columns, rows)


def _known(results: Results, ours: Amount, at: Where) -> Number | None:
    try:
        return evaluate(quantity_of(ours), results, at)
    except NotTestableError:
        return None


def _half(number: Number) -> float | None:
    return None if math.isnan(number.error) else REACH * number.error


def verdicts(every: Sequence[NamedResults]) -> Table:
    """Each statement, and the verdict of each run; a run that was not asked says nothing."""
    statements = {
        (verdict.statement, verdict.source): None for named in every for verdict in named.results.verdicts
    }  # fmt: skip
    said = [
        {(verdict.statement, verdict.source): verdict.shown for verdict in named.results.verdicts} for named in every
    ]
    rows = [[statement, source, *(of.get((statement, source), "") for of in said)] for statement, source in statements]
    return Table("Verdicts", ["finding", "source", *(named.name for named in every)], rows)


# Forest plots -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ForestRow:
    """One group of one run: the difference that a statement is about."""

    group: str
    run: int
    difference: Number


class RecordingScores(MeasuredScores):
    """The scores of a run; remembers what was compared, and how each group stands."""

    def __init__(self, results: Results) -> None:
        super().__init__(results)
        self.compared: list[tuple[Comparison, list[tuple[str, Number]]]] = []

    def judged(self, comparison: Comparison) -> Judgment:
        try:
            groups = [(group_name(at), outcome.difference) for at, outcome in self.outcomes(comparison)]
        except NotTestableError:
            groups = []
        self.compared.append((comparison, groups))
        return super().judged(comparison)


def forest_rows(finding: ExperimentFinding, every: Sequence[NamedResults]) -> tuple[Comparison | None, list[ForestRow]]:
    """The first comparison of a finding, and its differences in all runs, group by group."""
    by_group: dict[str, list[ForestRow]] = {}
    first: Comparison | None = None
    for run, named in enumerate(every):
        scores = RecordingScores(named.results)
        finding.judge(scores)
        if not scores.compared:
            continue
        comparison, groups = scores.compared[0]
        first = first or comparison
        for group, difference in groups:
            by_group.setdefault(group, []).append(ForestRow(group, run, difference))
    return first, [row for rows in by_group.values() for row in rows]


def forest(finding: ExperimentFinding, every: Sequence[NamedResults]) -> Figure | None:
    """The drawing of a finding; None where no run has anything to compare."""
    comparison, rows = forest_rows(finding, every)
    if comparison is None or not rows:
        return None
    canvas, area = axes(7.2, 1.1 + INCHES_OF_A_ROW * len(rows))
    area.axvline(0.0, color="#444", linewidth=1.0)
    if comparison.order in (Relation.NEAR, Relation.FLAT):
        area.axvspan(-comparison.within, comparison.within, color="#777", alpha=0.15, linewidth=0)
    named_runs: set[int] = set()
    for place, row in enumerate(reversed(rows)):
        error = 0.0 if math.isnan(row.difference.error) else REACH * row.difference.error
        label = None if row.run in named_runs else every[row.run].name
        named_runs.add(row.run)
        area.errorbar(
            row.difference.value, place, xerr=error, fmt="o", markersize=4, capsize=2,
            color=COLORS[row.run % len(COLORS)], label=label,
        )  # fmt: skip
    area.set_yticks(range(len(rows)), [row.group or "all" for row in reversed(rows)], fontsize=8)
    area.tick_params(labelsize=8)
    area.set_xlabel(f"difference (as stated: {_as_stated(comparison)})", fontsize=9)
    area.set_ylim(-0.6, len(rows) - 0.4)
    marks = dict(zip(*reversed(area.get_legend_handles_labels()), strict=True))
    names = [named.name for named in every if named.name in marks]
    area.legend(
        [marks[name] for name in names], names, fontsize=8, frameon=False, ncols=3, loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
    )  # fmt: skip
    title = finding.statement if len(finding.statement) <= LONGEST_TITLE else f"{finding.statement[:LONGEST_TITLE]}…"
    return figure(canvas, title, _described(finding, every, rows))


def _as_stated(comparison: Comparison) -> str:
    match comparison.order:
        case Relation.ABOVE | Relation.AT_LEAST | Relation.INCREASES:
            return "right of the line"
        case Relation.BELOW | Relation.AT_MOST | Relation.DECREASES:
            return "left of the line"
        case _:
            return "inside of the band"


def _described(finding: ExperimentFinding, every: Sequence[NamedResults], rows: Sequence[ForestRow]) -> str:
    """The drawing in words."""
    parts = [
        f"{row.group or 'all'}, {every[row.run].name}: {row.difference.value:.3f}"
        + ("" if math.isnan(row.difference.error) else f" ({row.difference.low:.3f} to {row.difference.high:.3f})")
        for row in rows
    ]
    return f"{finding.statement}. {'; '.join(parts)}"
