"""Options that several jobs have, each declared once."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from tacit.jobs.config import Group, Option
from tacit.needs import Ability, needs_of_place
from tacit.text.files.memory import is_in_memory


def _shown_source(source: Any) -> Any:
    """How a source stands in a file of options: by its path, or as data that is not there any more."""
    if isinstance(source, tuple):
        return [_shown_source(each) for each in source]
    return "(in memory)" if is_in_memory(source) else str(source)


def split_at_commas(value: Any) -> Any:
    """`a,b` as a list; lists as they are."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def needs_of_source(source: Any, format: str | None = None) -> list[Ability]:
    """What reading a source needs; data in memory needs nothing."""
    return [] if is_in_memory(source) else needs_of_place(str(source), format)


Source = Annotated[Any, PlainSerializer(_shown_source)]
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
CommaSeparated = BeforeValidator(split_at_commas)
