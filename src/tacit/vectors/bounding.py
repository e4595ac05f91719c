"""Bounding maps by name (`tacit.vectors.bounding_maps` has the maps and the meaning of their sensitivity)."""

from __future__ import annotations

from typing import Any

from tacit.errors import BadParameterError
from tacit.vectors.bounding_maps import (
    AdaptedUnit,
    Bounding,
    ClipToRange,
    MinusOneToOne,
    NoBound,
    ObservedRange,
    Sensitivity,
    UnitNorm,
    vocabulary_sensitivity,
)
from tacit.vectors.projection import JohnsonLindenstrauss

__all__ = ["BOUNDINGS", "Bounding", "Sensitivity", "bounding", "vocabulary_sensitivity"]

BOUNDINGS: dict[str, type[Bounding]] = {
    kind.name: kind
    for kind in (NoBound, UnitNorm, AdaptedUnit, MinusOneToOne, ObservedRange, ClipToRange, JohnsonLindenstrauss)
}


def bounding(name: str, **options: Any) -> Bounding:
    """A bounding map by its name, with its own options: `bounding("jl", beta=0.5)` or `bounding("jl:beta=0.5")`."""
    name, _, written = name.partition(":")
    for part in filter(None, written.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise BadParameterError(
                "bad-bounding-options",
                "write options of a bounding map as name:key=value,key=value, not {given!r}",
                given=part,
            )
        options[key.strip()] = _number_or_text(value.strip())
    if name not in BOUNDINGS:
        raise BadParameterError(
            "unknown-bounding-map",
            "unknown bounding map {name!r}: the maps are {known}",
            name=name,
            known=", ".join(BOUNDINGS),
        )
    try:
        return BOUNDINGS[name](**options)
    except TypeError as error:
        raise BadParameterError(
            "bad-bounding-options",
            "the bounding map '{name}' does not take these options: {reason}",
            name=name,
            reason=str(error),
        ) from error


def _number_or_text(value: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return value
