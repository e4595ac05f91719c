"""The scores of all cells as one table, small enough to be kept in the repository.

It holds no text, no time and no place, so that two runs with the same noise give the same bytes. What a run cost is
kept apart (`collecting.costs`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

import pandas as pd
from pydantic import ValidationError
from pydantic.dataclasses import dataclass as validated_dataclass

from tacit.errors import BadInputError
from tacit.experiments.chance import Number, ScoredPoint, mean_of
from tacit.experiments.config import About, FigureRule, Published, WideTable
from tacit.experiments.declared import EPSILON, SEED, Axes, Strict, Value, Where, allowed
from tacit.experiments.measures import ENDS
from tacit.experiments.steps import kinds
from tacit.experiments.verdicts import FindingVerdict
from tacit.report.parts import plain
from tacit.version import __version__

RESULTS_VERSION: Final = 2
ONE_DRAW: Final = "One draw of the noise: chance is that of the test items, not of the noise."
OTHER_SIZE: Final = (
    "Explanations and reasons for differences were written about the quick size, and may not hold in this one."
)


@validated_dataclass(frozen=True)
class Cell:
    """One cell with its scores.

    problem   why it has no scores
    promise   what its card says
    outside   it, or what it was made from, is outside the domain in which the mechanism is defined
    failed    it was tried and went wrong
    """

    step: str
    kind: str
    axes: Axes
    scores: dict[str, float]
    problem: str = ""
    promise: str = ""
    outside: bool = False
    failed: bool = False

    @property
    def finished(self) -> bool:
        return not self.problem

    def point(self, measure: str) -> ScoredPoint:
        """One of its scores, with its interval, floor and ceiling."""
        question = frozenset((axis, value) for axis, value in self.axes.items() if axis != SEED)
        ends = {end: self.scores.get(f"{measure}.{end}", math.nan) for end in ENDS}
        return ScoredPoint((self.step, question), self.scores[measure], **ends, outside=self.outside)


def mean_of_cells(cells: Iterable[Cell], measure: str) -> Number:
    """The mean of a score, and how far it can be off."""
    return mean_of([cell.point(measure) for cell in cells])


@dataclass(frozen=True)
class Results:
    """The results of an experiment in one size, and the verdicts on its findings."""

    about: About
    size: str
    digest: str
    cells: tuple[Cell, ...]
    data: Mapping[str, str]
    published: tuple[Published, ...] = ()
    figures: tuple[FigureRule, ...] = ()
    tables: tuple[WideTable, ...] = ()
    verdicts: tuple[FindingVerdict, ...] = ()
    test_seed: int | None = None
    version: str = __version__

    # Looking things up ----------------------------------------------------------------------------------------

    @cached_property
    def frame(self) -> pd.DataFrame:
        """A row for each score of each cell: step, kind, the axes, measure, value, low, high, floor, ceiling, outside.

        An axis that a cell does not have is missing there.
        """
        rows = [
            {
                "step": cell.step, "kind": cell.kind, **cell.axes, "measure": name, "value": value,
                **{end: cell.scores.get(f"{name}.{end}", math.nan) for end in ENDS}, "outside": cell.outside,
            }
            for cell in self.cells
            for name, value in cell.scores.items()
            if not is_end(name)
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=self.empty_frame(self._cell_axes).columns)

    @staticmethod
    def empty_frame(axes: Sequence[str]) -> pd.DataFrame:
        """A frame of scores without rows."""
        return pd.DataFrame(columns=list(dict.fromkeys(["step", "kind", *axes, "measure", "value", *ENDS, "outside"])))

    @cached_property
    def _cell_axes(self) -> list[str]:
        return list(dict.fromkeys(axis for cell in self.cells for axis in cell.axes))

    @cached_property
    def _places(self) -> dict[str, pd.DataFrame]:
        """For each step the axes of its cells, by their number; whole numbers stay what they are."""
        numbered: dict[str, dict[int, Axes]] = {}
        for number, cell in enumerate(self.cells):
            numbered.setdefault(cell.step, {})[number] = cell.axes
        return {
            step: pd.DataFrame(list(axes.values()), index=list(axes), dtype=object) for step, axes in numbered.items()
        }

    @cached_property
    def _looked_up(self) -> dict[Hashable, list[Cell]]:
        """Findings, tables and page look the same cells up thousands of times."""
        return {}

    @property
    def steps(self) -> list[str]:
        return list(self._places)

    def of(self, step: str, where: Where | None = None) -> list[Cell]:
        """The cells of a step at these axis values."""
        key = (step, *((axis, tuple(allowed(wanted))) for axis, wanted in (where or {}).items()))
        if key not in self._looked_up:
            self._looked_up[key] = self._selected(step, where or {})
        return self._looked_up[key]

    def _selected(self, step: str, where: Where) -> list[Cell]:
        places = self._places.get(step, pd.DataFrame())
        if any(axis not in places for axis in where):
            return []
        for axis, wanted in where.items():
            places = places[places[axis].isin(allowed(wanted))]
        return [self.cells[number] for number in places.index]

    def axes(self, step: str, where: Where | None = None) -> list[str]:
        """The axes of the cells of a step."""
        return list(dict.fromkeys(axis for cell in self.of(step, where) for axis in cell.axes))

    def values(self, step: str, axis: str, where: Where | None = None) -> list[Value]:
        """The values of an axis in the order of the file, numbers sorted."""
        values = list(dict.fromkeys(cell.axes[axis] for cell in self.of(step, where) if axis in cell.axes))
        numbers = [value for value in values if isinstance(value, int | float)]
        return sorted(numbers) if len(numbers) == len(values) else values

    def measures(self, step: str) -> list[str]:
        """The scores of a step, those to show first in front; without intervals, floors and ceilings."""
        names = [name for name in dict.fromkeys(n for cell in self.of(step) for n in cell.scores) if not is_end(name)]
        kind = next((cell.kind for cell in self.of(step)), "")
        first = kinds()[kind].measures if kind in kinds() else ()
        return [*(name for name in first if name in names), *(name for name in names if name not in first)]

    def number(self, step: str, measure: str, where: Where) -> Number | None:
        """The mean over all finished cells that match; None where there is none."""
        cells = [cell for cell in self.of(step, where) if cell.finished and measure in cell.scores]
        return mean_of_cells(cells, measure) if cells else None

    def reference(self, step: str, measure: str, where: Where) -> float:
        """The same score without privacy: at the reference of the experiment, or the ceiling that the score carries."""
        own = self.number(step, measure, where)
        if own is not None and not math.isnan(own.ceiling):
            return own.ceiling
        if not self.about.reference:
            return math.nan
        kept = {axis: value for axis, value in where.items() if axis not in (*self.about.reference, EPSILON)}
        number = self.number(step, measure, {**kept, **self.about.reference})
        return math.nan if number is None else number.value

    # How far scores can be off ----------------------------------------------------------------------------------

    def repeated(self, step: str | None = None) -> bool:
        """Whether a question was asked with several seeds, in the whole experiment or in one step."""
        cells = [cell for cell in self.cells if cell.finished and step in (None, cell.step)]
        questions = {(c.step, frozenset((axis, v) for axis, v in c.axes.items() if axis != SEED)) for c in cells}
        return len(questions) < len(cells)

    def one_draw(self, step: str | None = None) -> bool:
        """Whether standard errors know the chance of the test items only."""
        names = (name for cell in self.cells if step in (None, cell.step) for name in cell.scores)
        return any(name.endswith(".low") for name in names) and not self.repeated(step)

    @property
    def caveats(self) -> list[str]:
        """Warnings that a reader of any of the tables should read first."""
        explained = any(verdict.explanation for verdict in self.verdicts) or bool(self.published)
        other_size = explained and self.size != "quick"
        return [*([ONE_DRAW] if self.one_draw() else []), *([OTHER_SIZE] if other_size else [])]

    @property
    def spread(self) -> str:
        """The sources of variation behind the ± of a table."""
        return "over test items and, where there are several, seeds" if self.repeated() else "over test items"

    # For files ------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Everything, with each cell on a line of its own."""
        value = {
            "results_version": RESULTS_VERSION,
            "tacit_version": self.version,
            "experiment": self.about.model_dump(),
            "size": self.size,
            "test_seed": self.test_seed,
            "digest": self.digest,
            "data": dict(self.data),
            "cells": [_cell_values(cell) for cell in self.cells],
            "published": _dumped(self.published),
            "verdicts": _dumped(self.verdicts),
            "figures": _dumped(self.figures),
            "tables": _dumped(self.tables),
        }
        text = json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False)
        return text.replace('{"step":', '\n{"step":') + "\n"

    @classmethod
    def from_json(cls, text: str, name: str) -> Results:
        """The results of a file, of which `name` is said in errors."""
        try:
            values = json.loads(text)
            version = values["results_version"]
            if version == RESULTS_VERSION:
                return cls(
                    About.model_validate(_with_infinity(values["experiment"])),
                    values["size"],
                    values["digest"],
                    tuple(Cell(**_with_infinity(cell)) for cell in values["cells"]),
                    values["data"],
                    tuple(Published.model_validate(_with_infinity(item)) for item in values["published"]),
                    tuple(FigureRule.model_validate(_with_infinity(item)) for item in values["figures"]),
                    tuple(WideTable.model_validate(_with_infinity(item)) for item in values["tables"]),
                    tuple(FindingVerdict.model_validate(item) for item in values["verdicts"]),
                    values["test_seed"],
                    values["tacit_version"],
                )
        except (ValueError, KeyError, TypeError, AttributeError, ValidationError):
            raise BadInputError(
                "no-results-file",
                "{name} is no results file: give a results.json that 'tacit experiment run' wrote",
                name=name,
            ) from None
        raise BadInputError(
            "results-of-another-version",
            "{name} has version {version} of the format, and this is version {known}: write it again with "
            "'tacit experiment report' from its cache, or run the experiment again",
            name=name,
            version=version,
            known=RESULTS_VERSION,
        )


def is_end(name: str) -> bool:
    """Whether a name is that of an interval, a floor or a ceiling of another score."""
    return name.endswith(tuple(f".{end}" for end in ENDS))


def _dumped(items: Sequence[Strict]) -> list[dict[str, Any]]:
    return [item.model_dump(exclude_defaults=True) for item in items]


def _cell_values(cell: Cell) -> dict[str, Any]:
    return {name: value for name, value in asdict(cell).items() if value is not False}


HOLDS_AXIS_VALUES: Final = ("axes", "where", "reference", "rows", "scores")


def _with_infinity(item: Mapping[str, Any]) -> dict[str, Any]:
    """A table of the file; infinity is text in JSON, wherever numbers stand."""
    return {name: _numbers(value) if name in HOLDS_AXIS_VALUES else _nested(value) for name, value in item.items()}


def _nested(value: Any) -> Any:
    if isinstance(value, list):
        return [_nested(part) for part in value]
    return _with_infinity(value) if isinstance(value, dict) else value


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(part) for part in value]
    if isinstance(value, dict):
        return {name: _numbers(part) for name, part in value.items()}
    return math.inf if value == "inf" else value
