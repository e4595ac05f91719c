"""An experiment as a graph of steps, each with a key.

A step of the file stands for many cells, one for each combination of its axes (`expansion`); `sizes` says in which
sizes a step is run.

    key = hash(kind, version of the kind, parameters, keys of the inputs)

where data counts by the content of its files. A cell whose key is in the cache is not run again, in whatever
experiment it was made.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import BadInputError, TacitError
from tacit.experiments.config import SIZES, DataSet, Experiment, StepTable, find_file, wanted_files
from tacit.experiments.data_sets import check_files
from tacit.experiments.declared import shown
from tacit.experiments.expansion import Offered, Step, Unkeyed, cells_of
from tacit.experiments.steps import kinds
from tacit.experiments.steps.data import KIND as DATA
from tacit.report.parts import plain

if TYPE_CHECKING:
    from tacit.experiments.findings import ExperimentFinding


@dataclass(frozen=True)
class Plan:
    """All cells of an experiment, inputs before what needs them; and what will be asked of their scores."""

    experiment: Experiment
    size: str
    steps: tuple[Step, ...]
    test_seed: int | None = None
    findings: tuple[ExperimentFinding, ...] = ()

    @property
    def digest(self) -> str:
        """Changes with anything that can change the results."""
        return digest_of([[step.name, step.axes, step.key] for step in self.steps])

    def named(self, name: str) -> list[Step]:
        return [step for step in self.steps if step.name == name]

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(step.name for step in self.steps))

    def judged_by(self, findings: Sequence[ExperimentFinding]) -> Plan:
        """The same cells with these findings."""
        return replace(self, findings=tuple(findings))


def make_plan(experiment: Experiment, size: str, folders: Sequence[Path], *, test_seed: int | None = None) -> Plan:
    """The cells of an experiment. Raises one sentence for the first thing that is wrong."""
    made: dict[str, list[Step]] = {}
    check_files(wanted_files(experiment), folders)
    for name, data in experiment.data.items():
        placed = _with_files(data, folders, f"data.{name}")
        with prefixed(f"data.{name}"):
            DATA.check_parameters(placed, frozenset())
        made[name] = [_keyed(name, Unkeyed(DATA, {"data": name}, placed, {}))]
    _add_steps(made, experiment, size, test_seed)
    used = {ancestor.key for name in experiment.steps for step in made[name] for ancestor in step.ancestors()}
    steps = [step for name, cells in made.items() for step in cells if name in experiment.steps or step.key in used]
    if all(step.kind == DATA.name for step in steps):
        raise BadInputError(
            "nothing-to-run", "in the size '{size}' there is nothing to run: give at least one step", size=size
        )
    return Plan(experiment, size, tuple(steps), test_seed)


def outline(experiment: Experiment, size: str) -> tuple[list[Step], dict[str, Offered]]:
    """The cells of an experiment as far as the file alone tells them (no data is looked for, and keys mean nothing),
    and what `only` and `skip` can choose from in each step."""
    made = {name: [Step(name, name, DATA.name, {"data": name}, data, {})] for name, data in experiment.data.items()}
    offered = _add_steps(made, experiment, size, None)
    return [step for name in experiment.steps for step in made[name]], offered


def _add_steps(
    made: dict[str, list[Step]], experiment: Experiment, size: str, test_seed: int | None
) -> dict[str, Offered]:
    """Adds the cells of all steps to those of the data sets; returns what they were chosen from."""
    if both := [name for name in experiment.data if name in experiment.steps]:
        raise BadInputError(
            "name-twice", "'{name}' is a data set and a step: give one of them another name", name=both[0]
        )
    used = varied_values(experiment)
    for axis in experiment.variants:
        if axis not in used:
            raise BadInputError(
                "unused-variant", "'variants.{axis}' is used by no step: vary a step over it, or remove it", axis=axis
            )
    offered: dict[str, Offered] = {}
    for name, table in experiment.steps.items():
        made[name] = []
        if size in _sizes_of(name, table, size, experiment):
            offered[name] = {}
            cells = cells_of(name, table, experiment.variants, made, test_seed, offered[name])
            made[name] = [_keyed(name, cell) for cell in cells]
    return offered


def _sizes_of(name: str, table: StepTable, size: str, experiment: Experiment) -> list[str]:
    """The sizes in which a step is run."""
    known = list(dict.fromkeys((*SIZES, *experiment.sizes)))
    sizes = [size] if table.sizes is None else table.sizes
    if unknown := [wanted for wanted in sizes if wanted not in known]:
        raise BadInputError(
            "unknown-step-size",
            "'steps.{name}.sizes' names '{size}': the sizes are {known}",
            name=name,
            size=unknown[0],
            known=", ".join(known),
        )
    return sizes


def varied_values(experiment: Experiment) -> dict[str, list[str]]:
    """The values that a table 'over' gives to each axis, in steps and in variants."""
    values_of: dict[str, list[str]] = {}
    tables = [*experiment.steps.values(), *(t for tables in experiment.variants.values() for t in tables.values())]
    for table in tables:
        for axis, values in table.over.items():
            values_of.setdefault(axis, []).extend(map(shown, values))
    return values_of


def check_plan(plan: Plan) -> None:
    """Whether the cells go together, and whether everything they need is there (libraries, models, vectors), before
    anything runs. What the file alone tells comes first, because models take long to load."""
    cells: dict[str, Step] = {}
    for step in plan.steps:
        cells.setdefault(step.key, step)
    for step in cells.values():
        with prefixed(f"{'data' if step.kind == DATA.name else 'steps'}.{step.name}"):
            kinds()[step.kind].check_inputs(step.parameters, step.inputs)
    for step in cells.values():
        if step.kind != DATA.name:
            with prefixed(f"steps.{step.name}"):
                kinds()[step.kind].check_parameters(step.parameters, frozenset(step.inputs))


@contextmanager
def prefixed(where: str) -> Iterator[None]:
    """Errors raised inside name their place in the experiment file."""
    try:
        yield
    except TacitError as error:
        raise BadInputError("bad-experiment", "{where}: {error}", where=where, error=error) from None


def _with_files(data: DataSet, folders: Sequence[Path], where: str) -> DataSet:
    parts = {
        name: part.model_copy(update={"file": str(find_file(part.file, folders, f"{where}.parts.{name}.file"))})
        for name, part in data.parts.items()
    }
    files = {name: str(find_file(file, folders, f"{where}.files.{name}")) for name, file in data.files.items()}
    return data.model_copy(update={"parts": parts, "files": files})


def _keyed(name: str, cell: Unkeyed) -> Step:
    kind, inputs = cell.kind, {name: step.key for name, step in cell.inputs.items()}
    key = digest_of([kind.name, kind.version, kind.content_of(cell.parameters), inputs])
    return Step(key, name, kind.name, cell.axes, cell.parameters, cell.inputs)


def digest_of(value: object) -> str:
    """A digest of anything that JSON can hold."""
    text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode("utf-8"), digest_size=12).hexdigest()
