"""The same promise for another unit (texts, users, groups) or another notion (over the diameter of its metric)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.guarantee.adjacency import TEXT_ADJACENCY
from tacit.guarantee.composition import probability
from tacit.guarantee.terms import Model, Notion, Unit
from tacit.rounding import rounded_up

if TYPE_CHECKING:
    from tacit.guarantee.promise import Guarantee


def for_document(g: Guarantee, tokens: int) -> Guarantee:
    """The promise for a whole text of `tokens` tokens (see `Guarantee.for_document`)."""
    tokens = _count(tokens, "tokens")
    if not g.unit.is_part_of_text:
        raise NoGuaranteeError(
            "no-conversion-to-documents",
            "only a guarantee per token or sentence adds up over a text; this one is per {unit}",
            unit=g.unit.value,
        )
    if g.model is not Model.LOCAL:
        raise NoGuaranteeError(
            "no-conversion-to-documents",
            "tokens add up over a text only in the local model, where each one is rewritten alone",
        )
    if g.adjacency not in TEXT_ADJACENCY:
        raise NoGuaranteeError(
            "no-conversion-to-documents",
            "no proven conversion to documents from adjacency '{adjacency}'",
            adjacency=g.adjacency.value,
        )
    return replace(
        _repeated(g, tokens),
        unit=Unit.DOCUMENT,
        adjacency=TEXT_ADJACENCY[g.adjacency],
        history=(*g.history, f"summed over a text of {tokens:,} {g.unit.value}s"),
    )


def for_user(g: Guarantee, documents: int) -> Guarantee:
    """The promise for a person with `documents` documents, records or sentences."""
    documents = _count(documents, "documents")
    if g.unit not in (Unit.DOCUMENT, Unit.RECORD, Unit.SENTENCE):
        raise NoGuaranteeError(
            "no-conversion-to-users",
            "no proven conversion from '{unit}' to users: convert to documents first (for_document)",
            unit=g.unit.value,
        )
    return replace(
        _grouped(g, documents),
        unit=Unit.USER,
        history=(*g.history, f"{documents:,} {g.unit.value}s of one user"),
    )


def for_group(g: Guarantee, size: int) -> Guarantee:
    """The promise when any `size` units change together."""
    size = _count(size, "size")
    return replace(_grouped(g, size), history=(*g.history, f"group of {size:,} {g.unit.value}s"))


def over_diameter(g: Guarantee) -> Guarantee:
    """The plain promise that follows from a metric one, because no two inputs are farther apart than the diameter."""
    if g.notion is Notion.NONE:
        return g
    if g.notion is Notion.UTILITY_OPTIMIZED_METRIC:
        raise NoGuaranteeError(
            "no-plain-epsilon",
            "a utility-optimized guarantee has no plain counterpart: an unprotected output reveals its input "
            "exactly. Use 'santext' (every word sensitive) if you need one",
        )
    if g.notion is not Notion.METRIC:
        raise NoGuaranteeError("no-plain-epsilon", "{notion} has no metric to convert over", notion=g.notion.label)
    if g.metric is None or g.metric.diameter is None:
        raise NoGuaranteeError(
            "no-plain-epsilon", "the metric has no proven largest distance, so no plain epsilon follows from it"
        )
    return replace(
        g,
        notion=Notion.APPROXIMATE if g.delta else Notion.PURE,
        epsilon=g.epsilon * g.metric.diameter + g.offset,
        offset=0.0,
        metric=None,
        history=(*g.history, f"over the largest distance {rounded_up(g.metric.diameter)} of the {g.metric.label}"),
    )


def group_delta(epsilon: float, delta: float, size: int) -> float:
    """delta of a group: delta * (1 + e^eps + ... + e^{(size-1) eps}) (Vadhan 2017, lemma 2.2)."""
    if delta == 0.0:
        return 0.0
    if epsilon * size > 700:
        return 1.0
    factor = float(size) if epsilon == 0.0 else math.expm1(epsilon * size) / math.expm1(epsilon)
    return probability(delta * factor)


def _repeated(g: Guarantee, count: int) -> Guarantee:
    """`count` independent local releases, one for each unit that may change."""
    if g.notion is Notion.NONE:
        return g
    metric = None if g.metric is None else g.metric.times(count)
    return replace(
        g,
        epsilon=g.epsilon if metric else g.epsilon * count,
        delta=probability(g.delta * count),
        offset=g.offset * count,
        slack=g.slack * count,
        metric=metric,
    )


def _grouped(g: Guarantee, size: int) -> Guarantee:
    if g.model is Model.LOCAL or g.notion is Notion.NONE:
        return _repeated(g, size)
    if g.metric is not None:
        raise NoGuaranteeError(
            "no-group-privacy", "no proven group privacy for a metric guarantee in the central model"
        )
    return replace(
        g,
        epsilon=g.epsilon * size,
        delta=group_delta(g.epsilon + g.slack, g.delta, size),
        slack=g.slack * size,
    )


def _count(value: int, name: str) -> int:
    if int(value) != value or value < 1:
        raise BadParameterError(
            "impossible-count", "{name} must be a whole number of at least 1, not {value}", name=name, value=value
        )
    return int(value)
