"""A score over two axes: what figures draw and wide tables show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.experiments.config import Value
from tacit.experiments.findings import Expression, NotTestableError, evaluate
from tacit.experiments.results import Number, Results

Grid = dict[Value, dict[Value | None, Number]]
"""By line, then by the value on the other axis; None: a line that has none, such as the run without privacy."""


def grid(expression: Expression, results: Results, lines: str, other: str, where: Mapping[str, Any]) -> Grid:
    """Every cell that has a result."""
    step = expression.selections[0].step
    found: Grid = {}
    for line in results.values(step, lines, where):
        values: list[Value | None] = list(results.values(step, other, {**where, lines: line})) or [None]
        for value in values:
            at = {**where, lines: line, **({} if value is None else {other: value})}
            try:
                found.setdefault(line, {})[value] = evaluate(expression, results, at)
            except NotTestableError:
                continue
    return {line: points for line, points in found.items() if points}


def in_order(value: Value) -> tuple[int, float, str]:
    """Numbers first, by size."""
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))
