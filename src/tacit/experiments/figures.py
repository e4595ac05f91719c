"""Curves over an axis, heat maps and bars, from the expressions of an experiment file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.errors import require
from tacit.experiments.chance import REACH, Number
from tacit.experiments.config import FigureRule as Rule
from tacit.experiments.declared import Value, shown
from tacit.experiments.evaluation import Grid, grid, in_order
from tacit.experiments.quantities import Quantity, quantity_of
from tacit.experiments.results import Results
from tacit.report import Figure
from tacit.report.plot import COLORS, figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

MARKERS = "osD^vPX*"
DASHES = ("-", "-.", (0, (1, 1)))
WIDEST = 3
REFERENCE_COLOR = "#222"
GAP = 0.12
INCHES_OF_A_DIGIT = 0.075


def draw(rule: Rule, results: Results) -> Figure | None:
    """The drawing of a rule; None where no cell has a result."""
    quantity = quantity_of(rule.value)
    step = quantity.scores[0].step
    panels: list[Value | None] = list(results.values(step, rule.panels, rule.where)) if rule.panels else [None]
    tables = {panel: _grid(rule, quantity, results, panel) for panel in panels}
    tables = {panel: table for panel, table in tables.items() if table}
    if not tables:
        return None
    shared = _shared(list(tables.values()), results)
    height = 0.45 * len(shared.lines) + 0.9 if rule.kind == "heatmap" else 3.2
    canvas, areas = _panels(len(tables), height=height)
    drawn = {"curve": _curve, "heatmap": _heatmap, "bars": _bars}[rule.kind]
    for place, (area, (panel, table)) in enumerate(zip(areas, tables.items(), strict=True)):
        drawn(area, rule, table, first=place % WIDEST == 0, shared=shared)
        if panel is not None:
            area.set_title(shown(panel), fontsize=9)
    if rule.kind != "heatmap":
        _legend(canvas, areas, [shown(line) for line in shared.looks])
    return figure(canvas, rule.title, _described(rule, tables, results.spread))


@dataclass(frozen=True)
class Look:
    """How one line is drawn in every panel of a figure, so that one legend is right for all of them."""

    color: str
    marker: str
    dashes: object


@dataclass(frozen=True)
class Shared:
    """The settings that all panels of a figure share: how lines look, the rows of a heat map, its lowest and highest
    value."""

    looks: Mapping[Value, Look]
    lines: Sequence[Value]
    levels: tuple[float, float]


def _shared(tables: Sequence[Grid], results: Results) -> Shared:
    """Each line of any panel once, in the order of the file; the reference comes last and is black in every figure."""
    lines = list(dict.fromkeys(line for table in tables for line in table))
    reference = set(results.about.reference.values())
    own = {line: _look(place) for place, line in enumerate(line for line in lines if line not in reference)}
    looks = own | {line: Look(REFERENCE_COLOR, "s", "--") for line in lines if line in reference}
    rows = [line for line in lines if any(x is not None for table in tables for x in table.get(line, {}))]
    values = [n.value for table in tables for line in rows for n in table.get(line, {}).values()]
    low, high = min(values, default=0.0), max(values, default=0.0)
    reach = max(-low, high)
    return Shared(looks, rows, (-reach, reach) if low < 0 else (low, high))


def _look(place: int) -> Look:
    again = place // len(COLORS)  # how often the colors have been used up: other marks and dashes tell lines apart
    return Look(COLORS[place % len(COLORS)], MARKERS[(place + again) % len(MARKERS)], DASHES[again % len(DASHES)])


def _grid(rule: Rule, quantity: Quantity, results: Results, panel: Value | None) -> Grid:
    fixed: dict[str, Value | list[Value]] = dict(rule.where) | ({} if panel is None else {str(rule.panels): panel})
    return grid(quantity, results, rule.lines, rule.x, fixed)


def _panels(count: int, *, height: float) -> tuple[Canvas, list[Axes]]:
    require("matplotlib", extra="report", purpose="drawing plots")
    from matplotlib.figure import Figure as Canvas

    columns = min(count, WIDEST)
    rows = math.ceil(count / columns)
    width = 7.2 if columns == 1 else 3.3 * columns
    canvas = Canvas(figsize=(width, height * rows + 0.4), layout="constrained")
    areas = canvas.subplots(rows, columns, squeeze=False).flatten().tolist()
    for area in areas[count:]:
        area.set_visible(False)
    for area in areas:
        area.spines[["top", "right"]].set_visible(False)
        area.tick_params(labelsize=8)
    return canvas, areas[:count]


def _curve(area: Axes, rule: Rule, table: Grid, *, first: bool, shared: Shared) -> None:
    area.grid(alpha=0.25, linewidth=0.6)
    scale = _scale({x for points in table.values() for x in points if isinstance(x, int | float)})
    for line, look in _shown_lines(table, shared.looks):
        points = table[line]
        if None in points:
            area.axhline(points[None].value, color=look.color, linestyle="--", linewidth=1.2, label=shown(line))
        else:
            _line(area, scale, {float(x): n for x, n in points.items() if isinstance(x, int | float)}, look,
                  shown(line))  # fmt: skip
    floors = [n.floor for points in table.values() for n in points.values() if not math.isnan(n.floor)]
    if floors:
        area.axhline(sum(floors) / len(floors), color="#777", linestyle=":", linewidth=1.2, label="floor (no text)")
    # Bands of few seeds can be wider than everything there is to see: the lines decide what is shown.
    levels = [n.value for points in table.values() for n in points.values()] + floors
    margin = 0.12 * (max(levels) - min(levels)) or 0.1
    area.set_ylim(min(levels) - margin, max(levels) + margin)
    _x_axis(area, scale, _width_of(area))
    area.set_xlabel(rule.x, fontsize=9)
    if first:
        area.set_ylabel(_label(rule), fontsize=9)


def _line(area: Axes, scale: Scale, points: Mapping[float, Number], look: Look, label: str) -> None:
    """The finite points as a line, the point at infinity on its own behind the gap."""
    finite = [x for x in sorted(points) if math.isfinite(x)]
    for xs, named in ((finite, label), ([x for x in points if math.isinf(x)], label if not finite else None)):
        if not xs:
            continue
        places = [scale.place(x) for x in xs]
        dashes = look.dashes if len(xs) > 1 else "none"
        area.plot(places, [points[x].value for x in xs], linewidth=1.4, linestyle=dashes, label=named,
                  color=look.color, marker=look.marker, markersize=4)  # fmt: skip
        if any(math.isnan(points[x].error) for x in xs):
            continue
        low, high = [points[x].low for x in xs], [points[x].high for x in xs]
        if len(xs) > 1:
            area.fill_between(places, low, high, color=look.color, alpha=0.15, linewidth=0)
        else:
            area.vlines(places, low, high, color=look.color, alpha=0.35, linewidth=2)
    if finite and math.inf in points:
        ends = [finite[-1], math.inf]
        area.plot([scale.place(x) for x in ends], [points[x].value for x in ends], color=look.color, linewidth=0.7,
                  linestyle=":", alpha=0.6)  # fmt: skip


@dataclass(frozen=True)
class Scale:
    """Where the values of a numeric axis stand: by their logarithm where they span much, infinity behind a gap."""

    values: tuple[float, ...]
    logarithmic: bool

    @property
    def finite(self) -> list[float]:
        return [value for value in self.values if math.isfinite(value)]

    def place(self, value: float) -> float:
        if math.isinf(value):
            places = [self.place(number) for number in self.finite] or [0.0]
            gap = GAP * (max(places) - min(places))
            return max(places) + (gap or 1.0)
        return math.log10(value) if self.logarithmic else value

    @property
    def places(self) -> list[float]:
        return [self.place(value) for value in self.values]

    def ticks(self, apart: Sequence[float]) -> list[float]:
        """The values that are named below the axis, without those whose names would run into others: the two ends come
        first, then the others from the right. `apart` says how much of the axis the name of each value needs."""
        width = dict(zip(self.values, apart, strict=True))
        span = (max(self.places) - min(self.places)) or 1.0
        kept: list[float] = []
        ends = [value for value in (math.inf, *self.finite[-1:], *self.finite[:1]) if value in self.values]
        for value in dict.fromkeys([*ends, *reversed(self.finite)]):
            room = all(
                abs(self.place(value) - self.place(other)) / span >= (width[value] + width[other]) / 2 for other in kept
            )
            if room:
                kept.append(value)
        return sorted(kept)


def _scale(values: Iterable[float]) -> Scale:
    numbers = tuple(sorted(float(value) for value in values))
    finite = [value for value in numbers if math.isfinite(value)]
    return Scale(numbers, bool(finite) and min(finite) > 0 and max(finite) >= 8 * min(finite))


def _width_of(area: Axes) -> float:
    """The inches that are left for the x axis of a panel, about."""
    place = area.get_subplotspec()
    assert place is not None  # every panel stands in a grid
    inches = area.figure.bbox.width / area.figure.dpi
    return float(inches) / place.get_gridspec().ncols - 0.7


def _x_axis(area: Axes, scale: Scale, inches: float) -> None:
    if not scale.values:
        area.set_xticks([])
        return
    named = scale.ticks([(len(_tick(value)) + 1) * INCHES_OF_A_DIGIT / inches for value in scale.values])
    area.set_xticks([scale.place(value) for value in named], [_tick(value) for value in named])
    area.set_xticks([scale.place(value) for value in scale.values if value not in named], minor=True)
    if math.inf in scale.values and scale.finite:
        middle = (scale.place(math.inf) + scale.place(scale.finite[-1])) / 2
        area.plot([middle], [0], transform=area.get_xaxis_transform(), marker=[(-1, -2), (1, 2)], markersize=8,
                  color="#333", linestyle="none", clip_on=False)  # fmt: skip


def _tick(value: float) -> str:
    return "∞" if math.isinf(value) else shown(value)


def _shown_lines(table: Grid, looks: Mapping[Value, Look]) -> list[tuple[Value, Look]]:
    return [(line, look) for line, look in looks.items() if line in table]


def _heatmap(area: Axes, rule: Rule, table: Grid, *, first: bool, shared: Shared) -> None:
    columns = sorted({x for points in table.values() for x in points if x is not None}, key=in_order)
    # All panels have the same rows, of which only those of the first have names, and the same colors.
    lines = shared.lines
    grid = [[_at(table, line, x) for x in columns] for line in lines]
    low, high = shared.levels
    # Differences around zero get two colors, one for each sign; others grow darker.
    signed = low < 0
    area.imshow(
        grid, cmap="BrBG" if signed else "YlGnBu", vmin=low, vmax=high if high > low else low + 1, aspect="auto"
    )
    for i, row in enumerate(grid):
        for j, value in enumerate(row):
            if not math.isnan(value):
                place = (value - low) / (high - low) if high > low else 0.0
                dark = abs(2 * place - 1) > 0.6 if signed else place > 0.6
                area.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color="white" if dark else "#222")
    area.set_xticks(range(len(columns)), [_name(x) for x in columns])
    area.set_yticks(range(len(lines)), [shown(line) for line in lines] if first else [""] * len(lines))
    area.set_xlabel(rule.x, fontsize=9)
    area.spines[:].set_visible(False)
    area.tick_params(length=0)


def _at(table: Grid, line: Value, x: Value) -> float:
    points = table.get(line, {})
    return points[x].value if x in points else math.nan


def _bars(area: Axes, rule: Rule, table: Grid, *, first: bool, shared: Shared) -> None:
    area.grid(alpha=0.25, linewidth=0.6, axis="y")
    columns = sorted({x for points in table.values() for x in points if x is not None}, key=in_order)
    width = 0.8 / max(1, len(table))
    for place, (line, look) in enumerate(_shown_lines(table, shared.looks)):
        points = table[line]
        shift = (place - (len(table) - 1) / 2) * width
        xs = [i + shift for i, x in enumerate(columns) if x in points]
        numbers = [points[x] for x in columns if x in points]
        errors = [0.0 if math.isnan(n.error) else REACH * n.error for n in numbers]
        area.bar(xs, [n.value for n in numbers], width * 0.92, yerr=errors if any(errors) else None, capsize=2,
                 color=look.color, label=shown(line), error_kw={"linewidth": 0.8})  # fmt: skip
    area.set_xticks(range(len(columns)), [_name(x) for x in columns])
    area.set_xlabel(rule.x, fontsize=9)
    if first:
        area.set_ylabel(_label(rule), fontsize=9)


def _name(value: Value) -> str:
    return _tick(value) if isinstance(value, float) else shown(value)


def _legend(canvas: Canvas, areas: Sequence[Axes], names: Sequence[str]) -> None:
    """One legend for all panels, below the drawing: the lines in their order, then what else there is."""
    handle_of: dict[str, Artist] = {}
    for area in areas:
        for handle, label in zip(*area.get_legend_handles_labels(), strict=True):
            handle_of.setdefault(label, handle)
    ordered = [*(name for name in names if name in handle_of), *(name for name in handle_of if name not in names)]
    handles = [handle_of[name] for name in ordered]
    canvas.legend(handles, ordered, loc="outside lower center", ncols=min(5, len(handles)), fontsize=8, frameon=False)


def _label(rule: Rule) -> str:
    return rule.label or str(quantity_of(rule.value))


def _described(rule: Rule, tables: Mapping[Value | None, Grid], spread: str) -> str:
    what = f"{_label(rule)} against {rule.x}, by {rule.lines}"
    each = f", one picture for each {rule.panels}" if rule.panels else ""
    if rule.kind == "curve":
        endless = any(x == math.inf for table in tables.values() for points in table.values() for x in points)
        ceiling = "; ∞: without noise" if endless else ""
        return f"{what}{each}. Shaded: 95 % {spread}; dashed: without {rule.x}; dotted: the floor{ceiling}."
    if rule.kind == "bars":
        return f"{what}{each}. Lines on the bars: 95 % {spread}."
    # What has no place on the x axis, such as the run without privacy, is not drawn.
    cells = sum(x is not None for table in tables.values() for points in table.values() for x in points)
    return f"{what}{each}; {cells} cells."
