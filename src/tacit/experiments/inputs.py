"""What a step needs of the data behind it, said before anything runs: parts, columns, labels, rows of their own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from tacit.errors import BadInputError
from tacit.experiments.config import DataSet, Part
from tacit.experiments.steps import Cell


def data_in(inputs: Mapping[str, Cell], name: str = "data") -> DataSet:
    found = inputs[name].parameters
    assert isinstance(found, DataSet)  # `Input.kinds` lets nothing else stand there
    return found


def check_texts(data: DataSet) -> None:
    if not data.parts:
        raise BadInputError("the data set has files but no texts: give it 'parts', or take another one")


def check_part(data: DataSet, part: str, key: str) -> None:
    """Whether the data has the part that the parameter `key` names."""
    check_texts(data)
    if part not in data.parts:
        raise BadInputError(
            f"'{key}' names the part '{part}', which the data set does not have: it has {', '.join(data.parts)}"
        )


def check_column(data: DataSet, column: str, key: str) -> None:
    """Whether the data keeps the column that the parameter `key` names."""
    if column not in data.keep:
        kept = f" (it keeps {', '.join(data.keep)})" if data.keep else ""
        raise BadInputError(
            f"'{key}' names the column '{column}', which the data set does not keep: add it to 'keep' there{kept}"
        )


def check_labeled(data: DataSet) -> None:
    if data.label is None:
        raise BadInputError("the data set names no label: add 'label' to it, the column with the labels")


def check_apart(data: DataSet, train: str, test: str) -> None:
    """Whether two parts that the data has hold different rows: what was learned by heart is no score."""
    if train == test:
        raise BadInputError(f"'train' and 'test' are both the part '{train}': test on rows that were held out")
    if _share_rows(data.parts[train], data.parts[test]):
        raise BadInputError(
            f"the parts '{train}' and '{test}' have rows of one file in common: give one of them a 'skip' of at least "
            "the 'rows' of the other, and both the same 'seed'"
        )


def _share_rows(one: Part, other: Part) -> bool:
    if Path(one.file).resolve() != Path(other.file).resolve():
        return False
    if one.where == other.where:
        # Places in two shuffles say nothing about each other.
        return one.seed != other.seed or (one.skip < _end(other) and other.skip < _end(one))
    return _takes_all_of(one, other) or _takes_all_of(other, one)


def _end(part: Part) -> float:
    return math.inf if part.rows is None else part.skip + part.rows


def _takes_all_of(wide: Part, narrow: Part) -> bool:
    """Whether `wide` takes every row that matches, and all rows of `narrow` match."""
    return wide.rows is None and wide.skip == 0 and wide.where.items() <= narrow.where.items()
