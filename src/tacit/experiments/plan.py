"""An experiment as a graph of steps, each with a key.

A step of the file stands for many cells, one for each combination of its axes:

* `over` gives the axes of a step and their values. A value that has a table [variants.AXIS.VALUE] stands for the
  parameters in it, which may bring further axes (`over` in the table).
* A step inherits the axes of its inputs. Cells of two inputs go together where their common axes agree, so training on
  the release at epsilon 2 is tested on the release at epsilon 2.
* `rename` gives an axis another name (a model pretrained on one data set and used on another has two of them), `only`
  and `skip` choose cells, `sizes` says in which sizes a step is run.

    key = hash(kind, version of the kind, version of the package, parameters, keys of the inputs)

where data counts by the content of its files. A cell whose key is in the cache is not run again, in whatever
experiment it was made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from tacit.errors import BadInputError, TacitError
from tacit.experiments.config import SIZES, DataSet, Experiment, Strict, Value, find_file, parse, wanted_files
from tacit.experiments.data_sets import check_files
from tacit.experiments.steps import Kind, kind, kinds
from tacit.report.parts import plain
from tacit.version import __version__

OWN_KEYS = ("kind", "over", "rename", "only", "skip", "sizes")
Axes = dict[str, Value]
Offered = dict[str, dict[str, list[Value]]]
"""The values that the cells of each step have on each axis before `only` and `skip` choose among them."""


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


@dataclass(frozen=True)
class Plan:
    """All cells of an experiment, inputs before what needs them."""

    experiment: Experiment
    size: str
    steps: tuple[Step, ...]
    test_seed: int | None = None

    @property
    def digest(self) -> str:
        """Changes with anything that can change the results."""
        return _hash([[step.name, step.axes, step.key] for step in self.steps])

    def named(self, name: str) -> list[Step]:
        return [step for step in self.steps if step.name == name]

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(step.name for step in self.steps))


def make_plan(experiment: Experiment, size: str, folders: Sequence[Path], *, test_seed: int | None = None) -> Plan:
    """The cells of an experiment. Raises one sentence for the first thing that is wrong."""
    made: dict[str, list[Step]] = {}
    check_files(wanted_files(experiment), folders)
    for name, data in experiment.data.items():
        found = _with_files(data, folders, f"data.{name}")
        _checked(kinds()["data"], found, frozenset(), f"data.{name}")
        made[name] = [_step(name, kinds()["data"], {"data": name}, found, {})]
    _add_steps(made, experiment, size, test_seed)
    used = {ancestor.key for name in experiment.steps for step in made[name] for ancestor in step.ancestors()}
    steps = [step for name, found in made.items() for step in found if name in experiment.steps or step.key in used]
    if not any(step.kind != "data" for step in steps):
        raise BadInputError(f"in the size '{size}' there is nothing to run: give at least one step")
    return Plan(experiment, size, tuple(steps), test_seed)


def outline(experiment: Experiment, size: str) -> list[Step]:
    """The cells of an experiment as far as the file alone tells them: no data is looked for, and keys mean nothing."""
    made = {name: [Step(name, name, "data", {"data": name}, data, {})] for name, data in experiment.data.items()}
    _add_steps(made, experiment, size, None)
    return [step for name in experiment.steps for step in made[name]]


def offered(experiment: Experiment, size: str) -> Offered:
    """What `only` and `skip` can choose from in one size."""
    made = {name: [Step(name, name, "data", {"data": name}, data, {})] for name, data in experiment.data.items()}
    return _add_steps(made, experiment, size, None)


def _add_steps(made: dict[str, list[Step]], experiment: Experiment, size: str, test_seed: int | None) -> Offered:
    if both := [name for name in experiment.data if name in experiment.steps]:
        raise BadInputError(f"'{both[0]}' is a data set and a step: give one of them another name")
    _check_variants(experiment)
    known = list(dict.fromkeys((*SIZES, *experiment.sizes)))
    choices: Offered = {}
    for name, table in experiment.steps.items():
        sizes = table.get("sizes", [size])
        if not isinstance(sizes, list) or not all(isinstance(one, str) for one in sizes):
            raise BadInputError(f"'steps.{name}.sizes' is a list of sizes, such as [\"full\"]")
        if unknown := [one for one in sizes if one not in known]:
            raise BadInputError(f"'steps.{name}.sizes' names '{unknown[0]}': the sizes are {', '.join(known)}")
        made[name] = []
        if size in sizes:
            choices[name] = {}
            made[name] = list(_cells(name, table, experiment, made, test_seed, choices[name]))
    return choices


def check_plan(plan: Plan) -> None:
    """Whether the cells go together, and whether everything they need is there (libraries, models, vectors), before
    anything runs. What the file alone tells comes first, because models take long to load."""
    cells: dict[str, Step] = {}
    for step in plan.steps:
        cells.setdefault(step.key, step)
    for step in cells.values():
        if (fits := kinds()[step.kind].fits) is not None:
            with _said_at(f"{'data' if step.kind == 'data' else 'steps'}.{step.name}"):
                fits(step.parameters, step.inputs)
    for step in cells.values():
        if step.kind != "data":
            _checked(kinds()[step.kind], step.parameters, frozenset(step.inputs), f"steps.{step.name}")


def _checked(found: Kind, parameters: Strict, inputs: frozenset[str], where: str) -> None:
    if found.check is not None:
        with _said_at(where):
            found.check(parameters, inputs)


@contextmanager
def _said_at(where: str) -> Iterator[None]:
    try:
        yield
    except TacitError as error:
        raise BadInputError(f"{where}: {error}") from None


# Cells of one step ------------------------------------------------------------------------------------------------


def _cells(
    name: str, table: Mapping[str, Any], experiment: Experiment, made: Mapping[str, list[Step]], test_seed: int | None,
    choices: dict[str, list[Value]],
) -> Iterator[Step]:  # fmt: skip
    """The cells of a step; `choices` is filled with the axis values that they are chosen from."""
    where = f"steps.{name}"
    if "kind" not in table:
        raise BadInputError(f"the key '{where}.kind' is missing: give one of {', '.join(_kinds_of_steps())}")
    found = kind(str(table["kind"]), where)
    if found.name == "data":
        raise BadInputError(f"'{where}' cannot be of the kind 'data': write a table [data.NAME]")
    if "test_seed" in table:
        raise BadInputError(f"'{where}.test_seed' is not for files: give --test-seed to the command")
    accepted = {*found.parameters.model_fields, *found.inputs}
    fixed = {key: value for key, value in table.items() if key not in OWN_KEYS}
    count = 0
    names = _table(table, "rename", where)
    seen: set[str] = set()
    for axes, varied in _varied(_table(table, "over", where), experiment.variants, accepted, where):
        values = {**fixed, **varied}
        if "test_seed" in values:
            raise BadInputError(f"'{where}' gets 'test_seed' from a variant or axis: give --test-seed to the command")
        named = {key: values.pop(key) for key in found.inputs if key in values}
        if found.draws_noise and test_seed is not None:
            values["test_seed"] = test_seed
        parameters: Strict | None = None
        for joined, inputs in _joined(axes, named, found, made, where):
            seen |= set(joined)
            final = {str(names.get(axis, axis)): value for axis, value in joined.items()}
            for axis, value in final.items():
                if value not in choices.setdefault(axis, []):
                    choices[axis].append(value)
            if not _chosen(final, table, where):
                continue
            if parameters is None:
                parameters = parse(found.parameters, values, _place(where, axes))  # type: ignore[arg-type]
            _check_public(found, inputs, where)
            count += 1
            yield _step(name, found, final, parameters, inputs)
    for axis in names:
        if axis not in seen:
            raise BadInputError(
                f"'{where}.rename' names '{axis}', but the axes of the step are {', '.join(sorted(seen))}"
            )
    if not count:
        if not choices:
            raise BadInputError(f"'{where}' has no cells: its inputs have no axis values in common; name other inputs")
        there = "; ".join(f"{axis}: {', '.join(map(shown, values))}" for axis, values in choices.items())
        raise BadInputError(f"'{where}' has no cells: 'only' and 'skip' leave none of those that there are ({there})")


def _kinds_of_steps() -> list[str]:
    return [name for name in kinds() if name != "data"]


def _place(where: str, axes: Axes) -> str:
    return where if not axes else f"{where} ({', '.join(f'{axis} = {shown(v)}' for axis, v in axes.items())})"


def _table(table: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    found = table.get(key, {})
    if not isinstance(found, Mapping):
        raise BadInputError(f"'{where}.{key}' is a table, such as {key} = {{ epsilon = [1, 2] }}")
    return found


def _varied(
    over: Mapping[str, Any], variants: Mapping[str, Mapping[str, Mapping[str, Any]]], accepted: set[str], where: str
) -> list[tuple[Axes, dict[str, Any]]]:
    """All combinations of the axes: their values, and the parameters these stand for."""
    found: list[tuple[Axes, dict[str, Any]]] = [({}, {})]
    for axis, values in over.items():
        if not isinstance(values, list) or not values or not all(isinstance(v, str | int | float) for v in values):
            raise BadInputError(f"'{where}.over.{axis}' must be a list of values, such as [1, 2, 3]")
        if len({shown(value) for value in values}) < len(values):
            raise BadInputError(f"'{where}.over.{axis}' names a value twice: leave one of them out")
        longer = []
        for axes, parameters in found:
            if axis in axes:
                raise BadInputError(f"'{where}' varies over '{axis}' twice: in 'over' and in a variant; leave one out")
            for value in values:
                table = dict(variants.get(axis, {}).get(shown(value), {}))
                further = _table(table, "over", f"variants.{axis}.{shown(value)}")
                table.pop("over", None)
                if axis in accepted:
                    table.setdefault(axis, value)
                elif shown(value) not in variants.get(axis, {}):
                    raise BadInputError(_no_axis(where, axis, accepted))
                for more, also in _varied(further, variants, accepted, f"variants.{axis}.{shown(value)}"):
                    longer.append(({**axes, axis: value, **more}, {**parameters, **table, **also}))
        found = longer
    return found


def _no_axis(where: str, axis: str, accepted: Iterable[str]) -> str:
    known = sorted(set(accepted) - {"test_seed"})
    close = get_close_matches(axis, known, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    return (
        f"'{where}.over.{axis}' varies something that the step does not have{hint} It has {', '.join(known)}; another "
        f"axis needs a table [variants.{axis}.VALUE] for each value"
    )


def _joined(
    axes: Axes, named: Mapping[str, Any], found: Kind, made: Mapping[str, list[Step]], where: str
) -> Iterator[tuple[Axes, dict[str, Step]]]:
    """Every combination of cells of the inputs whose axes agree with each other and with the step's own."""
    combined: list[tuple[Axes, dict[str, Step]]] = [(axes, {})]
    for name, target in named.items():
        candidates = _candidates(name, target, found, made, where)
        combined = [
            ({**cell_axes, **so_far}, {**inputs, name: cell})
            for so_far, inputs in combined
            for cell, cell_axes in candidates
            if all(so_far[axis] == value for axis, value in cell_axes.items() if axis in so_far)
        ]
    for so_far, inputs in combined:
        for name, wanted in found.inputs.items():
            if wanted.required and name not in inputs:
                behind = {a.key: a for cell in inputs.values() for a in _behind(cell, name, wanted.kinds)}
                if len(behind) != 1:
                    raise BadInputError(f"'{where}' needs '{name}': name a {' or '.join(wanted.kinds)} there")
                inputs[name] = next(iter(behind.values()))
        yield so_far, inputs


