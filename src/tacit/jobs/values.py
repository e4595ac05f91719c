"""Options whose values are written as text: lists with commas, names with values, numbers or 'auto'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import AfterValidator, BeforeValidator

from tacit.errors import BadParameterError
from tacit.guarantee import check_epsilon
from tacit.jobs.config import option_twice, quotable
from tacit.training.start import check_strategy


def split_at_commas(value: Any) -> Any:
    """`a,b` as a list; lists as they are."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def label_names(value: Any) -> Any:
    """Labels as texts: `a,b` as a list, and numbers as they are read in a cell.

    >>> label_names([0, 1, True])
    ('0', '1', 'True')
    """
    names = split_at_commas(value)
    if not isinstance(names, list | tuple):
        return names
    plain = [name.item() if hasattr(name, "item") else name for name in names]
    return tuple(str(name) if isinstance(name, int | float) else name for name in plain)


def named_values(value: Any) -> object:
    """`("limit=100", …)` as a mapping from names to values; mappings with plain names.

    >>> named_values(["spell-out=yes"])
    {'spell_out': 'yes'}
    """
    pairs = list(value.items()) if isinstance(value, Mapping) else [_named_value(text) for text in value or ()]
    values: dict[str, object] = {}
    for name, item in pairs:
        plain = str(name).strip().replace("-", "_")
        if plain == "seed":
            raise BadParameterError(
                "seed-as-mechanism-option",
                "give a test seed with {option.seed}, so that the card says that there is no guarantee",
            )
        if plain in values:
            raise option_twice(plain)
        values[plain] = item
    return values


def _named_value(text: object) -> tuple[str, str]:
    name, equals, value = str(text).partition("=")
    if not equals or not name.strip():
        raise BadParameterError(
            "not-name-and-value",
            "write an option as {option.options[name=value]}, not '{text}'",
            text=quotable(text),
        )
    return name, value.strip()


def mechanism_options(epsilon: float | None, vectors: str | None, options: Mapping[str, object]) -> dict[str, Any]:
    """All options of a mechanism in one mapping; what is given in two ways is refused."""
    usual = {"epsilon": None if epsilon is None else check_epsilon(epsilon), "vectors": vectors}
    chosen = {name: value for name, value in usual.items() if value is not None}
    for name in chosen:
        if name in options:
            raise option_twice(name)
    return {**chosen, **options}


def number_or_auto(value: Any) -> object:
    """A delta as a number, or 'auto'."""
    if (isinstance(value, str) and value == "auto") or isinstance(value, int | float):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        raise BadParameterError(
            "bad-delta", "{option.delta} is a number or 'auto', not '{value}'", value=quotable(value)
        ) from None


def count_or_auto(value: Any) -> object:
    """A whole number of at least 1; 'auto' becomes 0."""
    if value == "auto":
        return 0
    try:
        count = int(str(value))
    except ValueError:
        count = 0
    if count < 1:
        raise BadParameterError(
            "bad-physical",
            "{option.physical} is a number of at least 1 or 'auto', not '{value}'",
            value=quotable(value),
        )
    return count


MOST_SENTENCES = 100


def sentences_or_auto(value: Any) -> object:
    """A number of sentences, or 'auto'."""
    if isinstance(value, str) and value == "auto":
        return value
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if not 1 <= number <= MOST_SENTENCES:
        raise BadParameterError(
            "bad-sentences",
            "{option.sentences} is a number from 1 to {most} or 'auto', not '{value}'",
            most=MOST_SENTENCES,
            value=quotable(value),
        )
    return number


def _strategy_name(value: str | None) -> str | None:
    """The name of a strategy; None stands for the usual one."""
    return None if value is None else check_strategy(value)


StrategyName = AfterValidator(_strategy_name)
"""Refuses a strategy that there is not, before anything is read or loaded."""
CommaSeparated = BeforeValidator(split_at_commas)
"""Lets `a,b` stand for a list."""
LabelNames = BeforeValidator(label_names)
"""The same for labels, which may be numbers in Python."""
