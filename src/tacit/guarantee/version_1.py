"""Guarantees as version 1 of the card wrote them, with the typed fields of version 2 filled in.

Version 1 said in sentences what version 2 says in fields: which distance, where something was learned, why there is no
guarantee, which lines speak of the length of a text or of earlier weights. The sentences of version 1 are fixed (no
Tacit writes them any more), so they are read here and nowhere else. A sentence that is not known has the kind "other",
which grants nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_METRICS: Final = {
    "Euclidean": "euclidean",
    "Hamming": "hamming",
    "regularized Mahalanobis": "mahalanobis",
}
_VOID: Final = {
    "it started from weights without a guarantee": "starting weights",
    "it was trained without noise, on text that was declared public": "declared public",
    "it was made from weights that have read private text": "no card",
}
_VOID_WITHIN: Final = {"test seed": "test seed", "without noise": "no noise", "no noise": "no noise"}
_EARLIER: Final = "what the starting weights learned from their own records"
_LENGTH: Final = "how many tokens"
_PRIVATELY: Final = "trained privately by Tacit"
_DECLARED: Final = "declared public"


def upgraded(data: Mapping[str, Any]) -> dict[str, Any]:
    """The guarantee of a card of any version, with all fields of version 2."""
    values = dict(data)
    metric = values.get("metric")
    if metric and "kind" not in metric:
        values["metric"] = {**metric, "kind": _by_start(_METRICS, metric["name"]) or "other"}
    values["provenance"] = [
        item if "kind" in item else {**item, "kind": _provenance_kind(item)} for item in values.get("provenance", ())
    ]
    if "void_reason" not in values:
        void = values.get("void")
        values["void_reason"] = None if void is None else _void_reason(str(void))
    if "not_covered_kinds" not in values:
        values["not_covered_kinds"] = [_exclusion_kind(str(line)) for line in values.get("not_covered", ())]
    return values


def _by_start(table: Mapping[str, str], text: str) -> str | None:
    return next((value for start, value in table.items() if text.startswith(start)), None)


def _void_reason(text: str) -> str:
    within = (reason for part, reason in _VOID_WITHIN.items() if part in text)
    return _by_start(_VOID, text) or next(within, "other")


def _provenance_kind(item: Mapping[str, Any]) -> str:
    # Weights that were trained privately count as such even where an early card called them public.
    if not item["public"] or _PRIVATELY in item["source"]:
        return "paid"
    return "declared public" if _DECLARED in item["source"] else "public"


def _exclusion_kind(line: str) -> str:
    if line.startswith(_EARLIER):
        return "earlier weights"
    return "length" if line.startswith(_LENGTH) else "other"