def _behind(cell: Step, name: str, allowed: Sequence[str]) -> Iterator[Step]:
    """The input of this name behind a cell, on the shortest way."""
    if name in cell.inputs and cell.inputs[name].kind in allowed:
        yield cell.inputs[name]
        return
    for step in cell.inputs.values():
        yield from _behind(step, name, allowed)


def _candidates(
    name: str, target: Any, found: Kind, made: Mapping[str, list[Step]], where: str
) -> list[tuple[Step, Axes]]:
    allowed = found.inputs[name].kinds
    if not isinstance(target, str) or target not in made:
        fitting = [step for step, cells in made.items() if cells and cells[0].kind in allowed]
        choice = f" (one of {', '.join(fitting)})" if fitting else ""
        raise BadInputError(
            f"'{where}.{name}' must name a {' or '.join(allowed)} that stands above it{choice}, not {target!r}"
        )
    cells = made[target]
    if not cells:
        raise BadInputError(f"'{where}.{name}' names '{target}', which is not run in this size")
    if cells[0].kind not in allowed:
        raise BadInputError(
            f"'{where}.{name}' names '{target}', which is a {cells[0].kind} step: it must be a {' or '.join(allowed)}"
        )
    # A data set stands on the axis of the input that it is used for.
    return [(cell, {name: target} if cell.kind == "data" else cell.axes) for cell in cells]


