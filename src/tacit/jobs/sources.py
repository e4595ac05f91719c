"""Where the data of a job come from: a file, or data in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from tacit.errors import BadInputError
from tacit.needs import DATASETS, Ability, needs_of_place
from tacit.text.files.memory import is_in_memory

IN_MEMORY = "(in memory)"


def _shown_source(source: object) -> object:
    """How a source stands in a file of options: by its path, or as data that is not there any more."""
    if source is None:
        return None
    if isinstance(source, tuple):
        return [_shown_source(each) for each in source]
    return IN_MEMORY if is_in_memory(source) else str(source)


def needs_of_source(source: object, format: str | None = None) -> list[Ability]:
    """The packages that reading a source needs; none for data in memory."""
    return [] if is_in_memory(source) else needs_of_place(str(source), format)


def needs_of_rows(source: object) -> list[Ability]:
    """The packages that reading all rows needs; a folder is one of the library 'datasets'."""
    if is_in_memory(source):
        return []
    is_folder = "://" not in str(source) and Path(str(source)).is_dir()
    return [*needs_of_place(str(source)), *([DATASETS] if is_folder else [])]


def _still_there(source: object) -> object:
    """The source; paths as text, and rows that come once as a list, since jobs read them as often as they need to."""
    if isinstance(source, str) and source == IN_MEMORY:
        raise BadInputError(
            "data-were-in-memory", "these options were written down for data in memory, which is gone: name a file"
        )
    if isinstance(source, Iterator):
        return list(source)
    return source if is_in_memory(source) else str(source)


Source = Annotated[Any, BeforeValidator(_still_there), PlainSerializer(_shown_source)]
"""A file, or data in memory: a list of texts, a list of rows, a pandas frame, an Arrow table, a data set."""
