"""Drawings in one style: SVG text, no files, no display."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from tacit.errors import require
from tacit.report.parts import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

COLORS = ("#1f6f8b", "#d1495b", "#66a182", "#edae49", "#5c4d7d", "#8d99ae", "#2e4057", "#b56576")


def axes(width: float = 6.4, height: float = 3.8) -> tuple[Canvas, Axes]:
    """A matplotlib figure and its axes, in the style of the reports."""
    require("matplotlib", extra="report", purpose="drawing plots")
    from matplotlib import figure as drawing

    canvas = drawing.Figure(figsize=(width, height), layout="constrained")
    area = canvas.subplots()
    area.spines[["top", "right"]].set_visible(False)
    area.grid(alpha=0.25, linewidth=0.6)
    area.set_prop_cycle(color=COLORS)
    return canvas, area


def figure(canvas: Canvas, title: str, description: str) -> Figure:
    """A finished drawing for a report."""
    import matplotlib as mpl

    text = io.StringIO()
    # Text stays text (searchable, small), and the same drawing gives the same bytes.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tacit"}):
        canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    return Figure(title, re.sub(r"^.*?(?=<svg)", "", svg, flags=re.DOTALL), description)