def _chosen(axes: Axes, table: Mapping[str, Any], where: str) -> bool:
    rules = {}
    for key in ("only", "skip"):
        given = table.get(key, [])
        if not isinstance(given, list) or not all(isinstance(rule, Mapping) for rule in given):
            raise BadInputError(f"'{where}.{key}' is a list of tables, such as [{{ epsilon = 1 }}]")
        rules[key] = given
    wanted = not rules["only"] or any(matches(axes, rule) for rule in rules["only"])
    return wanted and not any(matches(axes, rule) for rule in rules["skip"])


def matches(axes: Mapping[str, Value], wanted: Mapping[str, Any]) -> bool:
    """Whether a cell stands at these values; a list allows each of its values."""
    return all(
        axis in axes and (axes[axis] in value if isinstance(value, list) else axes[axis] == value)
        for axis, value in wanted.items()
    )


def _check_public(found: Kind, inputs: Mapping[str, Step], where: str) -> None:
    for name, wanted in found.inputs.items():
        if not wanted.public or name not in inputs:
            continue
        for step in (inputs[name], *inputs[name].ancestors()):
            if isinstance(step.parameters, DataSet) and step.parameters.access == "private":
                raise BadInputError(
                    f"'{where}.{name}' uses the data set '{step.axes['data']}', which is private: a {found.name} step "
                    'learns from public data only; take other data, or declare it with access = "public" if it is'
                )


