"""The value of a quantity in one group of cells of some results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from tacit.experiments.chance import Number, joint_error
from tacit.experiments.declared import Value, Where, allowed, shown
from tacit.experiments.quantities import LARGEST, SMALLEST, Quantity, ScoreTerm
from tacit.experiments.results import Results


class NotTestableError(Exception):
    """A cell that a quantity needs is missing."""


def evaluate(quantity: Quantity, results: Results, at: Where) -> Number:
    """The value of a quantity in one group."""
    numbers = [(score.times, _number(score, results, at)) for score in quantity.scores]
    value = 0.0
    for times, number in numbers:
        value += times * number.value
    error = joint_error(abs(times) * number.error for times, number in numbers)
    outside = any(number.outside for _, number in numbers)
    if len(numbers) == 1 and not quantity.added and numbers[0][0] == 1:
        return Number(value, error, numbers[0][1].floor, numbers[0][1].ceiling, outside=outside)
    return Number(value + quantity.added, error, outside=outside)


def place_in(score: ScoreTerm, results: Results, at: Where) -> dict[str, Value | list[Value]]:
    """The axis values that a score is looked up at in a group. An axis that its cells do not have says nothing about
    them: the text without privacy has no epsilon."""
    where: dict[str, Value | list[Value]] = {}
    for axis, wanted in score.where.items():
        known = results.values(score.step, axis, {**where, **_known(score, results, where, at)})
        values = [_end(value, known) for value in allowed(wanted)]
        if axis in at and score.varies(axis):
            values = [value for value in values if value in allowed(at[axis])]
        where[axis] = values
    return {**_known(score, results, where, at), **where}


def _known(score: ScoreTerm, results: Results, where: Where, at: Where) -> dict[str, Value | list[Value]]:
    there = results.axes(score.step, where)
    return {axis: value for axis, value in at.items() if axis in there and axis not in score.where}


def _end(value: Value, known: Sequence[Value]) -> Value:
    """A value, or the number that stands at an end of the axis."""
    numbers = [number for number in known if isinstance(number, int | float) and not isinstance(number, bool)]
    if value in (SMALLEST, LARGEST) and numbers:
        return min(numbers) if value == SMALLEST else max(numbers)
    return value


def _number(score: ScoreTerm, results: Results, at: Where) -> Number:
    where = place_in(score, results, at)
    cells = results.of(score.step, where)
    place = f"{score.step}{f'[{_text(where)}]' if where else ''}"
    if not cells:
        raise NotTestableError(f"{place} was not part of this run")
    if broken := [cell for cell in cells if not cell.finished]:
        raise NotTestableError(f"{len(broken)} of {len(cells)} cells of {place} have no result")
    number = results.number(score.step, score.measure, where)
    if number is None:
        raise NotTestableError(f"{place} has no '{score.measure}'")
    if not score.share:
        return number
    gap = results.reference(score.step, score.measure, where) - number.floor
    if math.isnan(gap) or gap <= 0:
        raise NotTestableError(f"{place} has no floor and ceiling that differ")
    return Number((number.value - number.floor) / gap, number.error / gap, 0.0, 1.0, outside=number.outside)


def _text(where: Where) -> str:
    return ", ".join(f"{axis}={'|'.join(map(shown, allowed(values)))}" for axis, values in where.items())


def is_there(score: ScoreTerm, results: Results, at: Where) -> bool:
    """Whether a group has cells for a score, finished or not."""
    return bool(results.of(score.step, place_in(score, results, at)))


def groups(scores: Sequence[ScoreTerm], axes: Sequence[str], results: Results) -> list[dict[str, Value]]:
    """Every combination of values of the axes for which there is a cell for each score."""
    if not axes:
        return [{}]
    choices = []
    for axis in axes:
        of_scores = [
            results.values(score.step, axis, place_in(score, results, {})) for score in scores if score.varies(axis)
        ]
        of_scores = [values for values in of_scores if values]
        if not of_scores:
            raise NotTestableError(f"nothing varies over '{axis}' in this run")
        choices.append([value for value in of_scores[0] if all(value in values for values in of_scores)])
    combined = [dict(zip(axes, values, strict=True)) for values in product(*choices)]
    there = [at for at in combined if all(is_there(score, results, at) for score in scores)]
    if not there:
        raise NotTestableError("no group has cells on all sides")
    return there


Grid = dict[Value, dict[Value | None, Number]]
"""By line, then by the value on the other axis; None: a line that has none, such as the run without privacy."""


def grid(quantity: Quantity, results: Results, lines: str, other: str, where: Where) -> Grid:
    """A quantity over two axes: every place that has a result. It is what figures draw and wide tables show."""
    first = quantity.scores[0]
    made: Grid = {}
    for line in results.values(first.step, lines, where):
        places: list[Value | None] = list(results.values(first.step, other, {**where, lines: line})) or [None]
        for place in places:
            at: dict[str, Value | list[Value]] = {**where, lines: line, **({} if place is None else {other: place})}
            try:
                made.setdefault(line, {})[place] = evaluate(quantity, results, at)
            except NotTestableError:
                continue
    return {line: points for line, points in made.items() if points}


def in_order(value: Value) -> tuple[int, float, str]:
    """Numbers first, by size."""
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))
