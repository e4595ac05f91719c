"""The cells of one step: every combination of its axes, with the cells of its inputs that go with it.

* `over` gives the axes of a step and their values. A value that has a table [variants.AXIS.VALUE] stands for the
  parameters in it, which may bring further axes (`over` in the table).
* A step inherits the axes of its inputs. Cells of two inputs go together where their common axes agree, so training on
  the release at epsilon 2 is tested on the release at epsilon 2.
* `rename` gives an axis another name (a model pretrained on one data set and used on another has two of them), `only`
  and `skip` choose cells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from tacit.errors import BadInputError, did_you_mean
from tacit.experiments.config import DataSet, RawTable, StepTable, VariantTable, parse
from tacit.experiments.declared import Axes, Strict, Value, matches, shown
from tacit.experiments.steps import AnyKind, kind_named
from tacit.experiments.steps.data import KIND as DATA

Variants = Mapping[str, Mapping[str, VariantTable]]
Offered = dict[str, list[Value]]
"""The values that the cells of a step have on each axis before `only` and `skip` choose among them."""


@dataclass(frozen=True)
class Step:
    """One cell: what to run, with which inputs (other cells), and where it stands on the axes."""

    key: str
    name: str
    kind: str
    axes: Axes
    parameters: Strict = field(repr=False)
    inputs: Mapping[str, Step] = field(repr=False)

    @property
    def label(self) -> str:
        return " ".join([self.name, *(f"{axis}={shown(value)}" for axis, value in self.axes.items())])

    def ancestors(self) -> Iterator[Step]:
        for step in self.inputs.values():
            yield step
            yield from step.ancestors()


Made = Mapping[str, Sequence[Step]]
"""The cells of the steps and data sets above a step, by name."""


@dataclass(frozen=True)
class Unkeyed:
    """A cell without the key by which the cache knows it."""

    kind: AnyKind
    axes: Axes
    parameters: Strict
    inputs: Mapping[str, Step]


def cells_of(
    name: str, table: StepTable, variants: Variants, made: Made, test_seed: int | None, offered: Offered
) -> Iterator[Unkeyed]:
    """The cells of a step; `offered` is filled with the axis values that they are chosen from."""
    where = f"steps.{name}"
    kind = _kind_of(table, where)
    accepted = {*kind.parameters.model_fields, *kind.inputs}
    known_axes: set[str] = set()
    count = 0
    for axes, varied in combinations(table, variants, accepted, where):
        values = {**table.given, **varied}
        _refuse_test_seed(values, where)
        inputs = {key: values.pop(key) for key in kind.inputs if key in values}
        if kind.draws_noise and test_seed is not None:
            values["test_seed"] = test_seed
        parameters: Strict | None = None
        for inherited, cells in _joined(axes, inputs, kind, made, where):
            known_axes |= set(inherited)
            final = {table.rename.get(axis, axis): value for axis, value in inherited.items()}
            for axis, value in final.items():
                if value not in offered.setdefault(axis, []):
                    offered[axis].append(value)
            if _is_chosen(final, table):
                parameters = parameters or parse(kind.parameters, values, _place(where, axes))
                _check_public(kind, cells, where)
                count += 1
                yield Unkeyed(kind, final, parameters, cells)
    for axis in table.rename:
        if axis not in known_axes:
            raise BadInputError(
                "renamed-axis-missing",
                "'{where}.rename' names '{axis}', but the axes of the step are {axes}",
                where=where,
                axis=axis,
                axes=", ".join(sorted(known_axes)),
            )
    if not count:
        raise _no_cells(where, offered)


def _no_cells(where: str, offered: Offered) -> BadInputError:
    if not offered:
        return BadInputError(
            "no-common-cells",
            "'{where}' has no cells: its inputs have no axis values in common; name other inputs",
            where=where,
        )
    return BadInputError(
        "no-cells-left",
        "'{where}' has no cells: 'only' and 'skip' leave none of those that there are ({values})",
        where=where,
        values="; ".join(f"{axis}: {', '.join(map(shown, values))}" for axis, values in offered.items()),
    )


def _kind_of(table: StepTable, where: str) -> AnyKind:
    kind = kind_named(table.kind, where)
    if kind is DATA:
        raise BadInputError(
            "data-as-step", "'{where}' cannot be of the kind 'data': write a table [data.NAME]", where=where
        )
    return kind


def _refuse_test_seed(values: Mapping[str, object], where: str) -> None:
    if "test_seed" in values:
        raise BadInputError(
            "test-seed-in-file",
            "'{where}' sets 'test_seed' itself, by an axis or by a variant, which is not for files: give "
            "{option.test_seed} to the command",
            where=where,
        )


def _place(where: str, axes: Axes) -> str:
    return where if not axes else f"{where} ({', '.join(f'{axis} = {shown(v)}' for axis, v in axes.items())})"


# Axes of the step's own -------------------------------------------------------------------------------------------

Combination = tuple[Axes, RawTable]
"""Values of axes, and the parameters that they stand for."""


def combinations(table: VariantTable, variants: Variants, accepted: Collection[str], where: str) -> list[Combination]:
    """All combinations of the axes."""
    by_axis = [_alternatives(axis, values, variants, accepted, where) for axis, values in table.over.items()]
    combined: list[Combination] = []
    for chosen in product(*by_axis):
        axes: Axes = {}
        for more, _ in chosen:
            if twice := [axis for axis in more if axis in axes]:
                raise BadInputError(
                    "axis-twice",
                    "'{where}' varies over '{axis}' twice: in 'over' and in a variant; leave one out",
                    where=where,
                    axis=twice[0],
                )
            axes |= more
        combined.append((axes, {key: value for _, given in chosen for key, value in given.items()}))
    return combined


def _alternatives(
    axis: str, values: Sequence[Value], variants: Variants, accepted: Collection[str], where: str
) -> list[Combination]:
    """The combinations that the values of an axis stand for, with the further axes that they bring."""
    alternatives: list[Combination] = []
    for value in values:
        variant, place = variants.get(axis, {}).get(shown(value)), f"variants.{axis}.{shown(value)}"
        if variant is None and axis not in accepted:
            raise _no_such_axis(where, axis, accepted)
        variant = variant or VariantTable()
        given = {**({axis: value} if axis in accepted else {}), **variant.given}
        for axes, more in combinations(variant, variants, accepted, place):
            alternatives.append(({axis: value, **axes}, {**given, **more}))
    return alternatives


def _no_such_axis(where: str, axis: str, accepted: Collection[str]) -> BadInputError:
    known = sorted(set(accepted) - {"test_seed"})
    return BadInputError(
        "no-such-axis",
        "'{where}.over.{axis}' varies something that the step does not have{hint} It has {known}; another axis needs a "
        "table [variants.{axis}.VALUE] for each value",
        where=where,
        axis=axis,
        hint=did_you_mean(axis, known),
        known=", ".join(known),
    )


# Cells of the inputs ------------------------------------------------------------------------------------------------


def _joined(
    axes: Axes, named: Mapping[str, Any], kind: AnyKind, made: Made, where: str
) -> Iterator[tuple[Axes, dict[str, Step]]]:
    """Every combination of cells of the inputs whose axes agree with each other and with the step's own."""
    combined: list[tuple[Axes, dict[str, Step]]] = [(axes, {})]
    for name, target in named.items():
        candidates = _candidates(name, target, kind, made, where)
        combined = [
            ({**cell_axes, **so_far}, {**inputs, name: cell})
            for so_far, inputs in combined
            for cell, cell_axes in candidates
            if all(so_far[axis] == value for axis, value in cell_axes.items() if axis in so_far)
        ]
    for so_far, inputs in combined:
        for name, wanted in kind.inputs.items():
            if wanted.required and name not in inputs:
                behind = {inner.key: inner for cell in inputs.values() for inner in _behind(cell, name, wanted.kinds)}
                if len(behind) != 1:
                    raise BadInputError(
                        "missing-input",
                        "'{where}' needs '{name}': name a {kinds} there",
                        where=where,
                        name=name,
                        kinds=" or ".join(wanted.kinds),
                    )
                inputs[name] = next(iter(behind.values()))
        yield so_far, inputs


