"""The scores of all cells as one table, small enough to be kept in the repository.

It holds no text, no time and no place, so that two runs with the same noise give the same bytes. What a run cost is
kept apart (`costs`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tacit.card import Card, plain_sentence
from tacit.errors import BadInputError, place_of
from tacit.evaluation.scores import t_interval
from tacit.experiments.config import About, Figure, Finding, Published, Value, WideTable
from tacit.experiments.measures import ENDS
from tacit.experiments.plan import Plan, Step, matches
from tacit.experiments.raw import read_json
from tacit.experiments.runner import failure_of, folder_of, is_finished, scores_in
from tacit.experiments.steps import kinds
from tacit.report.parts import plain
from tacit.version import __version__

RESULTS_VERSION = 1
SEED = "seed"
DOMAIN = "inside the domain"
ONE_DRAW = "One draw of the noise: chance is that of the test items, not of the noise."
OTHER_SIZE = "Explanations and reasons for differences were written about the quick size, and may not hold in this one."


@dataclass(frozen=True)
class Cell:
    """One cell with its scores; `problem` says why it has none, `failed` whether it was tried and went wrong, `promise`
    what its card says, `outside` whether it or what it was made from is outside the domain in which the mechanism is
    defined."""

    step: str
    kind: str
    axes: Mapping[str, Value]
    scores: Mapping[str, float]
    problem: str = ""
    promise: str = ""
    outside: bool = False
    failed: bool = False

    @property
    def finished(self) -> bool:
        return not self.problem


@dataclass(frozen=True)
class Number:
    """A mean over cells. `error` is its standard error: over test items where the score has an interval, and over seeds
    where there are several, both together; NaN where there is neither.
    `outside`: at least one of the cells is outside the domain of its mechanism."""

    value: float
    error: float = math.nan
    floor: float = math.nan
    ceiling: float = math.nan
    cells: int = 1
    outside: bool = False

    @property
    def low(self) -> float:
        return self.value - 1.96 * self.error

    @property
    def high(self) -> float:
        return self.value + 1.96 * self.error


@dataclass(frozen=True)
class Results:
    about: About
    size: str
    digest: str
    cells: tuple[Cell, ...]
    data: Mapping[str, str]
    published: tuple[Published, ...] = ()
    findings: tuple[Finding, ...] = ()
    figures: tuple[Figure, ...] = ()
    test_seed: int | None = None
    version: str = __version__
    tables: tuple[WideTable, ...] = ()

    # Looking things up ----------------------------------------------------------------------------------------

    @property
    def steps(self) -> list[str]:
        return list(dict.fromkeys(cell.step for cell in self.cells))

    @cached_property
    def _looked_up(self) -> dict[tuple[Any, ...], list[Cell]]:
        """Findings, tables and page look the same cells up thousands of times."""
        return {}

    def of(self, step: str, where: Mapping[str, Any] | None = None) -> list[Cell]:
        asked = where or {}
        key = (step, *((axis, tuple(v) if isinstance(v, list) else v) for axis, v in asked.items()))
        if key not in self._looked_up:
            among = self.cells if len(key) == 1 else self.of(step)
            self._looked_up[key] = [cell for cell in among if cell.step == step and matches(cell.axes, asked)]
        return list(self._looked_up[key])

    def axes(self, step: str) -> list[str]:
        return list(dict.fromkeys(axis for cell in self.of(step) for axis in cell.axes))

    def values(self, step: str, axis: str, where: Mapping[str, Any] | None = None) -> list[Value]:
        """The values of an axis in the order of the file, numbers sorted."""
        found = list(dict.fromkeys(c.axes[axis] for c in self.of(step, where) if axis in c.axes))
        numbers = all(isinstance(value, int | float) for value in found)
        return sorted(found) if numbers else found

    def measures(self, step: str) -> list[str]:
        """The scores of a step, those to show first in front; without intervals, floors and ceilings."""
        found = dict.fromkeys(name for cell in self.of(step) for name in cell.scores)
        names = [name for name in found if not name.endswith(tuple(f".{end}" for end in ENDS))]
        kind = next((cell.kind for cell in self.of(step)), "")
        first = kinds()[kind].measures if kind in kinds() else ()
        return [*(n for n in first if n in names), *(n for n in names if n not in first)]

    def number(self, step: str, measure: str, where: Mapping[str, Any]) -> Number | None:
        """The mean over all finished cells that match; None where there is none."""
        cells = [c for c in self.of(step, where) if c.finished and measure in c.scores]
        return mean_of(cells, measure) if cells else None

    def reference(self, step: str, measure: str, where: Mapping[str, Any]) -> float:
        """The same score without privacy: at the reference of the experiment, or the ceiling that the score carries."""
        own = self.number(step, measure, where)
        if own is not None and not math.isnan(own.ceiling):
            return own.ceiling
        if not self.about.reference:
            return math.nan
        kept = {axis: value for axis, value in where.items() if axis not in (*self.about.reference, "epsilon")}
        found = self.number(step, measure, {**kept, **self.about.reference})
        return math.nan if found is None else found.value

    # How far scores can be off ----------------------------------------------------------------------------------

    def repeated(self, step: str | None = None) -> bool:
        """Whether a question was asked with several seeds, in the whole experiment or in one step."""
        cells = [cell for cell in self.cells if cell.finished and step in (None, cell.step)]
        return any(len(group) > 1 for group in _by_question(cells))

    def one_draw(self, step: str | None = None) -> bool:
        """Whether standard errors know the chance of the test items only."""
        named = (name for cell in self.cells if step in (None, cell.step) for name in cell.scores)
        return any(name.endswith(".low") for name in named) and not self.repeated(step)

    @property
    def caveats(self) -> list[str]:
        """What a reader of all tables should know first."""
        explained = any(finding.explanation for finding in self.findings) or bool(self.published)
        return [*([ONE_DRAW] if self.one_draw() else []),
                *([OTHER_SIZE] if explained and self.size != "quick" else [])]  # fmt: skip

    @property
    def spread(self) -> str:
        """What ± is over."""
        return "over test items and, where there are several, seeds" if self.repeated() else "over test items"

    # For files ------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        value = {
            "results_version": RESULTS_VERSION,
            "tacit_version": self.version,
            "experiment": self.about.model_dump(),
            "size": self.size,
            "test_seed": self.test_seed,
            "digest": self.digest,
            "data": dict(self.data),
            "cells": [
                {"step": c.step, "kind": c.kind, "axes": dict(c.axes), "scores": dict(c.scores), "problem": c.problem,
                 "promise": c.promise, **({"outside": True} if c.outside else {}),
                 **({"failed": True} if c.failed else {})}
                for c in self.cells
            ],
            "published": [item.model_dump() for item in self.published],
            "findings": [item.model_dump() for item in self.findings],
            "figures": [item.model_dump() for item in self.figures],
            "tables": [item.model_dump() for item in self.tables],
        }  # fmt: skip
        return json.dumps(plain(value), indent=None, separators=(",", ":"), ensure_ascii=False).replace(
            '{"step":', '\n{"step":'
        ) + "\n"  # fmt: skip

    @classmethod
    def from_json(cls, text: str, name: str) -> Results:
        try:
            found = json.loads(text)
            if found["results_version"] != RESULTS_VERSION:
                raise BadInputError(f"{name} has version {found['results_version']}: run the experiment again")
            cells = [
                Cell(c["step"], c["kind"], {axis: _value(v) for axis, v in c["axes"].items()},
                     {measure: float(v) for measure, v in c["scores"].items()}, c["problem"], c["promise"],
                     bool(c.get("outside", False)), bool(c.get("failed", False)))
                for c in found["cells"]
            ]  # fmt: skip
            return cls(
                About.model_validate(_with_infinity(found["experiment"], "reference")), found["size"],
                found["digest"], tuple(cells), found["data"],
                tuple(
                    Published.model_validate({**item, "rows": [[_value(v) for v in row] for row in item["rows"]]})
                    for item in found["published"]
                ),
                tuple(Finding.model_validate(item) for item in found["findings"]),
                tuple(Figure.model_validate(_with_infinity(item, "where")) for item in found["figures"]),
                found["test_seed"], found["tacit_version"],
                tuple(WideTable.model_validate(_with_infinity(item, "where")) for item in found.get("tables", [])),
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError):
            raise BadInputError(
                f"{name} is no results file: give a results.json that 'tacit experiment run' wrote"
            ) from None


def _value(value: Value) -> Value:
    """Infinity is text in JSON."""
    return math.inf if value == "inf" else value


def _with_infinity(item: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A table of the file whose `key` holds axis values, alone or in lists."""
    places = item[key].items()
    values = {axis: [_value(one) for one in v] if isinstance(v, list) else _value(v) for axis, v in places}
    return {**item, key: values}


