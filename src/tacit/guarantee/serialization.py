"""A guarantee as plain data that JSON can hold, and back from the data of any version of the card."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING, Any

from tacit.guarantee.adjacency import Adjacency
from tacit.guarantee.origins import Exclusion, ExclusionKind, Provenance, ProvenanceKind, VoidReason
from tacit.guarantee.terms import Metric, MetricKind, Model, Notion, Unit
from tacit.guarantee.version_1 import upgraded

if TYPE_CHECKING:
    from tacit.guarantee.promise import Guarantee


def plain_data(g: Guarantee) -> dict[str, Any]:
    """The fields of a guarantee as strings, numbers, lists and dictionaries."""
    data = {item.name: _plain(getattr(g, item.name)) for item in fields(g)}
    data["not_covered_kinds"] = [Exclusion.kind_of(line).value for line in g.not_covered]
    return data


def typed_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `Guarantee` from the plain data of a card of any version."""
    values = upgraded(data)
    values["notion"] = Notion(values["notion"])
    values["model"] = Model(values["model"])
    values["unit"] = Unit(values["unit"])
    values["adjacency"] = Adjacency(values["adjacency"])
    values["epsilon"] = math.inf if values["epsilon"] is None else values["epsilon"]
    if values.get("metric"):
        metric = values["metric"]
        values["metric"] = Metric(**{**metric, "kind": MetricKind(metric["kind"])})
    values["provenance"] = tuple(
        Provenance(**{**item, "kind": ProvenanceKind(item["kind"])}) for item in values["provenance"]
    )
    if values["void_reason"] is not None:
        values["void_reason"] = VoidReason(values["void_reason"])
    kinds = values.pop("not_covered_kinds")
    values["not_covered"] = [
        Exclusion(line, ExclusionKind(kind)) for line, kind in zip(values["not_covered"], kinds, strict=True)
    ]
    for name in ("not_covered", "assumptions", "history"):
        values[name] = tuple(values.get(name, ()))
    return values


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Metric | Provenance):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Exclusion):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
