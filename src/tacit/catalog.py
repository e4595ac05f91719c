"""All mechanisms by name: those of the mechanism rooms, where a new file is found by itself, those of installed
packages (entry points `tacit.mechanisms`), and those of plug-ins that the user named (`tacit.plugins`). What is said
about a mechanism is on its class."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, TypedDict

from tacit import plugins
from tacit.embeddings.base import VectorMechanism
from tacit.errors import BadParameterError, did_you_mean
from tacit.mechanism import Mechanism
from tacit.needs import Ability
from tacit.parameters import parameters_of

ROOMS = ("tacit.words", "tacit.documents", "tacit.embeddings")
DEFAULT_OF_LEVEL = {"word": "santext", "document": "codebook"}
DEFAULT_MECHANISM = DEFAULT_OF_LEVEL["word"]
MOST_QUOTED = 40


@cache
def _import_rooms() -> None:
    for room in ROOMS:
        package = importlib.import_module(room)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{room}.{module.name}")


def _registered(vectors: bool = False) -> dict[str, type[Mechanism]]:
    """Everything that is registered now, of mechanisms that release texts or of those that release vectors; a plug-in
    may be imported at any time."""
    _import_rooms()
    plugins.load_group(plugins.MECHANISMS)
    return VectorMechanism.registry if vectors else Mechanism.registry


def mechanism_names(level: str | None = None, *, vectors: bool = False) -> list[str]:
    """The names of all mechanisms that release texts (or vectors), or of those of one level ("word", "document").

    >>> "santext" in mechanism_names("word")
    True
    """
    return sorted(name for name, cls in _registered(vectors).items() if level in (None, cls.level))


def mechanism_classes(*, vectors: bool = False) -> list[type[Mechanism]]:
    """The classes of all mechanisms that release texts (or vectors), in the order of their names."""
    registered = _registered(vectors)
    return [registered[name] for name in sorted(registered)]


def class_names() -> dict[str, type[Mechanism]]:
    """Python names of the mechanisms of Tacit itself (`tacit.SanText`)."""
    everything = [*mechanism_classes(), *mechanism_classes(vectors=True)]
    return {cls.__name__: cls for cls in everything if cls.__module__.startswith(ROOMS)}


def find(name: str, *, vectors: bool = False) -> type[Mechanism]:
    """A mechanism that releases texts (or vectors) by the name its users call it.

    >>> find("santext").title
    'SanText'
    """
    registered = _registered(vectors)
    if name in registered:
        return registered[name]
    if name in _registered(not vectors):
        raise BadParameterError(
            "releases-something-else",
            "{mechanism} releases {wrong}, not {right}: it is a mechanism of 'tacit {command}'",
            mechanism=name,
            wrong="texts" if vectors else "vectors",
            right="vectors" if vectors else "texts",
            command="rewrite" if vectors else "embed",
        )
    known = sorted(registered)
    raise BadParameterError(
        "unknown-mechanism",
        "there is no mechanism '{name}'{hint} The mechanisms are: {known}",
        name=shortened(name),
        hint=did_you_mean(name, known),
        known=", ".join(known),
    )


def needs_of_mechanism(
    name: str, options: Mapping[str, object] | None = None, *, vectors: bool = False
) -> list[Ability]:
    """The abilities that must be installed for a mechanism with these options (as a command line gives them); none for
    a name that is not known, which is refused when the mechanism is built."""
    cls = _registered(vectors).get(name)
    return (
        []
        if cls is None
        else cls.abilities_for({key.replace("-", "_"): value for key, value in (options or {}).items()})
    )


def shortened(value: str) -> str:
    """A word of somebody else, fit to be quoted in a sentence."""
    return value if len(value) <= MOST_QUOTED else f"{value[:MOST_QUOTED]}…"


def build(name: str, options: Mapping[str, object], *, vectors: bool = False) -> Mechanism:
    """A mechanism from its name and parameters, which may be strings as a command line gives them."""
    cls = find(name, vectors=vectors)
    hints = typing.get_type_hints(cls)
    known = {item.name: item for item in fields(cls) if item.init}
    values: dict[str, Any] = {}
    for key, value in options.items():
        field_name = key.replace("-", "_")
        if field_name not in known:
            offered = ", ".join(sorted(known.keys() - {"seed"}))
            raise BadParameterError(
                "unknown-mechanism-option",
                "{mechanism} has no option '{name}'{hint} Its options are: {offered}",
                mechanism=name,
                name=shortened(key),
                hint=did_you_mean(field_name, known),
                offered=offered,
            )
        values[field_name] = _converted(key, value, hints[field_name])
    missing = [
        item.name
        for item in known.values()
        if item.default is MISSING and item.default_factory is MISSING and item.name not in values
    ]
    if missing:
        raise BadParameterError(
            "missing-parameter",
            "{mechanism} needs {missing}, for example {option." + missing[0] + "[2]}",
            mechanism=name,
            missing=" and ".join(missing),
        )
    return cls(**values)


def _converted(key: str, value: object, hint: object) -> object:
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
                    raise BadParameterError(
                        "wrong-type-of-option",
                        "option {name} must be a {kind}, not '{value}'",
                        name=key,
                        kind=_KIND[kind],
                        value=shortened(value),
                    ) from None
    return value


_KIND = {bool: "yes or no", int: "whole number", float: "number"}


def _as_bool(value: str) -> bool:
    lowered = value.lower()
    if lowered in ("yes", "true", "on", "1"):
        return True
    if lowered in ("no", "false", "off", "0"):
        return False
    raise ValueError(value)


# What a mechanism says about itself -------------------------------------------------------------------------------


class ParameterFacts(TypedDict):
    """The facts about a parameter in the catalog."""

    name: str
    type: str
    default: object
    required: bool
    meaning: str
    choices: list[str]
    low: float | None
    high: float | None


class MechanismDescription(TypedDict):
    """The facts about a mechanism in the catalog."""

    name: str
    title: str
    level: str
    notion: str
    unit: str
    needs: str
    paper: str
    summary: str
    description: str
    parameters: list[ParameterFacts]


def described(mechanism: type[Mechanism]) -> MechanismDescription:
    """All facts about a mechanism, as plain values."""
    meanings, known = parameter_meanings(mechanism), parameters_of(mechanism)
    return {
        "name": mechanism.name,
        "title": mechanism.title,
        "level": mechanism.level,
        "notion": mechanism.notion,
        "unit": mechanism.unit,
        "needs": mechanism.model_needed,
        "paper": mechanism.paper,
        "summary": summary(mechanism),
        "description": description(mechanism),
        "parameters": [
            {
                "name": item.name,
                "type": _type_name(item),
                "default": default,
                "required": required,
                "meaning": meanings.get(item.name, ""),
                "choices": list(known[item.name].choices),
                "low": known[item.name].low,
                "high": known[item.name].high,
            }
            for item in fields(mechanism)
            if item.init and item.name != "seed"
            for default, required in [_default(item)]
        ],
    }


def summary(mechanism: type[Mechanism]) -> str:
    """One sentence about a mechanism: the first paragraph of its docstring."""
    return " ".join((inspect.getdoc(mechanism) or mechanism.title).split("\n\n")[0].split())


def description(mechanism: type[Mechanism]) -> str:
    """The module's docstring, which holds formula, guarantee and proof, then the one of the class."""
    module = inspect.getmodule(mechanism)
    parts = [inspect.getdoc(module) if module else "", _without_parameters(inspect.getdoc(mechanism) or "")]
    return "\n\n".join(part.strip() for part in parts if part)