def mean_of(cells: Sequence[Cell], measure: str) -> Number:
    """Mean and standard error: cells that differ by their seed are repetitions, others are different questions.

    The test items are the same for all seeds of a question, so more seeds do not make their part of the error smaller.
    """
    questions = _by_question(cells)
    means = [_mean(c.scores[measure] for c in group) for group in questions]
    errors = [_error(group, measure) for group in questions]
    error = joint_error(errors) / len(errors)
    return Number(
        _mean(means), error, _mean(c.scores.get(f"{measure}.floor", math.nan) for c in cells),
        _mean(c.scores.get(f"{measure}.ceiling", math.nan) for c in cells), len(cells), any(c.outside for c in cells),
    )  # fmt: skip


def _by_question(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells that differ by their seed only, together."""
    found: dict[tuple[str, frozenset[tuple[str, Value]]], list[Cell]] = {}
    for cell in cells:
        place = frozenset((axis, value) for axis, value in cell.axes.items() if axis != SEED)
        found.setdefault((cell.step, place), []).append(cell)
    return list(found.values())


def _error(group: Sequence[Cell], measure: str) -> float:
    """Of one question: over seeds (Student), and over test items (from the 95 % interval of each run)."""
    values = [cell.scores[measure] for cell in group]
    widths = [c.scores.get(f"{measure}.high", math.nan) - c.scores.get(f"{measure}.low", math.nan) for c in group]
    items = _mean(width for width in widths if not math.isnan(width)) / (2 * 1.96)
    seeds = (t_interval(values).high - _mean(values)) / 1.96 if len(values) > 1 else math.nan
    return joint_error([seeds, items])


def joint_error(errors: Iterable[float]) -> float:
    """The standard error of a sum: what has none (NaN) is exact and adds nothing; NaN if nothing has one."""
    known = [error for error in errors if not math.isnan(error)]
    return math.hypot(*known) if known else math.nan


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return math.fsum(found) / len(found) if found else math.nan


# From the cache -----------------------------------------------------------------------------------------------------


def collect(plan: Plan, cache: Path) -> Results:
    """What the cache knows about the cells of a plan. Data sets are told in words, not as cells."""
    cells = [_cell(step, cache) for step in plan.steps if step.kind != "data"]
    data = {step.name: _about_data(step, plan, cache) for step in plan.steps if step.kind == "data"}
    experiment = plan.experiment
    return Results(
        experiment.experiment, plan.size, plan.digest, tuple(cells), data, tuple(experiment.published),
        tuple(experiment.findings), tuple(experiment.figures), plan.test_seed, tables=tuple(experiment.tables),
    )  # fmt: skip


def _cell(step: Step, cache: Path) -> Cell:
    folder = folder_of(cache, step)
    if is_finished(folder):
        try:
            outside = any(_scores(cell, cache).get(DOMAIN) == 0 for cell in (step, *step.ancestors()))
            scores = _scores(step, cache)
        except Exception as error:
            # The code that scores has changed, and the raw files are not what it expects.
            problem = f"failed: its scores cannot be derived from its raw files ({place_of(error)}): remove its folder"
            problem += f" {step.kind}/{step.key} from the cache"
            return Cell(step.name, step.kind, step.axes, {}, problem, failed=True)
        return Cell(step.name, step.kind, step.axes, scores, promise=_promise(folder), outside=outside)
    for cell in (step, *step.ancestors()):
        if (reason := failure_of(folder_of(cache, cell))) and not is_finished(folder_of(cache, cell)):
            problem = f"failed: {reason}" if cell is step else f"left out, because its input '{cell.label}' failed"
            return Cell(step.name, step.kind, step.axes, {}, problem, failed=cell is step)
    return Cell(step.name, step.kind, step.axes, {}, "not run")


def _scores(step: Step, cache: Path) -> dict[str, float]:
    folder = folder_of(cache, step)
    return scores_in(step.kind, folder) if is_finished(folder) else {}


def _promise(folder: Path) -> str:
    if not (folder / "card.json").is_file():
        return ""
    return plain_sentence(card_in(folder).guarantee)


def card_in(folder: Path) -> Card:
    return Card.from_json((folder / "card.json").read_text(encoding="utf-8"))


def _about_data(step: Step, plan: Plan, cache: Path) -> str:
    folder = folder_of(cache, step)
    about = plan.experiment.data[step.name].about
    if not is_finished(folder):
        return about
    rows = {k: v for k, v in scores_in(step.kind, folder).items() if k.startswith("rows in ")}
    counted = ", ".join(f"{int(count):,} {name.removeprefix('rows in ')} rows" for name, count in rows.items())
    return "; ".join(part for part in (about, counted) if part)


@dataclass(frozen=True)
class Cost:
    """What the cells of one step cost; each cell once, also when a run took it from the cache."""

    step: str
    cells: int
    cpu_seconds: float
    peak_megabytes: float


def costs(plan: Plan, cache: Path) -> list[Cost]:
    found = []
    for name in plan.names:
        folders = {folder_of(cache, step) for step in plan.named(name)}
        paid = [read_json(folder / "costs.json") for folder in sorted(folders) if is_finished(folder)]
        if paid:
            found.append(
                Cost(name, len(paid), sum(p["cpu_seconds"] for p in paid), max(p["peak_megabytes"] for p in paid))
            )
    return found
