"""The JSON schema of a card, made from the classes that a card is written from."""

from __future__ import annotations

from typing import Any, Final

from tacit.card.facts import ReleaseFacts
from tacit.card.versions import CARD_VERSION
from tacit.guarantee import ExclusionKind, Guarantee

Schema = dict[str, Any]
"""A part of a JSON schema, which nests as its standard says."""

STRINGS: Final[Schema] = {"type": "array", "items": {"type": "string"}}
POSITIVE: Final[Schema] = {"minimum": 0}
SHARE: Final[Schema] = {"minimum": 0, "maximum": 1}
OF_GUARANTEE: Final[dict[str, Schema]] = {
    "epsilon": {"type": ["number", "null"], **POSITIVE},  # infinity is null
    "delta": SHARE,
    "offset": POSITIVE,
    "slack": POSITIVE,
    "sensitive_share": SHARE,
}
OF_METRIC: Final[dict[str, Schema]] = {"diameter": POSITIVE, "typical": POSITIVE, "summed": {"minimum": 1}}
OF_RELEASE: Final[dict[str, Schema]] = {
    **dict.fromkeys(("rows", "documents", "units", "dropped_columns"), POSITIVE),
    "digest": {"pattern": "^([0-9a-f]{64})?$"},
}
"""What the types of fields do not say."""
ADDED_LATER: Final = ("randomized_columns", "configuration")
"""Facts of a release that early cards of this version do not have."""
VOID: Final[Schema] = {
    "if": {"properties": {"notion": {"const": "none"}}},
    "then": {
        "properties": {
            "void": {"type": "string"},
            "void_reason": {"not": {"type": "null"}},
            "epsilon": {"type": "null"},
        }
    },
    "else": {"properties": {"void": {"type": "null"}, "void_reason": {"type": "null"}, "epsilon": {"type": "number"}}},
}
TOTAL: Final[Schema] = {
    "type": "object",
    "required": ["what", "exponent", "note"],
    "properties": {
        "what": {"type": "string"},
        "exponent": {"type": ["number", "null"], **POSITIVE},
        "note": {"type": "string"},
    },
}


def json_schema() -> Schema:
    """JSON schema (draft 2020-12) of `Card.to_json`."""
    guarantee, parts = _object_of(Guarantee, OF_GUARANTEE)
    _complete(parts["Metric"], OF_METRIC)
    _complete(parts["Provenance"], {})
    guarantee["properties"]["not_covered_kinds"] = {
        "type": "array",
        "items": {"enum": [kind.value for kind in ExclusionKind]},
    }
    guarantee |= {"required": list(guarantee["properties"]), "additionalProperties": False, **VOID}
    release, _ = _object_of(ReleaseFacts, OF_RELEASE)
    release["required"] = [name for name in release["properties"] if name not in ADDED_LATER]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tacit privacy card",
        "type": "object",
        "required": ["card_version", "tacit_version", "sentence", "guarantee", "release", "totals"],
        "additionalProperties": False,
        "properties": {
            "card_version": {"const": CARD_VERSION},
            "tacit_version": {"type": "string"},
            "configuration": {"type": "object", "required": ["job"]},
            "sentence": {"type": "string", "minLength": 20},
            "in_words": {"type": "array", "items": {**STRINGS, "minItems": 2, "maxItems": 2}},
            "totals": {"type": "array", "items": TOTAL},
            "guarantee": guarantee,
            "shuffled": guarantee,
            "release": {"anyOf": [release, {"type": "null"}]},
        },
        "$defs": parts,
    }


def _object_of(kind: type, facts: dict[str, Schema]) -> tuple[Schema, dict[str, Schema]]:
    """The schema of a dataclass with all its fields, and those of the classes in it."""
    from pydantic import TypeAdapter  # cards are written without it

    schema = TypeAdapter(kind).json_schema(mode="serialization")
    parts: dict[str, Schema] = schema.pop("$defs", {})
    return _complete(schema, facts), parts


def _complete(schema: Schema, facts: dict[str, Schema]) -> Schema:
    """Every field must be there; `facts` adds to what its type says."""
    for name, more in facts.items():
        schema["properties"][name] |= more
    schema["required"] = list(schema["properties"])
    return schema
