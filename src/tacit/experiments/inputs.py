"""Checks of the data behind a step before anything runs: parts, columns, labels, rows of their own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from tacit.errors import BadInputError
from tacit.experiments.config import DataSet, Part
from tacit.experiments.steps import PlannedCell


def data_in(inputs: Mapping[str, PlannedCell], name: str = "data") -> DataSet:
    """The data set that stands as an input."""
    data = inputs[name].parameters
    assert isinstance(data, DataSet)  # `Input.kinds` lets nothing else stand there
    return data


def check_texts(data: DataSet) -> None:
    """Refuse data without texts."""
    if not data.parts:
        raise BadInputError(
            "data-without-texts", "the data set has files but no texts: give it 'parts', or take another one"
        )


def check_part(data: DataSet, part: str, key: str) -> None:
    """Refuse data that lacks the part that the parameter `key` names."""
    check_texts(data)
    if part not in data.parts:
        raise BadInputError(
            "no-such-part",
            "'{key}' names the part '{part}', which the data set does not have: it has {parts}",
            key=key,
            part=part,
            parts=", ".join(data.parts),
        )


def check_column(data: DataSet, column: str, key: str) -> None:
    """Refuse data that does not keep the column that the parameter `key` names."""
    if column not in data.keep:
        raise BadInputError(
            "column-not-kept",
            "'{key}' names the column '{column}', which the data set does not keep: add it to 'keep' there{kept}",
            key=key,
            column=column,
            kept=f" (it keeps {', '.join(data.keep)})" if data.keep else "",
        )


def check_labeled(data: DataSet) -> None:
    """Refuse data without labels."""
    if data.label is None:
        raise BadInputError(
            "data-without-labels", "the data set names no label: add 'label' to it, the column with the labels"
        )


def check_apart(data: DataSet, train: str, test: str) -> None:
    """Refuse two parts of the data that share rows: a score on rows that were learned by heart is none."""
    if train == test:
        raise BadInputError(
            "tested-on-training-rows",
            "'train' and 'test' are both the part '{part}': test on rows that were held out",
            part=train,
        )
    if _share_rows(data.parts[train], data.parts[test]):
        raise BadInputError(
            "parts-share-rows",
            "the parts '{train}' and '{test}' have rows of one file in common: give one of them a 'skip' of at least "
            "the 'rows' of the other, and both the same 'seed'",
            train=train,
            test=test,
        )


def _share_rows(first: Part, second: Part) -> bool:
    if Path(first.file).resolve() != Path(second.file).resolve():
        return False
    if first.where == second.where:
        # Places in two shuffles say nothing about each other.
        return first.seed != second.seed or (first.skip < _end(second) and second.skip < _end(first))
    return _takes_all_of(first, second) or _takes_all_of(second, first)


def _end(part: Part) -> float:
    return math.inf if part.rows is None else part.skip + part.rows


def _takes_all_of(wide: Part, narrow: Part) -> bool:
    """Whether `wide` takes every row that matches, and all rows of `narrow` match."""
    all_match = all(
        column in narrow.where and set(_values(narrow, column)) <= set(_values(wide, column)) for column in wide.where
    )
    return wide.rows is None and wide.skip == 0 and all_match


def _values(part: Part, column: str) -> list[str]:
    wanted = part.where[column]
    return [wanted] if isinstance(wanted, str) else wanted
