"""The drawings of the report of a release: a map of clouds, proportions with error bars, a curve over epsilon.

They are drawn from plain numbers and know nothing of where these come from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.report.parts import Figure
from tacit.report.svg import CHARACTER, LINE_HEIGHT, AxisScale, Canvas, series, shortened, spread_apart

Places = Sequence[tuple[float, float]]
WIDTH = 560.0
MOST_BARS = 30
MOST_NAMED = 12
"""More names would cover the map."""
NAME_LENGTH = 22
MARGIN = 26.0


@dataclass(frozen=True)
class Cloud:
    """Points with one look; `kind` is a class of the drawing."""

    places: Places
    kind: str


@dataclass(frozen=True)
class Mark:
    """A named cross with a circle of uncertainty around it."""

    name: str
    place: tuple[float, float]
    radius: float
    kind: str


@dataclass(frozen=True)
class ShareBar:
    """The share of a label with the interval around it; `true` is known to the holder of the rows only."""

    label: str
    share: float
    low: float
    high: float
    released: float
    kind: str
    true: float | None = None


@dataclass(frozen=True)
class CurveStop:
    """A point of the curve over epsilon, with the range of its draws."""

    epsilon: float
    value: float
    low: float
    high: float


def cloud_figure(
    title: str, clouds: Sequence[Cloud], marks: Sequence[Mark], description: str, beside: Sequence[Cloud] = ()
) -> Figure:
    """A map of clouds of points, later clouds above earlier ones, and named marks on top. Maps with the same clouds,
    their own and those `beside`, have the same scale."""
    height = 400.0
    everything = [*clouds, *beside]
    left, right = _reach([x for cloud in everything for x, _ in cloud.places], _ends_of_circles(marks, 0))
    low, high = _reach([y for cloud in everything for _, y in cloud.places], _ends_of_circles(marks, 1))
    unit = min((WIDTH - 2 * MARGIN) / max(right - left, 1e-9), (height - 2 * MARGIN) / max(high - low, 1e-9))

    def on_page(place: tuple[float, float]) -> tuple[float, float]:
        return (
            WIDTH / 2 + (place[0] - (left + right) / 2) * unit,
            height / 2 - (place[1] - (low + high) / 2) * unit,
        )

    canvas = Canvas(WIDTH, height, description)
    for cloud in clouds:
        inside = [(x, y) for x, y in map(on_page, cloud.places) if 3 < x < WIDTH - 3 and 3 < y < height - 3]
        canvas.dots(inside, cloud.kind)
    named = marks[:MOST_NAMED]
    places = [on_page(mark.place) for mark in marks]
    for mark, (x, y) in zip(marks, places, strict=True):
        canvas.circle(x, y, max(2.0, mark.radius * unit), f"noise stroke {mark.kind}")
        canvas.cross(x, y, "cross")
    names = [shortened(mark.name, NAME_LENGTH) for mark in named]
    widths = [CHARACTER * len(name) + 6 for name in names]
    middles = [
        (min(max(x, width / 2 + 4), WIDTH - width / 2 - 4), min(max(y - 11, 16), height - 8))
        for (x, y), width in zip(places, widths, strict=False)
    ]
    for name, (x, _), y in zip(names, middles, spread_apart(middles, widths, LINE_HEIGHT), strict=True):
        canvas.text(x, y, name, "name", "middle")
    return Figure(title, str(canvas), description)


def _ends_of_circles(marks: Sequence[Mark], axis: int) -> list[float]:
    """Where the circles of uncertainty begin and end on an axis, so that none is cut off at the edge of the map."""
    return [mark.place[axis] + side * mark.radius for mark in marks for side in (-1, 1)]


def _reach(points: Sequence[float], circles: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis: all circles, and the points without the farthest of 200, which would squeeze the others."""
    ordered = sorted(points)
    cut = len(ordered) // 200
    return min([ordered[cut], *circles]), max([ordered[-1 - cut], *circles])


