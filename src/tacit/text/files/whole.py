"""A file read whole, as columns of strings, and written whole: for tasks that need all rows at once.

Besides files, these read data in memory (`tacit.text.files.memory`) and what the library `datasets` holds: a folder
saved with `save_to_disk`, or `hf:NAME:SPLIT` from the hub (`hf:nyu-mll/glue,sst2:train` for a configuration of it).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.atomic import draft_file
from tacit.errors import BadInputError, require
from tacit.places import refuse_taken_file
from tacit.text.files.arrow import ArrowCell
from tacit.text.files.encoders import encoder_for
from tacit.text.files.formats import MISSING, FileFormat, check_columns, format_of
from tacit.text.files.memory import is_in_memory, named_class, source_name
from tacit.text.files.partial import storage_error
from tacit.text.files.tables import open_table

if TYPE_CHECKING:
    from datasets import Dataset

HUB = "hf:"
USUAL_SPLIT = "train"


def read_columns(
    source: object,
    columns: Sequence[str],
    *,
    optional: Sequence[str] = (),
    format: str | None = None,
    rest: bool = False,
) -> dict[str, list[str]]:
    """These columns of a file or of data in memory, cell by cell as strings; `optional` ones are left out if they are
    not there. With `rest` all columns, in their order.

    >>> read_columns([{"text": "good", "stars": 5}], ["stars"])
    {'stars': ['5']}
    """
    if is_in_memory(source):
        if _is_data_set(source):
            cells = _of_data_set(source, columns, optional, rest)
        else:
            cells = _of_table(source, None, columns, optional, rest)
    elif str(source).startswith(HUB) or Path(str(source)).is_dir():
        cells = _of_data_set(_loaded(str(source)), columns, optional, rest)
    else:
        cells = _of_table(source, format_of(str(source), format), columns, optional, rest)
    if not cells or not next(iter(cells.values())):
        raise BadInputError("no-rows", "{name} has no rows", name=source_name(source))
    return cells


def write_columns(path: Path, columns: dict[str, list[str]], *, force: bool = False, format: str | None = None) -> None:
    """Write columns of strings to a file that is there completely or not at all."""
    refuse_taken_file(path, force=force)
    encoder = encoder_for(format_of(str(path), format), tuple(columns))
    try:
        with draft_file(path) as draft:
            with draft.open("wb") as file:
                file.write(encoder.head())
                for block in _blocks(list(zip(*columns.values(), strict=True))):
                    file.write(encoder.block(block))
            encoder.finish(draft).replace(draft)
    except OSError as error:
        raise storage_error(error, path) from error


def cell_string(value: object) -> str:
    """A cell as a string; a missing one is empty (null, a key that is not there, a number that is none), a list is
    joined by spaces (words and their tags), and what has named parts is JSON, also in a list."""
    if isinstance(value, ArrowCell):
        value = value.as_py()
    if value is MISSING or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, dict) or (isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value)):
        return json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, list | tuple):
        return " ".join(cell_string(item) for item in value)
    return value if isinstance(value, str) else "" if value is None else str(value)


def _wanted(present: Sequence[str], columns: Sequence[str], optional: Sequence[str], rest: bool) -> list[str]:
    check_columns(columns, present)
    if rest:
        return list(present)
    return [*dict.fromkeys(columns), *(name for name in optional if name in present and name not in columns)]


def _blocks(rows: list[tuple[str, ...]], size: int = 10_000) -> Iterator[list[tuple[str, ...]]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _of_table(
    source: object, format: FileFormat | None, columns: Sequence[str], optional: Sequence[str], rest: bool
) -> dict[str, list[str]]:
    with open_table(source, format) as table:
        wanted = _wanted(table.columns, columns, optional, rest)
        table.select(wanted)
        cells: dict[str, list[str]] = {name: [] for name in wanted}
        for _, values in table.rows():
            for name, value in zip(wanted, values, strict=True):
                cells[name].append(cell_string(value))
    return cells


def _is_data_set(source: object) -> bool:
    """Whether this is a data set of the library `datasets`, which knows the names of its classes."""
    datasets = sys.modules.get("datasets")
    return datasets is not None and isinstance(source, datasets.Dataset)


def _loaded(path: str) -> Dataset:
    """A data set from a folder or from the hub."""
    datasets = require("datasets", extra="datasets", purpose="reading a folder or a hub name of the library 'datasets'")
    try:
        if path.startswith(HUB):
            name, _, split = path.removeprefix(HUB).partition(":")
            return datasets.load_dataset(*name.split(",", 1), split=split or USUAL_SPLIT)
        loaded = datasets.load_from_disk(path)
    except Exception as error:
        # Only errors about the place are passed on: other messages can quote the content of the files.
        lines = str(error).strip().splitlines() if isinstance(error, OSError) else []
        raise BadInputError(
            "unreadable-data-set",
            "the library 'datasets' cannot read {path}: {reason}",
            path=path,
            reason=lines[0] if lines else type(error).__name__,
        ) from error
    if isinstance(loaded, datasets.DatasetDict):
        raise BadInputError(
            "several-data-sets",
            "{path} holds several data sets: give one of its folders, {folders}",
            path=path,
            folders=", ".join(f"{path}/{part}" for part in loaded),
        )
    return loaded


def _of_data_set(data: Dataset, columns: Sequence[str], optional: Sequence[str], rest: bool) -> dict[str, list[str]]:
    wanted = _wanted(data.column_names, columns, optional, rest)
    return {name: [cell_string(named_class(data.features[name], value)) for value in data[name]] for name in wanted}
