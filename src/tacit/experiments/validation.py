"""What can be found wrong in an experiment before anything runs, one sentence each: names in the parts of the report,
epsilons that do not share an axis, libraries, models and data that are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from tacit.errors import BadInputError
from tacit.experiments.config import Figure, Finding, Published
from tacit.experiments.findings import Expression, check_names, parse_check, parse_expression
from tacit.experiments.plan import Plan, Step, check_plan, matches, shown
from tacit.experiments.steps import kinds

EPSILON = "epsilon"
AxesOf = Mapping[str, Sequence[str]]


def validate(plan: Plan) -> None:
    """Everything: first what the file says, then what has to be installed."""
    check_parts(plan)
    check_plan(plan)


def check_parts(plan: Plan) -> None:
    axes = axes_of(plan)
    for number, figure in enumerate(plan.experiment.figures):
        with _at(f"figures.{number} ('{figure.title}')"):
            _check_figure(figure, plan, axes)
    for number, finding in enumerate(plan.experiment.findings):
        with _at(f"findings.{number}"):
            _check_finding(finding, plan, axes)
    for number, table in enumerate(plan.experiment.published):
        with _at(f"published.{number} ('{table.source}')"):
            _check_published(table, axes)


@contextmanager
def _at(where: str) -> Iterator[None]:
    """What is wrong is said with its place."""
    try:
        yield
    except BadInputError as error:
        raise BadInputError(f"{where}: {error}") from None


def _check_figure(figure: Figure, plan: Plan, axes: AxesOf) -> None:
    expression = parse_expression(figure.value)
    if not expression.selections:
        raise BadInputError(f"'{figure.value}' is the same everywhere: name a step and a measure")
    check_names(
        [expression], axes, [figure.x, figure.lines, *([figure.panels] if figure.panels else []), *figure.where]
    )
    if EPSILON in (figure.x, figure.lines):
        check_one_epsilon(plan, [expression], figure.where)


def _check_finding(finding: Finding, plan: Plan, axes: AxesOf) -> None:
    if (finding.check is None) == (not finding.untestable):
        raise BadInputError("give 'check', or 'untestable' with the reason why there is none")
    if finding.check is None:
        return
    check = parse_check(finding.check)
    check_names(check.expressions, axes, [check.axis] if check.axis is not None else [])
    selections = [one for expression in check.expressions for one in expression.selections]
    for axis in check.groups:
        if not any(axis in axes[one.step] and one.varies(axis) for one in selections):
            known = sorted({name for one in selections for name in axes[one.step]})
            raise BadInputError(f"nothing in the check varies over '{axis}': the axes are {', '.join(known)}")
    if EPSILON in check.groups:
        check_one_epsilon(plan, check.expressions, {})


def _check_published(table: Published, axes: AxesOf) -> None:
    check_names([parse_expression(table.ours)], axes, table.axes)
    for row in table.rows:
        if len(row) != len(table.axes) + 1 or not isinstance(row[-1], int | float):
            raise BadInputError(f"each row holds a value for each of {', '.join(table.axes)} and the published number")


def axes_of(plan: Plan) -> dict[str, list[str]]:
    """The axes of each step, in the order in which they come."""
    found: dict[str, dict[str, None]] = {}
    for step in plan.steps:
        found.setdefault(step.name, {}).update(dict.fromkeys(step.axes))
    return {name: list(axes) for name, axes in found.items()}


def check_one_epsilon(plan: Plan, expressions: Iterable[Expression], where: Mapping[str, object]) -> None:
    """Epsilons per token, per document and per unit of distance mean different things and never share an axis."""
    meanings: dict[str, Step] = {}
    for expression in expressions:
        for one in expression.selections:
            for step in plan.named(one.step):
                fits = all(shown(step.axes[axis]) in values for axis, values in one.where.items() if axis in step.axes)
                if EPSILON in step.axes and fits and matches(step.axes, where):
                    meanings |= dict.fromkeys(_meanings(step), step)
    if len(meanings) > 1:
        (here, first), (there, second) = list(meanings.items())[:2]
        raise BadInputError(
            f"epsilon {here} ({first.label}) and epsilon {there} ({second.label}) do not go on one axis, because they "
            "measure different things: choose mechanisms with 'where' or in brackets, or make one figure for each"
        )


def _meanings(step: Step) -> set[str]:
    """What the epsilon on the axis of a cell means: that of the steps behind it that have one."""
    found = set()
    for cell in (step, *step.ancestors()):
        meaning = kinds()[cell.kind].epsilon
        if meaning is not None and EPSILON in cell.axes:
            found.add(meaning(cell.parameters))
    return found