def proportions_figure(title: str, bars: Sequence[ShareBar], description: str) -> Figure:
    """Bars of the shares of labels with error bars, the largest first; a dot is the share of the released rows."""
    shown = sorted(bars, key=lambda bar: -bar.share)[:MOST_BARS]
    row, top, left = 27.0, 8.0, 170.0
    height = top + row * len(shown) + 26
    highest = max([0.01, *(max(bar.high, bar.released, bar.true or 0) for bar in shown)])
    scale = AxisScale(0, highest * 1.04, left, WIDTH - 50)
    canvas = Canvas(WIDTH, height, description)
    for tick in round_steps(highest):
        canvas.line(scale(tick), top, scale(tick), top + row * len(shown))
        canvas.text(scale(tick), height - 8, _percent(tick), "soft", "middle")
    for place, bar in enumerate(shown):
        y = top + row * place
        middle = y + row / 2
        canvas.text(left - 8, middle + 4, shortened(bar.label, NAME_LENGTH), "ink", "end")
        canvas.bar(left, y + 5, scale(bar.share) - left, row - 10, f"fill {bar.kind}")
        canvas.line(scale(bar.low), middle, scale(bar.high), middle, "error")
        for side in (bar.low, bar.high):
            canvas.line(scale(side), middle - 4, scale(side), middle + 4, "error")
        canvas.circle(scale(bar.released), middle, 4, "released")
        if bar.true is not None:
            canvas.line(scale(bar.true), y + 2, scale(bar.true), y + row - 2, "original")
        canvas.text(WIDTH - 4, middle + 4, _percent(bar.share), "soft", "end")
    return Figure(title, str(canvas), description)


def curve_figure(title: str, stops: Sequence[CurveStop], chance: float, description: str) -> Figure:
    """A curve over epsilon on a logarithmic axis, with the range of draws as a band and guessing as a dashed line."""
    height, left, bottom = 260.0, 52.0, 40.0
    logs = [math.log2(stop.epsilon) for stop in stops]
    across = AxisScale(logs[0], logs[-1], left + 10, WIDTH - 26)
    upward = AxisScale(0, 1, height - bottom, 14)
    canvas = Canvas(WIDTH, height, description)
    for tick in (0, 0.25, 0.5, 0.75, 1):
        canvas.line(left, upward(tick), WIDTH - 16, upward(tick))
        canvas.text(left - 6, upward(tick) + 4, _percent(tick), "soft", "end")
    canvas.line(left, upward(chance), WIDTH - 16, upward(chance), "chance")
    canvas.text(WIDTH - 18, upward(chance) - 5, "guessing", "soft", "end")
    places = [(across(log), upward(stop.value)) for log, stop in zip(logs, stops, strict=True)]
    upper = [(across(log), upward(stop.high)) for log, stop in zip(logs, stops, strict=True)]
    lower = [(across(log), upward(stop.low)) for log, stop in zip(logs, stops, strict=True)]
    canvas.path([*upper, *lower[::-1]], "band", closed=True)
    canvas.path(places, "curve")
    for (x, y), stop in zip(places, stops, strict=True):
        canvas.circle(x, y, 4, "stop")
        canvas.text(x, height - bottom + 17, f"{stop.epsilon:.3g}", "soft", "middle")
    canvas.text((left + WIDTH) / 2, height - 5, "epsilon (smaller: more private)", "soft", "middle")
    return Figure(title, str(canvas), description)


def round_steps(highest: float) -> list[float]:
    """Round numbers from 0 up to a number, about four of them.

    >>> round_steps(0.21), round_steps(0.56)
    ([0.0, 0.05, 0.1, 0.15, 0.2], [0.0, 0.2, 0.4])
    """
    size = 10 ** math.floor(math.log10(highest))
    step = next(part * size for part in (0.2, 0.25, 0.5, 1.0, 2.0) if highest / (part * size) <= 5)
    return [round(step * place, 10) for place in range(int(highest / step + 1e-9) + 1)]


def label_kinds(labels: Sequence[str]) -> dict[str, str]:
    """A class of the drawing for every label, in the order given."""
    return {label: series(place) for place, label in enumerate(labels)}


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
