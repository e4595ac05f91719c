"""The base of all tables in an experiment file: strict models, and values of axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict

Value = str | int | float | bool
Axes = dict[str, Value]
Where = Mapping[str, Value | list[Value]]
"""Axis values that cells are chosen by; a list allows each of its values."""

SEED: Final = "seed"
EPSILON: Final = "epsilon"


class Strict(BaseModel):
    """A table of the file in which a misspelled key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=True)


def shown(value: Value) -> str:
    """A value of an axis as text: 2.0 is 2, infinity is the word."""
    if isinstance(value, float) and not isinstance(value, bool):
        return "inf" if value == float("inf") else f"{value:g}"
    return str(value)


def allowed(wanted: Value | list[Value]) -> list[Value]:
    """The values that a choice allows."""
    return wanted if isinstance(wanted, list) else [wanted]


def matches(axes: Mapping[str, Value], where: Where) -> bool:
    """Whether a cell stands at these values."""
    return all(axis in axes and axes[axis] in allowed(wanted) for axis, wanted in where.items())
