"""Several releases as one promise: about the same unit they add up, about parts of the data the weakest one counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from tacit.errors import NoGuaranteeError
from tacit.guarantee.origins import VoidReason
from tacit.guarantee.terms import Metric, Notion

if TYPE_CHECKING:
    from tacit.guarantee.promise import Guarantee

Item = TypeVar("Item")


def in_sequence(everything: tuple[Guarantee, ...]) -> Guarantee:
    """The promise of several releases about the same unit: their losses add up."""
    first = everything[0]
    if void := _first_void(everything):
        return first.voided(*void)
    for other in everything[1:]:
        must_match(first, other, "compose")
    return replace(
        first,
        notion=_sum_notion(everything),
        epsilon=math.fsum(g.epsilon for g in everything),
        delta=probability(math.fsum(g.delta for g in everything)),
        offset=math.fsum(g.offset for g in everything),
        slack=math.fsum(g.slack for g in everything),
        parameters=_all_parameters(everything),
        mechanism=_joined(everything),
        not_covered=union(g.not_covered for g in everything),
        assumptions=union(g.assumptions for g in everything),
        provenance=union(g.provenance for g in everything),
        history=(*first.history, f"sequential composition of {len(everything)} releases"),
    )


def in_parallel(everything: tuple[Guarantee, ...]) -> Guarantee:
    """The promise of several releases where each unit is in exactly one of them: the weakest one counts."""
    first = everything[0]
    if void := _first_void(everything):
        return first.voided(*void)
    for other in everything[1:]:
        must_match(first, other, "compose")
    one_part = ("each unit is in exactly one of the parts, whatever its value",)
    return replace(
        first,
        notion=_sum_notion(everything),
        epsilon=max(g.epsilon for g in everything),
        delta=max(g.delta for g in everything),
        offset=max(g.offset for g in everything),
        slack=max(g.slack for g in everything),
        parameters=_all_parameters(everything),
        mechanism=_joined(everything),
        not_covered=union(g.not_covered for g in everything),
        assumptions=union([*(g.assumptions for g in everything), one_part]),
        provenance=union(g.provenance for g in everything),
        history=(*first.history, f"parallel composition of {len(everything)} releases"),
    )


def must_match(mine: Guarantee, other: Guarantee, verb: str, *, same_notion: bool = False) -> None:
    """Refuses two guarantees that do not speak of the same thing."""
    plain = (Notion.PURE, Notion.APPROXIMATE)
    both_plain = mine.notion in plain and other.notion in plain and not same_notion
    if mine.notion is not other.notion and not both_plain:
        raise NoGuaranteeError(
            "guarantees-not-comparable",
            "cannot {verb} {notion} with {other_notion}: their epsilons measure different things. Convert with "
            "over_diameter() first where that is proven",
            verb=verb,
            notion=mine.notion.label,
            other_notion=other.notion.label,
        )
    for name in ("model", "unit", "adjacency", "metric", "domain", "sensitive_share"):
        value, other_value = getattr(mine, name), getattr(other, name)
        if value != other_value:
            raise NoGuaranteeError(
                "guarantees-not-comparable",
                "cannot {verb} guarantees with different {property}: {mine} and {theirs}",
                verb=verb,
                property=name.replace("_", " "),
                mine=_shown(value),
                theirs=_shown(other_value),
            )


def union(groups: Iterable[Iterable[Item]]) -> tuple[Item, ...]:
    """All items of all groups, each once, in the order in which they first occur."""
    return tuple(dict.fromkeys(item for group in groups for item in group))


def probability(value: float) -> float:
    """An upper bound on a probability, which never needs to exceed 1."""
    return min(1.0, value)


def _first_void(everything: tuple[Guarantee, ...]) -> tuple[str, VoidReason] | None:
    void = next((g for g in everything if g.notion is Notion.NONE), None)
    return None if void is None else (void.void or "", void.void_reason or VoidReason.OTHER)


def _sum_notion(everything: tuple[Guarantee, ...]) -> Notion:
    if any(g.notion is Notion.APPROXIMATE for g in everything):
        return Notion.APPROXIMATE
    return everything[0].notion


def _all_parameters(everything: tuple[Guarantee, ...]) -> Mapping[str, object]:
    if all(g.parameters == everything[0].parameters for g in everything):
        return everything[0].parameters
    return {f"release {number}": dict(g.parameters) for number, g in enumerate(everything, 1)}


def _joined(everything: tuple[Guarantee, ...]) -> str:
    return " + ".join(dict.fromkeys(g.mechanism for g in everything))


def _shown(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return value.name if isinstance(value, Metric) else str(value)
