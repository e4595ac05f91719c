"""All mechanisms by name. A new file in one of the mechanism rooms is found by itself."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any

from tacit.errors import BadParameterError
from tacit.mechanism import Mechanism

ROOMS = ("tacit.words", "tacit.documents")
DEFAULT_OF_LEVEL = {"word": "santext", "document": "codebook"}
DEFAULT_MECHANISM = DEFAULT_OF_LEVEL["word"]


@cache
def _load() -> dict[str, type[Mechanism]]:
    for room in ROOMS:
        package = importlib.import_module(room)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{room}.{module.name}")
    found = {name: cls for name, cls in Mechanism.registry.items() if cls.__module__.startswith(ROOMS)}
    return dict(sorted(found.items()))


def mechanism_names(level: str | None = None) -> list[str]:
    """The names of all mechanisms, or of those of one level ("word", "document")."""
    return [name for name, found in _load().items() if level in (None, found.level)]


def mechanism_classes() -> list[type[Mechanism]]:
    return list(_load().values())


def class_names() -> dict[str, type[Mechanism]]:
    """Python names of the mechanisms (`tacit.SanText`)."""
    return {found.__name__: found for found in _load().values()}


def find(name: str) -> type[Mechanism]:
    """A mechanism by the name its users call it."""
    known = _load()
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    raise BadParameterError(f"there is no mechanism '{name}'{hint} The mechanisms are: {', '.join(known)}")


def build(name: str, options: Mapping[str, Any]) -> Mechanism:
    """A mechanism from its name and parameters, which may be strings as a command line gives them."""
    cls = find(name)
    hints = typing.get_type_hints(cls)
    known = {item.name: item for item in fields(cls) if item.init}
    values: dict[str, Any] = {}
    for key, value in options.items():
        field_name = key.replace("-", "_")
        if field_name not in known:
            close = difflib.get_close_matches(field_name, known, n=1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            offered = ", ".join(sorted(known.keys() - {"seed"}))
            raise BadParameterError(f"{name} has no option '{key}'{hint} Its options are: {offered}")
        values[field_name] = _converted(key, value, hints[field_name])
    missing = [
        item.name
        for item in known.values()
        if item.default is MISSING and item.default_factory is MISSING and item.name not in values
    ]
    if missing:
        raise BadParameterError(f"{name} needs {' and '.join(missing)}, for example --{missing[0]} 2")
    return cls(**values)


def _converted(key: str, value: Any, hint: Any) -> Any:
    if not isinstance(value, str):
        return value
    choices = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if type(None) in choices and value.lower() == "none":
        return None
    for kind in (bool, int, float):
        if kind in choices:
            try:
                return _as_bool(value) if kind is bool else kind(value)
            except ValueError:
                if str not in choices and not (kind is int and float in choices):
                    raise BadParameterError(f"option {key} must be a {_KIND[kind]}, not '{value}'") from None
    return value


_KIND = {bool: "yes or no", int: "whole number", float: "number"}


def _as_bool(value: str) -> bool:
    lowered = value.lower()
    if lowered in ("yes", "true", "on", "1"):
        return True
    if lowered in ("no", "false", "off", "0"):
        return False
    raise ValueError(value)
