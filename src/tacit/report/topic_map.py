"""A map of topics: circles as large as their noisy counts, each with its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.report.parts import Figure
from tacit.report.svg import SERIES, Canvas, shortened

WIDTH, HEIGHT = 960.0, 640.0
MARGIN = 8.0
LETTER = 0.64
"""The width of a letter, as a part of its size."""
SMALLEST, LARGEST = 8.0, 15.0
COLORS = ("#1f6f8b", "#d1495b", "#3f8f63", "#b9770e", "#5c4d7d", "#4f6d8f", "#a23e6b", "#6b7d2a")


@dataclass(frozen=True)
class TopicCircle:
    """A circle at a place in units of the map's height, with words on it, the first ones the most telling; circles of
    one region have one color."""

    place: tuple[float, float]
    radius: float
    number: int
    words: Sequence[str]
    region: int = 0


def topic_figure(title: str, circles: Sequence[TopicCircle], description: str) -> Figure:
    """The map. Words stand inside the circle where they can be read, else only the number of the topic does."""
    canvas = Canvas(WIDTH, HEIGHT, description)
    unit = HEIGHT - 2 * MARGIN
    for circle in circles:
        x, y = WIDTH / 2 + circle.place[0] * unit, HEIGHT / 2 - circle.place[1] * unit
        radius = circle.radius * unit
        canvas.circle(x, y, radius, f"t{circle.region % SERIES}")
        lines, size = _fitting(circle, radius)
        top = y - (len(lines) - 1) * size * 0.58 + size * 0.35
        for row, line in enumerate(lines):
            kind = "number" if row == 0 else "word"
            canvas.text(x, top + row * size * 1.16, line, f"{kind} size{round(size)}", "middle")
    return Figure(title, _styled(str(canvas)), description)


def _fitting(circle: TopicCircle, radius: float) -> tuple[list[str], float]:
    """The lines that fit into a circle, and the size of their letters: the number, and as many words as there is room
    for."""
    for count in range(min(3, len(circle.words)), 0, -1):
        words = [shortened(word, 14) for word in circle.words[:count]]
        size = min(LARGEST, 1.75 * radius / (LETTER * max(map(len, words))), 1.5 * radius / (1.16 * (count + 1)))
        if size >= SMALLEST:
            return [str(circle.number), *words], size
    return [str(circle.number)], max(SMALLEST, min(LARGEST, radius))


def _styled(svg: str) -> str:
    """A drawing that brings its own colors."""
    colors = "".join(f".t{place}{{fill:{color}}}" for place, color in enumerate(COLORS))
    sizes = "".join(f".size{size}{{font-size:{size}px}}" for size in range(round(SMALLEST), round(LARGEST) + 1))
    words = "text{font-family:system-ui,sans-serif;fill:#fff}.number{opacity:.75}.word{font-weight:600}"
    head, bracket, rest = svg.partition(">")
    return f"{head}{bracket}<style>{colors}{sizes}{words}</style>{rest}"
