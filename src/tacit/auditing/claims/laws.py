"""Output probabilities, row by row: of one of our mechanisms, of a matrix, of a CSV file, of somebody else's function.

Whatever comes from outside is checked here, once: every row must be a probability distribution.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats, Ids
from tacit.errors import BadInputError, BadParameterError, TacitError

if TYPE_CHECKING:
    from tacit.words.base import WordMechanism

ROW_TOLERANCE = 1e-6
"""How far a row given from outside may miss the sum 1, which is then divided out."""

OWN_TOLERANCE = 1e-9


class Law(Protocol):
    """A mechanism with finitely many inputs and outputs."""

    @property
    def inputs(self) -> Sequence[str]:
        """Their names."""

    @property
    def outputs(self) -> Sequence[str]:
        """Their names."""

    def rows(self, ids: Ids) -> Floats:
        """Output probabilities, one row for each of these inputs."""


@dataclass(frozen=True, eq=False)
class MechanismLaw:
    """The law of a word mechanism: what its `laws` says about every word of the vocabulary."""

    mechanism: WordMechanism

    @property
    def inputs(self) -> Sequence[str]:
        words: Sequence[str] = self.mechanism.vocabulary
        return words

    @property
    def outputs(self) -> Sequence[str]:
        return self.inputs

    def rows(self, ids: Ids) -> Floats:
        law: Floats = self.mechanism.laws(ids)
        # Written so that NaN, which compares false, is refused as well.
        if not (law.min() >= 0 and np.abs(law.sum(axis=1) - 1).max() <= OWN_TOLERANCE):
            raise BadInputError(
                "law-is-no-distribution",
                "the law of {mechanism} is no probability distribution: repair the mechanism",
                mechanism=self.mechanism.name,
            )
        return law


@dataclass(frozen=True, eq=False)
class MatrixLaw:
    """A law that was worked out before: one row per input, one column per output."""

    matrix: Floats
    inputs: Sequence[str]
    outputs: Sequence[str]

    def rows(self, ids: Ids) -> Floats:
        return np.asarray(self.matrix[ids])


def matrix_law(
    matrix: ArrayLike, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
) -> MatrixLaw:
    """A checked law from a matrix of probabilities."""
    try:
        table = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInputError(
            "matrix-not-numbers", "a matrix of probabilities holds numbers only, the same count in each row"
        ) from None
    if table.ndim != 2 or 0 in table.shape:
        raise BadInputError("matrix-shape", "a matrix of probabilities has one row per input and one column per output")
    if len(table) < 2:
        raise BadInputError(
            "too-few-inputs", "a privacy claim compares two inputs, and the matrix has one row: give at least two"
        )
    rows = [f"input {i}" for i in range(table.shape[0])] if inputs is None else list(inputs)
    columns = [f"output {i}" for i in range(table.shape[1])] if outputs is None else list(outputs)
    if (len(rows), len(columns)) != table.shape:
        raise BadInputError(
            "matrix-shape",
            "{rows} inputs and {columns} outputs do not fit a matrix of shape {shape}: name each once",
            rows=len(rows),
            columns=len(columns),
            shape=table.shape,
        )
    return MatrixLaw(_checked(table, rows), rows, columns)


def _checked(table: Floats, names: Sequence[str]) -> Floats:
    # Written so that NaN, which compares false, is refused as well.
    wrong = np.flatnonzero(~((table >= 0) & (table <= 1 + ROW_TOLERANCE)).all(axis=1))
    if wrong.size:
        raise BadInputError(
            "not-a-probability",
            "the row of '{name}' holds a value that is no probability: all must lie between 0 and 1",
            name=names[wrong[0]],
        )
    sums = table.sum(axis=1)
    off = np.flatnonzero(np.abs(sums - 1) > ROW_TOLERANCE)
    if off.size:
        raise BadInputError(
            "probabilities-do-not-add-up",
            "the probabilities of '{name}' add up to {total:.6g}, not 1: give the probability of every output",
            name=names[off[0]],
            total=sums[off[0]],
        )
    return np.asarray(table / sums[:, None])


def read_matrix(path: str | Path) -> MatrixLaw:
    """A law from a CSV file: outputs in the header (its first cell is ignored), then a row per input, name first."""
    names, header, values = read_table(path)
    return matrix_law(values, names, header)


def read_table(path: str | Path) -> tuple[list[str], list[str], Floats]:
    """Row names, column names and numbers of a CSV file."""
    place = Path(path)
    try:
        with place.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(
            "unreadable-file",
            "cannot read {place}: {reason}",
            place=place,
            reason=getattr(error, "strerror", None) or "it is no UTF-8 text",
        ) from None
    except csv.Error as error:
        raise BadInputError(
            "not-a-csv-file", "{place} is no CSV file: {reason}", place=place, reason=str(error)
        ) from None
    if len(rows) < 2 or len(rows[0]) < 2:
        raise BadInputError(
            "table-without-header", "{place} needs a header with the columns and at least one row below it", place=place
        )
    header = [name.strip() for name in rows[0][1:]]
    values = np.empty((len(rows) - 1, len(header)))
    for number, row in enumerate(rows[1:]):
        if len(row) != len(header) + 1:
            raise BadInputError(
                "cells-missing",
                "row {number} of {place} has {cells} cells and the header has {expected}: fill it up",
                number=number + 2,
                place=place,
                cells=len(row),
                expected=len(header) + 1,
            )
        for column, cell in enumerate(row[1:]):
            try:
                values[number, column] = float(cell)
            except ValueError:
                raise BadInputError(
                    "not-a-number",
                    "row {row} of {place}, column '{column}': '{cell}' is no number",
                    row=number + 2,
                    place=place,
                    column=header[column],
                    cell=cell[:40],
                ) from None
    names = [row[0].strip() for row in rows[1:]]
    for what, labels in (("row", names), ("column", header)):
        if len(set(labels)) < len(labels):
            twice = next(name for name in labels if labels.count(name) > 1)
            raise BadInputError(
                "name-twice",
                "{place} has two {what}s named '{twice}': name each once",
                place=place,
                what=what,
                twice=twice,
            )
    return names, header, values


# Functions somebody else wrote ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stranger:
    """A function under audit: word -> probabilities, text -> text, or (word, count) -> outputs."""

    name: str
    call: Callable[..., Any]
    samples: bool

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self.call(*arguments)
        except (TacitError, KeyboardInterrupt):
            raise
        except Exception as error:
            shown = repr(arguments[0]) if arguments else ""
            raise BadInputError(
                "function-failed",
                "{name} failed for {inputs} with {error}: {reason}",
                name=self.name,
                inputs=shown[:80],
                error=type(error).__name__,
                reason=str(error)[:200],
            ) from error


def load_stranger(place: str | Callable[..., Any]) -> Stranger:
    """A function, or one from "module:function" or "file.py:function"."""
    if callable(place):
        return Stranger(getattr(place, "__name__", "the function"), place, _required_arguments(place) >= 2)
    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise BadParameterError(
            "bad-function-place", "write a function as module:function or file.py:function, not '{place}'", place=place
        )
    module = _module_from_file(Path(where)) if where.endswith(".py") else _module_by_name(where)
    function = getattr(module, name, None)
    if not callable(function):
        raise BadInputError(
            "no-such-function",
            "{where} has no function '{name}': check the name behind the colon",
            where=where,
            name=name,
        )
    return Stranger(place, function, _required_arguments(function) >= 2)


def _module_from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadInputError("no-such-file", "there is no file {path}: give the path of a Python file", path=path)
    spec = importlib.util.spec_from_file_location(f"audited_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise BadInputError("not-a-python-file", "{path} is no Python file", path=path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadInputError(
            "module-not-loaded",
            "{path} cannot be loaded: {error}: {reason}",
            path=path,
            error=type(error).__name__,
            reason=str(error)[:200],
        ) from error
    return module


def _module_by_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise BadInputError(
            "module-not-loaded",
            "the module {name} cannot be loaded: {error}: {reason}",
            name=name,
            error=type(error).__name__,
            reason=str(error)[:200],
        ) from error


def _required_arguments(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters)


def law_of(function: Callable[[str], Any], words: Sequence[str], *, first: Any = None) -> MatrixLaw:
    """The law of a function word -> probabilities: a mapping {output: probability}, or a list over the same words.

    `first` is the answer for the first word, if it is known already.
    """
    if len(words) < 2:
        raise BadInputError("too-few-inputs", "a privacy claim compares two inputs: give at least two words")
    answers = [function(word) if number or first is None else first for number, word in enumerate(words)]
    if all(isinstance(answer, Mapping) for answer in answers):
        outputs = list(dict.fromkeys(str(output) for answer in answers for output in answer))
        column = {output: place for place, output in enumerate(outputs)}
        table = np.zeros((len(words), len(outputs)))
        for row, (word, answer) in enumerate(zip(words, answers, strict=True)):
            for output, chance in answer.items():
                table[row, column[str(output)]] += _number(chance, word)
        return matrix_law(table, words, outputs)
    lengths = {len(answer) if hasattr(answer, "__len__") and not isinstance(answer, str) else -1 for answer in answers}
    if len(lengths) != 1 or -1 in lengths:
        raise BadInputError(
            "function-without-probabilities",
            "the function must return probabilities for each word: a mapping {{output: probability}}, or a list "
            "that is equally long for all words",
        )
    length = lengths.pop()
    outputs = list(words) if length == len(words) else [f"output {i}" for i in range(length)]
    rows = [[_number(chance, word) for chance in answer] for word, answer in zip(words, answers, strict=True)]
    return matrix_law(rows, words, outputs)


def _number(value: Any, word: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise BadInputError(
            "not-a-number",
            "the function returns {value!r:.40} as a probability for '{word}': give numbers",
            value=value,
            word=word,
        ) from None
