"""A file read whole, as columns of strings: for tasks that need all rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tacit.errors import BadInputError
from tacit.text.files.formats import check_column, format_of
from tacit.text.files.tables import ArrowCell, open_table


def read_columns(
    path: str | Path, columns: Sequence[str], *, optional: Sequence[str] = (), format: str | None = None
) -> dict[str, list[str]]:
    """These columns of a file, cell by cell as strings; `optional` ones are left out if they are not there."""
    with open_table(path, format_of(str(path), format)) as table:
        for name in columns:
            check_column(name, table.columns)
        wanted = [*columns, *(name for name in optional if name in table.columns and name not in columns)]
        table.select(wanted)
        found: dict[str, list[str]] = {name: [] for name in wanted}
        for _, values in table.rows():
            for name, value in zip(wanted, values, strict=True):
                found[name].append(cell_string(value))
    if not found[wanted[0]]:
        raise BadInputError(f"{path} has no rows")
    return found


def cell_string(value: Any) -> str:
    """A cell as a string; a missing one is empty."""
    if isinstance(value, ArrowCell):
        value = value.as_py()
    return value if isinstance(value, str) else "" if value is None else str(value)