_PARAMETER = re.compile(r"^(\w+)  +(\S.*)$")


def parameter_meanings(described: type) -> dict[str, str]:
    """The meaning of each parameter of a class: the lines `name   meaning` of the docstrings, the most special class
    first."""
    known = {item.name for item in fields(described)}
    meanings: dict[str, str] = {}
    for cls in described.__mro__:
        current = None
        for line in inspect.cleandoc(cls.__dict__.get("__doc__") or "").splitlines():
            match = _PARAMETER.match(line)
            if match and match[1] in known:
                current = match[1] if match[1] not in meanings else None
                if current:
                    meanings[current] = match[2]
            elif current and line.startswith("  "):
                meanings[current] += " " + line.strip()
            else:
                current = None
    return meanings


def _without_parameters(text: str) -> str:
    """The docstring up to its list of parameters, which is shown as a table."""
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if _PARAMETER.match(line)), len(lines))
    return "\n".join(lines[:first])


def _default(item: Field[object]) -> tuple[object, bool]:
    if item.default is not MISSING:
        return item.default, False
    if item.default_factory is not MISSING:
        return item.default_factory(), False
    return None, True


def _type_name(item: Field[object]) -> str:
    return item.type if isinstance(item.type, str) else getattr(item.type, "__name__", str(item.type))