def _behind(cell: Step, name: str, allowed: Sequence[str]) -> Iterator[Step]:
    """The input of this name behind a cell, on the shortest way."""
    if name in cell.inputs and cell.inputs[name].kind in allowed:
        yield cell.inputs[name]
        return
    for step in cell.inputs.values():
        yield from _behind(step, name, allowed)


def _candidates(name: str, target: object, kind: AnyKind, made: Made, where: str) -> list[tuple[Step, Axes]]:
    """The cells that an input can be, with the axes that they bring."""
    allowed = kind.inputs[name].kinds
    wanted = " or ".join(allowed)
    if not isinstance(target, str) or target not in made:
        fitting = [step for step, cells in made.items() if cells and cells[0].kind in allowed]
        raise BadInputError(
            "no-such-input",
            "'{where}.{name}' must name a {wanted} that stands above it{choice}, not {target!r}",
            where=where,
            name=name,
            wanted=wanted,
            choice=f" (one of {', '.join(fitting)})" if fitting else "",
            target=target,
        )
    cells = made[target]
    if not cells:
        raise BadInputError(
            "input-of-another-size",
            "'{where}.{name}' names '{target}', which is not run in this size",
            where=where,
            name=name,
            target=target,
        )
    if cells[0].kind not in allowed:
        raise BadInputError(
            "input-of-another-kind",
            "'{where}.{name}' names '{target}', which is a {kind} step: it must be a {wanted}",
            where=where,
            name=name,
            target=target,
            kind=cells[0].kind,
            wanted=wanted,
        )
    # A data set stands on the axis of the input that it is used for.
    return [(cell, {name: target} if cell.kind == DATA.name else cell.axes) for cell in cells]


# Choosing ---------------------------------------------------------------------------------------------------------


def _is_chosen(axes: Axes, table: StepTable) -> bool:
    wanted = not table.only or any(matches(axes, rule) for rule in table.only)
    return wanted and not any(matches(axes, rule) for rule in table.skip)


def _check_public(kind: AnyKind, inputs: Mapping[str, Step], where: str) -> None:
    for name, wanted in kind.inputs.items():
        if not wanted.public or name not in inputs:
            continue
        for step in (inputs[name], *inputs[name].ancestors()):
            if isinstance(step.parameters, DataSet) and step.parameters.access == "private":
                raise BadInputError(
                    "private-data-for-public",
                    "'{where}.{name}' uses the data set '{data}', which is private: a {kind} step learns from public "
                    'data only; take other data, or declare it with access = "public" if it is',
                    where=where,
                    name=name,
                    data=step.axes["data"],
                    kind=kind.name,
                )
