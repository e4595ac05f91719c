"""Curves over an axis, heat maps and bars, from the expressions of an experiment file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.errors import require
from tacit.experiments.config import Figure as Rule
from tacit.experiments.config import Value
from tacit.experiments.findings import Expression, NotTestableError, evaluate, parse_expression
from tacit.experiments.plan import shown
from tacit.experiments.results import Number, Results
from tacit.report import Figure
from tacit.report.plot import COLORS, figure

MARKERS = "osD^vPX*"
DASHES = ("-", "-.", (0, (1, 1)))
WIDEST = 4


def draw(rule: Rule, results: Results) -> Figure | None:
    """The drawing of a rule; None where no cell has a result."""
    expression = parse_expression(rule.value)
    step = expression.selections[0].step
    panels: list[Value | None] = list(results.values(step, rule.panels, rule.where)) if rule.panels else [None]
    tables = {panel: _table(rule, expression, results, panel) for panel in panels}
    tables = {panel: table for panel, table in tables.items() if table}
    if not tables:
        return None
    lines = max(sum(any(x is not None for x in points) for points in table.values()) for table in tables.values())
    canvas, areas = _panels(len(tables), height=0.45 * lines + 0.9 if rule.kind == "heatmap" else 3.2)
    drawn = {"curve": _curve, "heatmap": _heatmap, "bars": _bars}[rule.kind]
    for place, (area, (panel, table)) in enumerate(zip(areas, tables.items(), strict=True)):
        drawn(area, rule, table, first=place % WIDEST == 0, results=results)
        if panel is not None:
            area.set_title(shown(panel), fontsize=9)
    if rule.kind != "heatmap":
        _legend(canvas, areas)
    return figure(canvas, rule.title, _described(rule, tables))


Table = dict[Value, dict[Value | None, Number]]
"""By line, then by the value on the x axis; None: a line that has none, such as the run without privacy."""


def _table(rule: Rule, expression: Expression, results: Results, panel: Value | None) -> Table:
    step = expression.selections[0].step
    fixed: dict[str, Any] = dict(rule.where) | ({} if panel is None else {str(rule.panels): panel})
    found: Table = {}
    for line in results.values(step, rule.lines, fixed):
        values: list[Value | None] = list(results.values(step, rule.x, {**fixed, rule.lines: line})) or [None]
        for x in values:
            at = {**fixed, rule.lines: line, **({} if x is None else {rule.x: x})}
            try:
                found.setdefault(line, {})[x] = evaluate(expression, results, at)
            except NotTestableError:
                continue
    return {line: points for line, points in found.items() if points}


def _panels(count: int, *, height: float) -> tuple[Any, list[Any]]:
    require("matplotlib", extra="report", purpose="drawing plots")
    from matplotlib.figure import Figure as Canvas

    columns = min(count, WIDEST)
    rows = math.ceil(count / columns)
    width = 6.4 if columns == 1 else 3.3 * columns
    canvas = Canvas(figsize=(width, height * rows + 0.4), layout="constrained")
    areas = canvas.subplots(rows, columns, squeeze=False).flatten().tolist()
    for area in areas[count:]:
        area.set_visible(False)
    for area in areas:
        area.spines[["top", "right"]].set_visible(False)
        area.tick_params(labelsize=8)
    return canvas, areas[:count]


def _curve(area: Any, rule: Rule, table: Table, *, first: bool, results: Results) -> None:
    area.grid(alpha=0.25, linewidth=0.6)
    numbers = sorted({x for points in table.values() for x in points if isinstance(x, int | float)})
    finite = [x for x in numbers if math.isfinite(x)]
    for place, (line, points) in enumerate(_ordered(table, results)):
        color = COLORS[place % len(COLORS)]
        if None in points:
            area.axhline(points[None].value, color=color, linestyle="--", linewidth=1.2, label=shown(line))
            continue
        xs = [x for x in finite if x in points]
        ys = [points[x].value for x in xs]
        again = place // len(COLORS)  # how often the colors have been used up: other marks and dashes tell lines apart
        area.plot(xs, ys, color=color, marker=MARKERS[(place + again) % len(MARKERS)], markersize=4, linewidth=1.4,
                  linestyle=DASHES[again % len(DASHES)], label=shown(line))  # fmt: skip
        if not any(math.isnan(points[x].error) for x in xs):
            area.fill_between(xs, [points[x].low for x in xs], [points[x].high for x in xs], color=color, alpha=0.15,
                              linewidth=0)  # fmt: skip
    floors = [n.floor for points in table.values() for n in points.values() if not math.isnan(n.floor)]
    if floors:
        area.axhline(sum(floors) / len(floors), color="#777", linestyle=":", linewidth=1.2, label="floor (no text)")
    # Bands of few seeds can be wider than everything there is to see: the lines decide what is shown.
    levels = [n.value for points in table.values() for n in points.values()] + floors
    margin = 0.12 * (max(levels) - min(levels)) or 0.1
    area.set_ylim(min(levels) - margin, max(levels) + margin)
    if finite and min(finite) > 0 and max(finite) >= 8 * min(finite):
        area.set_xscale("log")
        area.minorticks_off()
    area.set_xticks(finite, [shown(x) for x in finite])
    area.set_xlabel(rule.x, fontsize=9)
    if first:
        area.set_ylabel(rule.label or rule.value, fontsize=9)


def _ordered(table: Table, results: Results) -> list[tuple[Value, dict[Value | None, Number]]]:
    """Lines in the order of the file, the reference last, so that a line keeps its color in every figure."""
    reference = set(results.about.reference.values())
    return sorted(table.items(), key=lambda item: item[0] in reference)


def _heatmap(area: Any, rule: Rule, table: Table, *, first: bool, results: Results) -> None:
    columns = sorted({x for points in table.values() for x in points if x is not None}, key=_sortable)
    lines = [line for line, points in table.items() if any(x is not None for x in points)]
    grid = [[table[line][x].value if x in table[line] else math.nan for x in columns] for line in lines]
    known = [value for row in grid for value in row if not math.isnan(value)]
    # Differences around zero get two colors, one for each sign; others grow darker.
    signed = min(known) < 0
    reach = max(abs(value) for value in known) or 1.0
    low, high = (-reach, reach) if signed else (min(known), max(known))
    area.imshow(
        grid, cmap="BrBG" if signed else "YlGnBu", vmin=low, vmax=high if high > low else low + 1, aspect="auto"
    )
    for i, row in enumerate(grid):
        for j, value in enumerate(row):
            if not math.isnan(value):
                place = (value - low) / (high - low) if high > low else 0.0
                dark = abs(2 * place - 1) > 0.6 if signed else place > 0.6
                area.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color="white" if dark else "#222")
    area.set_xticks(range(len(columns)), [shown(x) for x in columns])
    area.set_yticks(range(len(lines)), [shown(line) for line in lines] if first else [""] * len(lines))
    area.set_xlabel(rule.x, fontsize=9)
    area.spines[:].set_visible(False)
    area.tick_params(length=0)


def _bars(area: Any, rule: Rule, table: Table, *, first: bool, results: Results) -> None:
    area.grid(alpha=0.25, linewidth=0.6, axis="y")
    columns = sorted({x for points in table.values() for x in points if x is not None}, key=_sortable)
    width = 0.8 / max(1, len(table))
    for place, (line, points) in enumerate(_ordered(table, results)):
        shift = (place - (len(table) - 1) / 2) * width
        xs = [i + shift for i, x in enumerate(columns) if x in points]
        numbers = [points[x] for x in columns if x in points]
        errors = [0.0 if math.isnan(n.error) else 1.96 * n.error for n in numbers]
        area.bar(xs, [n.value for n in numbers], width * 0.92, yerr=errors if any(errors) else None, capsize=2,
                 color=COLORS[place % len(COLORS)], label=shown(line), error_kw={"linewidth": 0.8})  # fmt: skip
    area.set_xticks(range(len(columns)), [shown(x) for x in columns])
    area.set_xlabel(rule.x, fontsize=9)
    if first:
        area.set_ylabel(rule.label or rule.value, fontsize=9)


def _sortable(value: Value) -> tuple[int, float, str]:
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))


def _legend(canvas: Any, areas: Sequence[Any]) -> None:
    """One legend for all panels, beside the drawing."""
    found: dict[str, Any] = {}
    for area in areas:
        for handle, label in zip(*area.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    canvas.legend(found.values(), found.keys(), loc="outside lower center", ncols=min(5, len(found)), fontsize=8,
                  frameon=False)  # fmt: skip


def _described(rule: Rule, tables: Mapping[Value | None, Table]) -> str:
    cells = sum(len(points) for table in tables.values() for points in table.values())
    what = f"{rule.label or rule.value} against {rule.x}, by {rule.lines}"
    each = f", one picture for each {rule.panels}" if rule.panels else ""
    if rule.kind == "curve":
        return f"{what}{each}. Shaded: 95 % over seeds and test items; dashed: without {rule.x}; dotted: the floor."
    if rule.kind == "bars":
        return f"{what}{each}. Lines on the bars: 95 % over seeds and test items."
    return f"{what}{each}; {cells} cells."
