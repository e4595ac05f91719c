"""Checks of an experiment before anything runs: names in the parts of the report, epsilons that do not share an axis,
libraries, models and data that are missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, product
from typing import Any, Final, TypeVar

import pandas as pd

from tacit.errors import BadInputError, did_you_mean
from tacit.experiments.config import Experiment, FigureRule, Published, WideTable
from tacit.experiments.declared import EPSILON, Axes, Value, Where, allowed, matches, shown
from tacit.experiments.expansion import Offered, Step
from tacit.experiments.findings import Comparison, ExperimentFinding, Scores
from tacit.experiments.measures import check_measure
from tacit.experiments.plan import Plan, check_plan, outline, prefixed, varied_values
from tacit.experiments.quantities import LARGEST, SMALLEST, Quantity, ScoreTerm, quantity_of
from tacit.experiments.results import Results
from tacit.experiments.steps import kinds
from tacit.experiments.verdicts import Judgment, not_testable

MISSPELLED: Final = 0.75
"""From which similarity on an unknown name is taken for a misspelled known one, where unknown ones are allowed."""
SIMILAR: Final = 0.6
Answer = TypeVar("Answer")
Cells = Mapping[str, Sequence[Step]]
"""The cells of each step: of this size, or of all sizes, because a check may ask for what another size has."""


def validate(plan: Plan) -> None:
    """Everything: what chooses cells, then the cells themselves, then the report, which asks right cells what their
    epsilon means."""
    check_choices(plan)
    check_plan(plan)
    check_report(plan)


def check_report(plan: Plan) -> None:
    """Whether figures, tables and findings ask for what there is."""
    planned = PlannedCells(plan)
    experiment = plan.experiment
    for number, figure in enumerate(experiment.figures):
        with prefixed(f"figures.{number} ('{figure.title}')"):
            _check_figure(figure, planned)
    for number, wide in enumerate(experiment.tables):
        with prefixed(f"tables.{number} ('{wide.title}')"):
            _check_wide(wide, planned)
    for finding in plan.findings:
        with prefixed(f"finding '{finding.statement}'"):
            finding.judge(PlannedScores(planned, finding))
    for number, table in enumerate(experiment.published):
        with prefixed(f"published.{number} ('{table.source}')"):
            _check_published(table, planned)


class PlannedCells:
    """The cells of a plan, and with those of the other sizes all that the file knows."""

    def __init__(self, plan: Plan) -> None:
        self.of_this_size: Cells = {name: plan.named(name) for name in plan.names}
        every: dict[str, list[Step]] = {}
        others = [steps for steps, _ in in_other_sizes(plan, outline).values()]
        for step in chain(plan.steps, *others):
            every.setdefault(step.name, []).append(step)
        self.of_all_sizes: Cells = every
        self.axes = {
            name: list(dict.fromkeys(axis for step in steps for axis in step.axes)) for name, steps in every.items()
        }

    def check_quantities(self, quantities: Iterable[Quantity], axes: Iterable[str]) -> None:
        """Whether steps, measures, axes and axis values of quantities exist in some size, and `axes` in all of them."""
        axes = list(axes)
        for quantity in quantities:
            for score in quantity.scores:
                self._check_score(score, axes, str(quantity))

    def _check_score(self, score: ScoreTerm, axes: Sequence[str], text: str) -> None:
        if score.step not in self.axes:
            raise BadInputError(
                "no-such-step",
                "'{text}' names the step '{step}', which does not exist{hint}",
                text=text,
                step=score.step,
                hint=_hint(score.step, list(self.axes), end=""),
            )
        for axis in (*score.where, *axes):
            if axis not in self.axes[score.step]:
                raise BadInputError(
                    "no-such-axis",
                    "'{text}' is asked about the axis '{axis}', but '{step}' has {axes}",
                    text=text,
                    axis=axis,
                    step=score.step,
                    axes=", ".join(self.axes[score.step]),
                )
        check_measure(self.of_all_sizes[score.step][0].kind, score.measure, score.step)
        for axis, wanted in score.where.items():
            for value in allowed(wanted):
                self.check_value(score.step, axis, value)

    def check_value(self, step: str, axis: str, value: Value, *, similar: float | None = None) -> None:
        """Whether some cell has this value; with `similar`, only a value that is so similar to another one is
        refused."""
        values = list(dict.fromkeys(cell.axes[axis] for cell in self.of_all_sizes[step] if axis in cell.axes))
        numeric = any(isinstance(known, int | float) for known in values)
        if value in values or (value in (SMALLEST, LARGEST) and numeric):
            return
        known = [shown(other) for other in values]
        close = _hint(shown(value), [name for name in known if name != shown(value)], similar or SIMILAR)
        if similar is None or close != NO_HINT:
            raise BadInputError(
                "no-such-axis-value",
                "no cell of '{step}' has {axis} = {value} in any size{hint} it has {known}",
                step=step,
                axis=axis,
                value=shown(value),
                hint=close,
                known=", ".join(known),
            )


# What chooses cells -----------------------------------------------------------------------------------------------


def in_other_sizes(plan: Plan, look: Callable[[Experiment, str], Answer]) -> dict[str, Answer]:
    """The answers of `look` for the other sizes of the file. A size that the file does not write down may lack what it
    needs; in one that it does, this is an error."""
    looked_at = {}
    for size, experiment in plan.experiment.other_sizes.items():
        with prefixed(f"sizes.{size}") if size in plan.experiment.sizes else suppress(BadInputError):
            looked_at[size] = look(experiment, size)
    return looked_at


def check_choices(plan: Plan) -> None:
    """Whether what variants, 'only', 'skip' and the reference name exists in some size: otherwise they would do
    nothing, and nobody would notice."""
    experiments = {plan.size: plan.experiment, **plan.experiment.other_sizes}
    outlines = {plan.size: outline(plan.experiment, plan.size), **in_other_sizes(plan, outline)}
    axes: Offered = {}
    of_step: dict[str, dict[str, None]] = {}
    for step, offered in chain.from_iterable(choices.items() for _, choices in outlines.values()):
        for axis, values in offered.items():
            of_step.setdefault(step, {})[axis] = None
            axes.setdefault(axis, []).extend(values)
    varied: dict[str, list[str]] = {}
    for experiment in experiments.values():
        for axis, names in varied_values(experiment).items():
            varied.setdefault(axis, []).extend(names)
    for size in outlines:
        for axis, tables in experiments[size].variants.items():
            for name in tables:
                _check_known(name, varied.get(axis, []), f"'variants.{axis}.{name}' is for a value of '{axis}'")
        for step, table in experiments[size].steps.items():
            for key, rules in {"only": table.only, "skip": table.skip}.items() if step in of_step else ():
                for rule in rules:  # a step that is in no outline is run in no size
                    _check_place(rule, list(of_step[step]), axes, f"steps.{step}.{key}")
    _check_place(plan.experiment.experiment.reference, list(axes), axes, "experiment.reference")


def _check_place(rule: Mapping[str, Any], known: Sequence[str], axes: Offered, where: str) -> None:
    """Whether cells can stand at these axis values."""
    for axis, wanted in rule.items():
        _check_known(axis, known, f"'{where}' names the axis '{axis}'")
        for value in allowed(wanted):
            if value not in axes[axis]:
                raise BadInputError(
                    "no-such-axis-value",
                    "'{where}' names {axis} = {value!r}, which no size has{hint} there {known}",
                    where=where,
                    axis=axis,
                    value=value,
                    hint=_hint(str(value), [shown(other) for other in axes[axis] if shown(other) != str(value)]),
                    known=_are(list(dict.fromkeys(map(repr, axes[axis])))),  # 1 and '1' are not the same
                )


def _check_known(name: str, known: Iterable[str], subject: str) -> None:
    names = list(dict.fromkeys(known))
    if name not in names:
        raise BadInputError(
            "no-such-choice",
            "{subject}, which no size has{hint} there {known}",
            subject=subject,
            hint=_hint(name, names),
            known=_are(names),
        )


def _are(names: Sequence[str]) -> str:
    return f"{'is' if len(names) == 1 else 'are'} {', '.join(names)}" if names else "is none"


NO_HINT: Final = ":"


def _hint(name: str, known: Sequence[str], cutoff: float = SIMILAR, end: str = NO_HINT) -> str:
    return did_you_mean(name, known, otherwise=end, cutoff=cutoff)


# The report -------------------------------------------------------------------------------------------------------


def _quantity(amount: str | list[ScoreTerm]) -> Quantity:
    quantity = quantity_of(amount)
    if not quantity.scores:
        raise BadInputError("no-score", "it shows nothing: name a step and a measure")
    return quantity


def _check_figure(figure: FigureRule, planned: PlannedCells) -> None:
    quantity = _quantity(figure.value)
    panels = [figure.panels] if figure.panels else []
    planned.check_quantities([quantity], [figure.x, figure.lines, *panels, *figure.where])
    _check_where([quantity], figure.where, planned)
    if EPSILON in (figure.x, figure.lines):
        check_one_epsilon(noisy_cells(planned.of_this_size, [quantity]), [figure.where])


def _check_wide(table: WideTable, planned: PlannedCells) -> None:
    if table.labels and len(table.labels) != len(table.values):
        raise BadInputError(
            "labels-and-values",
            "there are {values} values and {labels} labels: give one for each",
            values=len(table.values),
            labels=len(table.labels),
        )
    quantities = [_quantity(value) for value in table.values]
    planned.check_quantities(quantities, [table.rows, table.columns, *table.where])
    _check_where(quantities, table.where, planned)
    if EPSILON in (table.rows, table.columns):
        check_one_epsilon(noisy_cells(planned.of_this_size, quantities), [table.where])


def _check_where(quantities: Iterable[Quantity], where: Where, planned: PlannedCells) -> None:
    for score in chain.from_iterable(quantity.scores for quantity in quantities):
        for axis, wanted in where.items():
            for value in allowed(wanted):
                planned.check_value(score.step, axis, value)


def _check_published(table: Published, planned: PlannedCells) -> None:
    quantity = _quantity(table.ours)
    planned.check_quantities([quantity], table.axes)
    for row in table.rows:
        if len(row) != len(table.axes) + 1 or not isinstance(row[-1], int | float):
            raise BadInputError(
                "bad-published-row",
                "each row holds a value for each of {axes} and the published number",
                axes=", ".join(table.axes),
            )
        for score in quantity.scores:
            for axis, value in zip(table.axes, row, strict=False):
                # A paper has more rows than we run; what is nearly the name of something that we do run is misspelled.
                if isinstance(value, str) and value != "" and axis not in score.where:
                    planned.check_value(score.step, axis, value, similar=MISSPELLED)
    if EPSILON in table.axes and not table.mixed:
        places = [dict(zip(table.axes, row, strict=False)) for row in table.rows]
        check_one_epsilon(noisy_cells(planned.of_this_size, [quantity]), places, COMPARED)


class PlannedScores(Scores):
    """The scores that a plan will have: comparisons are checked and not yet made."""

    def __init__(self, planned: PlannedCells, finding: ExperimentFinding) -> None:
        self._planned, self._finding = planned, finding

    @property
    def frame(self) -> pd.DataFrame:
        axes = list(dict.fromkeys(chain.from_iterable(self._planned.axes.values())))
        return Results.empty_frame(axes)

    def judged(self, comparison: Comparison) -> Judgment:
        along = [comparison.along] if comparison.along is not None else []
        self._planned.check_quantities(comparison.quantities, along)
        for axis in comparison.over:
            if not any(axis in self._planned.axes[score.step] and score.varies(axis) for score in comparison.scores):
                raise BadInputError(
                    "nothing-varies",
                    "nothing in '{comparison}' varies over '{axis}': the axes are {axes}",
                    comparison=comparison,
                    axis=axis,
                    axes=", ".join(sorted({a for score in comparison.scores for a in self._planned.axes[score.step]})),
                )
        if not self._finding.mixed:
            noisy = noisy_cells(self._planned.of_this_size, comparison.quantities)
            for at in _groups(comparison, self._planned.of_this_size):
                check_one_epsilon(noisy, [at], COMPARED)
        return not_testable("nothing has run yet.", str(comparison))


def _groups(comparison: Comparison, cells: Cells) -> list[Axes]:
    """The groups within which scores are compared: every combination of values of the axes that make them."""
    values: dict[str, dict[Value, None]] = {axis: {} for axis in comparison.over}
    for score in comparison.scores:
        for step in _selected(score, cells):
            for axis in comparison.over:
                if axis in step.axes and score.varies(axis):
                    values[axis][step.axes[axis]] = None
    return [dict(zip(values, place, strict=True)) for place in product(*values.values())]


def _selected(score: ScoreTerm, cells: Cells) -> list[Step]:
    """The cells that a score can look at; where the smallest or largest value is asked for, any of them."""
    wanted = {axis: allowed(values) for axis, values in score.where.items()}
    chosen = {axis: values for axis, values in wanted.items() if not {SMALLEST, LARGEST} & set(values)}
    return [
        step
        for step in cells.get(score.step, [])
        if all(step.axes[axis] in values for axis, values in chosen.items() if axis in step.axes)
    ]


# What epsilon means -----------------------------------------------------------------------------------------------

COMPARED: Final = "choose mechanisms, name the axis in 'each', or say with 'mixed' why it makes sense here"
DRAWN: Final = "choose mechanisms with 'where', or make one figure for each"


@dataclass(frozen=True)
class NoisyCell:
    """A cell with noise that a score looks at, and the meanings that its epsilon has."""

    score: ScoreTerm
    step: Step
    meanings: frozenset[str]


def noisy_cells(cells: Cells, quantities: Iterable[Quantity]) -> list[NoisyCell]:
    """The cells that quantities look at whose epsilons say something: without noise there is no promise whose meaning
    could differ."""
    return [
        NoisyCell(score, step, frozenset(_meanings(step)))
        for score in chain.from_iterable(quantity.scores for quantity in quantities)
        for step in _selected(score, cells)
        if step.axes.get(EPSILON, math.inf) != math.inf
    ]


def check_one_epsilon(noisy: Sequence[NoisyCell], places: Sequence[Where], advice: str = DRAWN) -> None:
    """Epsilons per token, per document and per unit of distance mean different things: they neither share an axis nor
    are compared. A cell counts that may stand at any of the places."""
    if len(frozenset().union(*(cell.meanings for cell in noisy))) < 2:
        return
    meanings: dict[str, Step] = {}
    for cell in noisy:
        if any(_stands_at(cell.step, cell.score, place) for place in places):
            meanings |= dict.fromkeys(cell.meanings, cell.step)
    if len(meanings) > 1:
        first, second = (f"epsilon {meaning} ({step.label})" for meaning, step in list(meanings.items())[:2])
        raise BadInputError(
            "mixed-epsilons",
            "{first} and {second} do not go on one axis or into one comparison, because they measure different things: "
            "{advice}",
            first=first,
            second=second,
            advice=advice,
        )


def _stands_at(step: Step, score: ScoreTerm, place: Where) -> bool:
    """An axis that a cell does not have, or that the score fixes, says nothing about it."""
    known = {axis: value for axis, value in place.items() if axis in step.axes and score.varies(axis) and value != ""}
    return matches(step.axes, known)


def _meanings(step: Step) -> set[str]:
    """The meanings of the epsilon on the axis of a cell: those of the steps behind it that have one."""
    with_epsilon = [cell for cell in (step, *step.ancestors()) if EPSILON in cell.axes]
    meanings = [kinds()[cell.kind].meaning_of_epsilon(cell.parameters) for cell in with_epsilon]
    return {meaning for meaning in meanings if meaning is not None}
