"""What can be found wrong in an experiment before anything runs, one sentence each: names in the parts of the report,
epsilons that do not share an axis, libraries, models and data that are missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from itertools import chain, product
from typing import Any

from tacit.errors import BadInputError
from tacit.experiments.config import Figure, Finding, Published, Value, WideTable
from tacit.experiments.findings import (
    Check,
    Expression,
    Selection,
    check_names,
    parse_check,
    parse_expression,
    plain_value,
)
from tacit.experiments.measures import check_measure
from tacit.experiments.plan import Plan, Step, check_plan, matches, outline, shown
from tacit.experiments.steps import kinds

EPSILON = "epsilon"
MISSPELLED = 0.75
Where = Mapping[str, Any]
Cells = Mapping[str, Sequence[Step]]
"""The cells of each step: of this size ("here"), or of all sizes, because a check may ask for what another size has."""


def validate(plan: Plan) -> None:
    """Everything: first what the file says, then what has to be installed."""
    check_parts(plan)
    check_plan(plan)


def check_parts(plan: Plan) -> None:
    cells = cells_of(plan)
    here = {name: plan.named(name) for name in plan.names}
    for number, figure in enumerate(plan.experiment.figures):
        with _at(f"figures.{number} ('{figure.title}')"):
            _check_figure(figure, cells, here)
    for number, wide in enumerate(plan.experiment.tables):
        with _at(f"tables.{number} ('{wide.title}')"):
            _check_wide(wide, cells, here)
    for number, finding in enumerate(plan.experiment.findings):
        with _at(f"findings.{number}"):
            _check_finding(finding, cells, here)
    for number, table in enumerate(plan.experiment.published):
        with _at(f"published.{number} ('{table.source}')"):
            _check_published(table, cells, here)


def cells_of(plan: Plan) -> dict[str, list[Step]]:
    """What stands in the plan, and in those of the other sizes. A size that the file does not write down may lack what
    it needs; one that it does is an error here."""
    found: dict[str, list[Step]] = {}
    sizes = plan.experiment.sizes
    every = [list(plan.steps)]
    for size, experiment in plan.experiment.other_sizes.items():
        with _at(f"sizes.{size}") if size in sizes else suppress(BadInputError):
            every.append(outline(experiment, size))
    for step in chain.from_iterable(every):
        found.setdefault(step.name, []).append(step)
    return found


@contextmanager
def _at(where: str) -> Iterator[None]:
    """What is wrong is said with its place."""
    try:
        yield
    except BadInputError as error:
        raise BadInputError(f"{where}: {error}") from None


def _check_figure(figure: Figure, cells: Cells, here: Cells) -> None:
    expression = parse_expression(figure.value)
    if not expression.selections:
        raise BadInputError(f"'{figure.value}' is the same everywhere: name a step and a measure")
    _check_names(
        [expression], cells, [figure.x, figure.lines, *([figure.panels] if figure.panels else []), *figure.where]
    )
    _check_where([expression], figure.where, cells)
    if EPSILON in (figure.x, figure.lines):
        check_one_epsilon(here, [expression], figure.where)


def _check_wide(table: WideTable, cells: Cells, here: Cells) -> None:
    if table.labels and len(table.labels) != len(table.values):
        raise BadInputError(f"there are {len(table.values)} values and {len(table.labels)} labels: give one for each")
    expressions = [parse_expression(value) for value in table.values]
    for expression in expressions:
        if not expression.selections:
            raise BadInputError(f"'{expression.text}' is the same everywhere: name a step and a measure")
    _check_names(expressions, cells, [table.rows, table.columns, *table.where])
    _check_where(expressions, table.where, cells)
    if EPSILON in (table.rows, table.columns):
        check_one_epsilon(here, expressions, table.where)


def _check_where(expressions: Iterable[Expression], where: Where, cells: Cells) -> None:
    for one in (one for expression in expressions for one in expression.selections):
        for axis, wanted in where.items():
            for value in wanted if isinstance(wanted, list) else [wanted]:
                _check_value(one.step, axis, shown(value), cells)


def _check_finding(finding: Finding, cells: Cells, here: Cells) -> None:
    if (finding.check is None) == (not finding.untestable):
        raise BadInputError("give 'check', or 'untestable' with the reason why there is none")
    if finding.check is None:
        return
    check = parse_check(finding.check)
    _check_names(check.expressions, cells, [check.axis] if check.axis is not None else [])
    selections = [one for expression in check.expressions for one in expression.selections]
    axes = axes_of(cells)
    for axis in check.groups:
        if not any(axis in axes[one.step] and one.varies(axis) for one in selections):
            known = sorted({name for one in selections for name in axes[one.step]})
            raise BadInputError(f"nothing in the check varies over '{axis}': the axes are {', '.join(known)}")
    if not finding.mixed:
        for at in _groups(check, here):
            check_one_epsilon(here, check.expressions, at, COMPARED)


def _groups(check: Check, here: Cells) -> list[dict[str, Value]]:
    """What is compared with each other: every combination of values of the axes after `for each`."""
    selections = [one for expression in check.expressions for one in expression.selections]
    values: dict[str, dict[Value, None]] = {axis: {} for axis in check.groups}
    for one in selections:
        for step in _selected(one, here):
            for axis in check.groups:
                if axis in step.axes and one.varies(axis):
                    values[axis][step.axes[axis]] = None
    return [dict(zip(values, found, strict=True)) for found in product(*values.values())]


def _selected(one: Selection, here: Cells) -> Iterator[Step]:
    """The cells that a selection can look at; where the smallest or largest epsilon is asked for, any of them."""
    for step in here.get(one.step, []):
        if all(_allowed(step.axes[axis], wanted) for axis, wanted in one.where.items() if axis in step.axes):
            yield step


def _allowed(value: Value, wanted: Sequence[str]) -> bool:
    return any(text in ("min", "max") or plain_value(text) == shown(value) for text in wanted)


def _check_published(table: Published, cells: Cells, here: Cells) -> None:
    expression = parse_expression(table.ours)
    _check_names([expression], cells, table.axes)
    for row in table.rows:
        if len(row) != len(table.axes) + 1 or not isinstance(row[-1], int | float):
            raise BadInputError(f"each row holds a value for each of {', '.join(table.axes)} and the published number")
        for one in expression.selections:
            for axis, value in zip(table.axes, row, strict=False):
                # A paper has more rows than we run; what is nearly the name of something that we do run is misspelled.
                if isinstance(value, str) and value != "" and axis not in one.where:
                    _check_value(one.step, axis, value, cells, at_least=MISSPELLED)
    if EPSILON in table.axes and not table.mixed:
        places = [dict(zip(table.axes, row, strict=False)) for row in table.rows]
        check_one_epsilon(here, [expression], places, COMPARED)


def _check_names(expressions: Iterable[Expression], cells: Cells, extra: Iterable[str]) -> None:
    """Whether steps, measures, axes and axis values of expressions exist in some size."""
    expressions = list(expressions)
    check_names(expressions, axes_of(cells), extra)
    for one in (one for expression in expressions for one in expression.selections):
        check_measure(cells[one.step][0].kind, one.measure, one.step)
        for axis, wanted in one.where.items():
            for text in wanted:
                _check_value(one.step, axis, plain_value(text), cells)


def _check_value(step: str, axis: str, text: str, cells: Cells, *, at_least: float | None = None) -> None:
    """Whether some cell has this value; with `at_least`, only a value that is so near to another one is refused."""
    values = list(dict.fromkeys(cell.axes[axis] for cell in cells[step] if axis in cell.axes))
    numeric = any(isinstance(value, int | float) for value in values)
    known = [shown(value) for value in values]
    if text in known or (text in ("min", "max") and numeric):
        return
    close = get_close_matches(text, known, n=1, cutoff=at_least or 0.6)
    if at_least is not None and not close:
        return
    hint = f"; did you mean '{close[0]}'?" if close else ":"
    raise BadInputError(f"no cell of '{step}' has {axis} = {text} in any size{hint} it has {', '.join(known)}")


def axes_of(cells: Cells) -> dict[str, list[str]]:
    """The axes of each step, in the order in which they come."""
    return {name: list(dict.fromkeys(axis for step in steps for axis in step.axes)) for name, steps in cells.items()}


COMPARED = "choose mechanisms in brackets, name the axis after 'for each', or say with 'mixed' why it makes sense here"
DRAWN = "choose mechanisms with 'where' or in brackets, or make one figure for each"


def check_one_epsilon(
    here: Cells, expressions: Iterable[Expression], where: Where | Sequence[Where], advice: str = DRAWN
) -> None:
    """Epsilons per token, per document and per unit of distance mean different things: they neither share an axis nor
    are compared. `where` is a place, or several of which a cell may stand at any."""
    places = [where] if isinstance(where, Mapping) else where
    meanings: dict[str, Step] = {}
    for selection in (one for expression in expressions for one in expression.selections):
        for step in _selected(selection, here):
            # Without noise there is no promise whose meaning could differ.
            noisy = step.axes.get(EPSILON, math.inf) != math.inf
            if noisy and any(_stands_at(step, selection, place) for place in places):
                meanings |= dict.fromkeys(_meanings(step), step)
    if len(meanings) > 1:
        one, other = (f"epsilon {meaning} ({step.label})" for meaning, step in list(meanings.items())[:2])
        raise BadInputError(
            f"{one} and {other} do not go on one axis or into one comparison, because they measure different things: "
            f"{advice}"
        )


def _stands_at(step: Step, one: Selection, place: Where) -> bool:
    """An axis that a cell does not have, or that its brackets fix, says nothing about it."""
    known = {axis: value for axis, value in place.items() if axis in step.axes and one.varies(axis) and value != ""}
    return matches(step.axes, known)


def _meanings(step: Step) -> set[str]:
    """What the epsilon on the axis of a cell means: that of the steps behind it that have one."""
    found = set()
    for cell in (step, *step.ancestors()):
        meaning = kinds()[cell.kind].epsilon
        if meaning is not None and EPSILON in cell.axes:
            found.add(meaning(cell.parameters))
    return found
