"""The values of label columns as options write them: `0,2,4`, and `stars=1,2,3` where there are several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from tacit.errors import BadParameterError
from tacit.jobs.config import Group, Option, option_twice
from tacit.jobs.values import label_names, split_at_commas

NamedLabels = tuple[tuple[str, tuple[str, ...]], ...]
NamedEdges = tuple[tuple[str, tuple[float, ...]], ...]
LabelBins = Annotated[
    tuple[float, ...],
    BeforeValidator(split_at_commas),
    Field(description="The label column holds numbers: public edges of their bins."),
    Option(Group.DATA, comma_separated=True, metavar="0,2,4"),
]


def named_labels(value: Any) -> object:
    """Names by label column: from a mapping, or from texts such as `stars=1,2,3`."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return tuple((str(column), label_names(names)) for column, names in value.items())
    return tuple(_named_column(item) for item in ([value] if isinstance(value, str) else value))


def with_label_columns(values: object) -> object:
    """Options in which `label_column`, the name of one column, has become `label_columns`."""
    if not isinstance(values, dict) or "label_column" not in values:
        return values
    renamed = dict(values)
    column = renamed.pop("label_column")
    if renamed.get("label_columns"):
        raise option_twice("label_column")
    return {**renamed, "label_columns": () if column is None else (column,)}


def _named_column(item: Any) -> tuple[str, Sequence[object]]:
    column, names = (item.partition("=")[0], split_at_commas(item.partition("=")[2])) if isinstance(item, str) else item
    if not names:
        raise bad_labels(str(item))
    return column, names


def bad_labels(item: str) -> BadParameterError:
    """The error of values that name no column."""
    return BadParameterError(
        "bad-labels",
        "{option.labels} names the values of a label column, such as {option.labels[stars=1,2,3,4,5]}, not '{item}'",
        item=item,
    )
