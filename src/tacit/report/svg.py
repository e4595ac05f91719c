"""Drawings as SVG without a drawing library: a canvas with points, lines, bars and words.

Colors are classes, which the page that holds a drawing defines for light and dark: `ink`, `soft` (words), `line`
(axes), `s0` … `s7` (series; filled with `fill`, drawn with `stroke`). Everything that is written is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as ET

Anchor = Literal["start", "middle", "end"]
SERIES = 8
LINE_HEIGHT = 16.0
CHARACTER = 7.2
"""About the width of a letter, at 13 units."""


class Canvas:
    """A drawing of so many units. `description` says in words what it shows."""

    def __init__(self, width: float, height: float, description: str) -> None:
        self._root = ET.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {_number(width)} {_number(height)}",
                "role": "img",
                "aria-label": description,
                "class": "drawing",
            },
        )

    def text(self, x: float, y: float, words: str, kind: str = "ink", anchor: Anchor = "start") -> None:
        place = {"x": _number(x), "y": _number(y), "class": kind, "text-anchor": anchor}
        ET.SubElement(self._root, "text", place).text = words

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str = "line") -> None:
        ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        ET.SubElement(self._root, "line", {"class": kind, **{name: _number(end) for name, end in ends.items()}})

    def bar(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        sides = {"x": x, "y": y, "width": max(0.0, width), "height": height}
        attributes = {"class": kind, "rx": "2", **{name: _number(side) for name, side in sides.items()}}
        ET.SubElement(self._root, "rect", attributes)

    def circle(self, x: float, y: float, radius: float, kind: str) -> None:
        attributes = {"class": kind, "cx": _number(x), "cy": _number(y), "r": _number(radius)}
        ET.SubElement(self._root, "circle", attributes)

    def dots(self, places: Iterable[tuple[float, float]], kind: str) -> None:
        """Many small round points as one path, which keeps the page small."""
        drawn = "".join(f"M{_number(x)} {_number(y)}h0" for x, y in places)
        if drawn:
            ET.SubElement(self._root, "path", {"class": f"dots {kind}", "d": drawn})

    def path(self, places: Sequence[tuple[float, float]], kind: str, *, closed: bool = False) -> None:
        drawn = "L".join(f"{_number(x)} {_number(y)}" for x, y in places)
        ET.SubElement(self._root, "path", {"class": kind, "d": f"M{drawn}{'Z' if closed else ''}"})

    def cross(self, x: float, y: float, kind: str, size: float = 6.0) -> None:
        arms = f"M{_number(x - size)} {_number(y)}h{_number(2 * size)}M{_number(x)} {_number(y - size)}"
        ET.SubElement(self._root, "path", {"class": kind, "d": f"{arms}v{_number(2 * size)}"})

    def __str__(self) -> str:
        return ET.tostring(self._root, encoding="unicode")


@dataclass(frozen=True)
class AxisScale:
    """A straight map from values to units of a drawing."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def series(place: int) -> str:
    """The class of a series; after the eighth all are alike.

    >>> series(0), series(11)
    ('s0', 'rest')
    """
    return f"s{place}" if place < SERIES else "rest"


def shortened(words: str, most: int) -> str:
    """Words that fit: cut with an ellipsis.

    >>> shortened("BookRestaurant", 8)
    'BookRes…'
    """
    return words if len(words) <= most else words[: most - 1] + "…"


ROUNDING = 1e-6
"""Sums of heights are rounded: without it, words that just touch would be moved for ever."""


def spread_apart(places: Sequence[tuple[float, float]], widths: Sequence[float], height: float) -> list[float]:
    """For words at these places, heights at which none covers another."""
    heights = [y for _, y in places]
    done: list[int] = []
    for index in sorted(range(len(places)), key=lambda each: places[each][1]):
        x, moved = places[index][0], True
        while moved:
            moved = False
            for other in done:
                apart = abs(x - places[other][0]) >= (widths[index] + widths[other]) / 2
                if not apart and abs(heights[index] - heights[other]) < height - ROUNDING:
                    heights[index], moved = heights[other] + height, True
        done.append(index)
    return heights


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
