"""The options by which jobs choose a mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from tacit.errors import BadParameterError
from tacit.guarantee import check_epsilon
from tacit.jobs.config import Group, Option

WordMechanism = Annotated[str, Field(description="A word mechanism; see 'tacit mechanisms'."), Option(Group.PRIVACY)]
Vectors = Annotated[
    str | None, Field(description="Public word vectors: a known name or a file."), Option(Group.PRIVACY)
]
MechanismOptions = Annotated[
    tuple[str, ...],
    Field(description="Another option of the mechanism; may be repeated."),
    Option(Group.PRIVACY, metavar="NAME=VALUE"),
]


def options_of_mechanism(epsilon: float | None, vectors: str | None, pairs: Sequence[str]) -> dict[str, Any]:
    """All options of a mechanism in one mapping.

    >>> options_of_mechanism(3.0, "glove", ["top-words=20"])
    {'epsilon': 3.0, 'vectors': 'glove', 'top_words': '20'}
    """
    options: dict[str, Any] = {}
    if epsilon is not None:
        options["epsilon"] = check_epsilon(epsilon)
    if vectors is not None:
        options["vectors"] = vectors
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise BadParameterError(
                "not-a-pair", "write an option as {option.mechanism_options[name=value]}, not '{pair}'", pair=pair
            )
        if name == "seed":
            raise BadParameterError(
                "seed-among-options",
                "give a test seed with {option.seed}, so that the card says that there is no guarantee",
            )
        if name in options:
            raise BadParameterError("option-twice", "the option '{name}' is given twice: give it once", name=name)
        options[name] = value.strip()
    return options
