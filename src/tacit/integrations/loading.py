"""Mechanisms for libraries that know only plain settings: built from them, and loaded once in each process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tacit.catalog import build
from tacit.errors import BadParameterError
from tacit.mechanism import Mechanism


def settings_of(epsilon: Any, options: Mapping[str, Any] | None, *, example: str) -> dict[str, Any]:
    """epsilon and the other parameters of a mechanism as one dictionary. There is no default budget."""
    others = dict(options or {})
    if epsilon is None:
        raise BadParameterError(
            "missing-epsilon", "how private? Give an epsilon, for example {example}", example=example
        )
    if "epsilon" in others:
        raise BadParameterError("epsilon-twice", "give epsilon once: beside the options, not among them")
    return {"epsilon": epsilon, **others}


def canonical(settings: Mapping[str, Any]) -> str:
    """Equal settings as equal text, whatever their order."""
    try:
        return json.dumps(settings, sort_keys=True, separators=(",", ":"))
    except TypeError:
        raise BadParameterError(
            "parameters-not-writable",
            "these settings travel between processes, so they must be numbers, texts or lists: give the path of a "
            "vector file, for example, and not the loaded vectors",
        ) from None


def loaded(name: str, settings: Mapping[str, Any]) -> Mechanism:
    """The mechanism with these settings, ready to use; a second call in the same process gives the same object."""
    return loaded_from(name, canonical(settings))


@lru_cache(maxsize=8)
def loaded_from(name: str, canonical_settings: str) -> Mechanism:
    mechanism = build(name, json.loads(canonical_settings))
    mechanism.prepare()
    return mechanism
