"""Options that several jobs have, each declared once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import check_epsilon
from tacit.jobs.config import Group, Option
from tacit.needs import Ability, needs_of_place
from tacit.text.files.memory import is_in_memory

IN_MEMORY = "(in memory)"


def _shown_source(source: Any) -> Any:
    """How a source stands in a file of options: by its path, or as data that is not there any more."""
    if isinstance(source, tuple):
        return [_shown_source(each) for each in source]
    return IN_MEMORY if is_in_memory(source) else str(source)


def split_at_commas(value: Any) -> Any:
    """`a,b` as a list; lists as they are."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def named_values(value: Any) -> Any:
    """`("limit=100", …)` as a mapping from names to values; mappings with plain names.

    >>> named_values(["spell-out=yes"])
    {'spell_out': 'yes'}
    """
    pairs = list(value.items()) if isinstance(value, Mapping) else [_named_value(text) for text in value or ()]
    values: dict[str, Any] = {}
    for name, item in pairs:
        plain = str(name).strip().replace("-", "_")
        if plain == "seed":
            raise BadParameterError(
                "seed-as-mechanism-option",
                "give a test seed with {option.seed}, so that the card says that there is no guarantee",
            )
        if plain in values:
            raise _option_twice(plain)
        values[plain] = item
    return values


def _named_value(text: Any) -> tuple[str, str]:
    name, equals, value = str(text).partition("=")
    if not equals or not name.strip():
        raise BadParameterError(
            "not-name-and-value", "write an option as {option.options[name=value]}, not '{text}'", text=text
        )
    return name, value.strip()


def mechanism_options(epsilon: float | None, vectors: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a mechanism in one mapping; what is given in two ways is refused."""
    usual = {"epsilon": None if epsilon is None else check_epsilon(epsilon), "vectors": vectors}
    chosen = {name: value for name, value in usual.items() if value is not None}
    for name in chosen:
        if name in options:
            raise _option_twice(name)
    return {**chosen, **options}


def _option_twice(name: str) -> BadParameterError:
    return BadParameterError("option-twice", "the option '{name}' is given twice: give it once", name=name)


def needs_of_source(source: Any, format: str | None = None) -> list[Ability]:
    """What reading a source needs; data in memory needs nothing."""
    return [] if is_in_memory(source) else needs_of_place(str(source), format)


def _still_there(source: Any) -> Any:
    """The source; paths as text."""
    if isinstance(source, str) and source == IN_MEMORY:
        raise BadInputError(
            "data-were-in-memory", "these options were written down for data in memory, which is gone: name a file"
        )
    return source if is_in_memory(source) else str(source)


Source = Annotated[Any, BeforeValidator(_still_there), PlainSerializer(_shown_source)]
"""A file, or data in memory: a list of texts, a list of rows, a pandas frame, an Arrow table, a data set."""

Columns = Annotated[
    tuple[str, ...],
    Field(description="A column of texts; may be repeated. By default the only column, or 'text'."),
    Option(Group.DATA),
]
LabelColumn = Annotated[str | None, Field(description="The column of labels."), Option(Group.DATA)]
Format = Annotated[
    str | None,
    Field(description="Format of the input (txt, csv, tsv, tsv-raw, jsonl, parquet, or with .gz), if its name does "
          "not tell."),
    Option(Group.DATA),
]  # fmt: skip
Engine = Annotated[
    Literal["local", "ray"],
    Field(description="'local' (this machine), or 'ray' (a cluster; reads folders of files and fsspec paths such as "
          "s3://)."),
    Option(Group.RUN),
]  # fmt: skip
Address = Annotated[
    str | None,
    Field(description="With the engine 'ray': a running cluster ('auto', or HOST:PORT); by default one is started."),
    Option(Group.RUN),
]
Workers = Annotated[int, Field(ge=1, description="Processes to use."), Option(Group.RUN)]
Encoder = Annotated[str, Field(description="Sentence encoder: 'minilm', a folder, or a hub name."), Option(Group.MODEL)]
PublicName = Annotated[
    str | None,
    Field(description="Declare the text public, by the name it is known by."),
    Option(Group.PRIVACY, metavar="NAME"),
]
Vectors = Annotated[str | None, Field(description="Public word vectors: a file, or a name."), Option(Group.PRIVACY)]
MechanismOptions = Annotated[
    dict[str, Any],
    BeforeValidator(named_values),
    Field(description="Another option of the mechanism; may be repeated."),
    Option(Group.PRIVACY, metavar="NAME=VALUE"),
]
UserMode = Annotated[
    Literal["divide", "concatenate"],
    Field(description="'divide' the budget over a user's rows, or 'concatenate' them into one text (rows sorted by "
          "user)."),
    Option(Group.PRIVACY),
]  # fmt: skip
DocumentsPerUser = Annotated[
    int,
    Field(ge=1, description="With 'divide': how many rows of a user are used; further ones are left out."),
    Option(Group.PRIVACY),
]
CommaSeparated = BeforeValidator(split_at_commas)