def varied_values(experiment: Experiment) -> dict[str, list[str]]:
    """The values that a table 'over' gives to each axis, in steps and in variants."""
    found: dict[str, list[str]] = {}
    tables: list[Mapping[str, Any]] = [*experiment.steps.values()]
    tables += [table for values in experiment.variants.values() for table in values.values()]
    for table in tables:
        over = table.get("over", {})
        for axis, values in over.items() if isinstance(over, Mapping) else ():
            found.setdefault(axis, []).extend(map(shown, values) if isinstance(values, list) else ())
    return found


def _check_variants(experiment: Experiment) -> None:
    used = varied_values(experiment)
    for axis in experiment.variants:
        if axis not in used:
            raise BadInputError(f"'variants.{axis}' is used by no step: vary a step over it, or remove it")


def _with_files(data: DataSet, folders: Sequence[Path], where: str) -> DataSet:
    parts = {
        name: part.model_copy(update={"file": str(find_file(part.file, folders, f"{where}.parts.{name}.file"))})
        for name, part in data.parts.items()
    }
    files = {name: str(find_file(file, folders, f"{where}.files.{name}")) for name, file in data.files.items()}
    return data.model_copy(update={"parts": parts, "files": files})


# Keys -------------------------------------------------------------------------------------------------------------


def _step(name: str, found: Kind, axes: Axes, parameters: Strict, inputs: dict[str, Step]) -> Step:
    content = parameters.model_dump() if found.content is None else found.content(parameters)
    key = _hash([found.name, found.version, __version__, content, {name: cell.key for name, cell in inputs.items()}])
    return Step(key, name, found.name, axes, parameters, inputs)


def _hash(value: Any) -> str:
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode("utf-8"), digest_size=12).hexdigest()


def shown(value: Value) -> str:
    """A value of an axis as text: 2.0 is 2, infinity is the word."""
    if isinstance(value, float) and not isinstance(value, bool):
        return "inf" if value == float("inf") else f"{value:g}"
    return str(value)
