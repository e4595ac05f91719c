"""The JSON schema of a card."""

from __future__ import annotations

from typing import Any

from tacit.card.versions import CARD_VERSION
from tacit.guarantee import Adjacency, ExclusionKind, MetricKind, Model, Notion, ProvenanceKind, Unit, VoidReason


def json_schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of `Card.to_json`."""

    number_or_null = {"type": ["number", "null"], "minimum": 0}
    strings = {"type": "array", "items": {"type": "string"}}
    schema: dict[str, Any] = {
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
            "in_words": {
                "type": "array",
                "items": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
            },
            "totals": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["what", "exponent", "note"],
                    "properties": {
                        "what": {"type": "string"},
                        "exponent": number_or_null,
                        "note": {"type": "string"},
                    },
                },
            },
            "guarantee": {
                "type": "object",
                "required": [
                    "notion",
                    "epsilon",
                    "delta",
                    "offset",
                    "slack",
                    "model",
                    "unit",
                    "adjacency",
                    "metric",
                    "domain",
                    "sensitive_share",
                    "mechanism",
                    "parameters",
                    "not_covered",
                    "not_covered_kinds",
                    "assumptions",
                    "provenance",
                    "history",
                    "void",
                    "void_reason",
                ],
                "additionalProperties": False,
                "properties": {
                    "notion": {"enum": [n.value for n in Notion]},
                    "epsilon": number_or_null,
                    "delta": {"type": "number", "minimum": 0, "maximum": 1},
                    "offset": {"type": "number", "minimum": 0},
                    "slack": {"type": "number", "minimum": 0},
                    "model": {"enum": [m.value for m in Model]},
                    "unit": {"enum": [u.value for u in Unit]},
                    "adjacency": {"enum": [a.value for a in Adjacency]},
                    "metric": {
                        "type": ["object", "null"],
                        "required": ["name", "diameter", "typical", "fingerprint", "summed", "kind"],
                        "properties": {
                            "name": {"type": "string"},
                            "diameter": number_or_null,
                            "typical": number_or_null,
                            "fingerprint": {"type": ["string", "null"]},
                            "summed": {"type": "integer", "minimum": 1},
                            "kind": {"enum": [kind.value for kind in MetricKind]},
                        },
                    },
                    "domain": {"type": ["string", "null"]},
                    "sensitive_share": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
                    "mechanism": {"type": "string"},
                    "parameters": {"type": "object"},
                    "not_covered": strings,
                    "not_covered_kinds": {"type": "array", "items": {"enum": [kind.value for kind in ExclusionKind]}},
                    "assumptions": strings,
                    "provenance": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name", "source", "public", "paid_by", "kind"],
                            "properties": {
                                "name": {"type": "string"},
                                "source": {"type": "string"},
                                "public": {"type": "boolean"},
                                "paid_by": {"type": ["string", "null"]},
                                "kind": {"enum": [kind.value for kind in ProvenanceKind]},
                            },
                        },
                    },
                    "history": strings,
                    "void": {"type": ["string", "null"]},
                    "void_reason": {"enum": [*(reason.value for reason in VoidReason), None]},
                },
                "if": {"properties": {"notion": {"const": "none"}}},
                "then": {
                    "properties": {
                        "void": {"type": "string"},
                        "void_reason": {"type": "string"},
                        "epsilon": {"type": "null"},
                    }
                },
                "else": {
                    "properties": {
                        "void": {"type": "null"},
                        "void_reason": {"type": "null"},
                        "epsilon": {"type": "number"},
                    }
                },
            },
            "release": {
                "type": ["object", "null"],
                "required": [
                    "rows",
                    "documents",
                    "units",
                    "longest_document",
                    "longest_row",
                    "columns",
                    "kept_columns",
                    "dropped_columns",
                    "output",
                    "command",
                    "created",
                    "digest",
                ],
                "properties": {
                    "rows": {"type": "integer", "minimum": 0},
                    "documents": {"type": "integer", "minimum": 0},
                    "units": {"type": "integer", "minimum": 0},
                    "columns": strings,
                    "kept_columns": strings,
                    "randomized_columns": strings,
                    "dropped_columns": {"type": "integer", "minimum": 0},
                    "digest": {"type": "string", "pattern": "^([0-9a-f]{64})?$"},
                    "configuration": {"type": "object"},
                },
            },
        },
    }
    schema["properties"]["shuffled"] = schema["properties"]["guarantee"]
    return schema
