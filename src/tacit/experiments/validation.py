"""What can be found wrong in an experiment before anything runs, one sentence each: names in the parts of the report,
epsilons that do not share an axis, libraries, models and data that are missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from itertools import chain, product
from typing import Any, TypeVar

from tacit.errors import BadInputError, TacitError
from tacit.experiments.config import Experiment, Figure, Finding, Published, Value, WideTable
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
from tacit.experiments.plan import Plan, Step, check_plan, matches, offered, outline, shown, varied_values
from tacit.experiments.steps import kinds

EPSILON = "epsilon"
MISSPELLED = 0.75
Where = Mapping[str, Any]
Found = TypeVar("Found")
Cells = Mapping[str, Sequence[Step]]
"""The cells of each step: of this size ("here"), or of all sizes, because a check may ask for what another size has."""


def validate(plan: Plan) -> None:
    """Everything: what chooses cells, then the cells themselves, then the report, which asks right cells what their
    epsilon means."""
    check_choices(plan)
    check_plan(plan)
    check_parts(plan)


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
    for step in chain(plan.steps, *in_other_sizes(plan, outline).values()):
        found.setdefault(step.name, []).append(step)
    return found


def in_other_sizes(plan: Plan, look: Callable[[Experiment, str], Found]) -> dict[str, Found]:
    """What the other sizes of the file tell, as far as they can be made."""
    found = {}
    for size, experiment in plan.experiment.other_sizes.items():
        with _at(f"sizes.{size}") if size in plan.experiment.sizes else suppress(BadInputError):
            found[size] = look(experiment, size)
    return found


def check_choices(plan: Plan) -> None:
    """Whether what variants, 'only', 'skip' and the reference name exists in some size: otherwise they would do
    nothing, and nobody would notice."""
    experiments = {plan.size: plan.experiment, **plan.experiment.other_sizes}
    choices = {plan.size: offered(plan.experiment, plan.size), **in_other_sizes(plan, offered)}
    axes: dict[str, list[Value]] = {}
    of_step: dict[str, dict[str, None]] = {}
    for step, found in chain.from_iterable(one.items() for one in choices.values()):
        for axis, values in found.items():
            of_step.setdefault(step, {})[axis] = None
            axes.setdefault(axis, []).extend(values)
    varied: dict[str, list[str]] = {}
    for experiment in experiments.values():
        for axis, names in varied_values(experiment).items():
            varied.setdefault(axis, []).extend(names)
    for size in choices:
        for axis, tables in experiments[size].variants.items():
            for name in tables:
                _check_known(name, varied.get(axis, []), f"'variants.{axis}.{name}' is for a value of '{axis}'")
        for step, table in experiments[size].steps.items():
            for key in ("only", "skip") if step in of_step else ():  # otherwise it is run in no size
                for rule in table.get(key, []):
                    _check_place(rule, list(of_step[step]), axes, f"steps.{step}.{key}")
    _check_place(plan.experiment.experiment.reference, list(axes), axes, "experiment.reference")


def _check_place(rule: Where, known: Sequence[str], axes: Mapping[str, list[Value]], where: str) -> None:
    """Whether cells can stand at these axis values."""
    for axis, wanted in rule.items():
        _check_known(axis, known, f"'{where}' names the axis '{axis}'")
        for value in wanted if isinstance(wanted, list) else [wanted]:
            if value not in axes[axis]:
                there = list(dict.fromkeys(map(repr, axes[axis])))  # 1 and '1' are not the same
                hint = _hint(str(value), [shown(one) for one in axes[axis] if shown(one) != str(value)])
                raise BadInputError(f"'{where}' names {axis} = {value!r}, which no size has{hint} there {_are(there)}")


def _check_known(name: str, known: Iterable[str], said: str) -> None:
    there = list(dict.fromkeys(known))
    if name not in there:
        raise BadInputError(f"{said}, which no size has{_hint(name, there)} there {_are(there)}")


def _are(names: Sequence[str]) -> str:
    return f"{'is' if len(names) == 1 else 'are'} {', '.join(names)}" if names else "is none"


def _hint(name: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    close = get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"; did you mean '{close[0]}'?" if close else ":"


@contextmanager
def _at(where: str) -> Iterator[None]:
    """What is wrong is said with its place."""
    try:
        yield
    except TacitError as error:
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
    hint = _hint(text, known, at_least or 0.6)
    if at_least is not None and hint == ":":
        return
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
        tell = kinds()[cell.kind].epsilon
        meaning = None if tell is None or EPSILON not in cell.axes else tell(cell.parameters)
        if meaning is not None:
            found.add(meaning)
    return found
