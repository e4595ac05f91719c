"""Reading released vectors: of parquet, jsonl, csv (a list in a cell) or npy files, or of data in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tacit.arrays import Floats32
from tacit.errors import BadInputError
from tacit.text.files.arrow import ArrowCell
from tacit.text.files.formats import check_column, format_of
from tacit.text.files.matrix import MATRIX
from tacit.text.files.memory import is_in_memory, source_name
from tacit.text.files.tables import open_table
from tacit.text.files.whole import cell_string


@dataclass(frozen=True)
class VectorRows:
    """Vectors row by row, (dimension,) or (words, dimension), and other columns as strings."""

    vectors: list[Floats32]
    columns: dict[str, list[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def matrix(self) -> Floats32:
        """The vectors as rows of one matrix."""
        shapes = {vector.shape for vector in self.vectors}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1:
            raise BadInputError(
                "vectors-not-alike",
                "the rows do not have one vector of the same length each: this needs vectors of whole texts",
            )
        return np.stack(self.vectors)


def read_vectors(
    source: object, column: str | None = None, others: Sequence[str] = (), format: str | None = None
) -> VectorRows:
    """The vectors of a file or of data in memory, with other columns. Without a name it is the first column that holds
    lists of numbers."""
    if isinstance(source, np.ndarray):
        return VectorRows(list(_finite(source.astype(np.float32), 1)))
    if not is_in_memory(source) and Path(str(source)).suffix.lower() == f".{MATRIX}":
        if others:
            raise BadInputError("several-columns-in-npy", "a npy file holds vectors alone: it has no other column")
        return VectorRows(list(_matrix(Path(str(source)))))
    kind = None if is_in_memory(source) else format_of(str(source), format)
    with open_table(source, kind) as table:
        for name in (*([] if column is None else [column]), *others):
            check_column(name, table.columns)
        candidates = [column] if column is not None else [name for name in table.columns if name not in others]
        table.select((*candidates, *others))
        vectors: list[Floats32] = []
        columns: dict[str, list[str]] = {name: [] for name in others}
        place = 0
        for row, values in table.rows():
            if row == 1 and column is None:
                place = _place_of_vectors(values[: len(candidates)], source)
            vectors.append(_vector(values[place], row))
            for name, value in zip(others, values[len(candidates) :], strict=True):
                columns[name].append(cell_string(value))
    if not vectors:
        raise BadInputError("no-rows", "{name} has no rows", name=source_name(source))
    return VectorRows(vectors, columns)


def _place_of_vectors(values: Sequence[object], source: object) -> int:
    for place, value in enumerate(values):
        if isinstance(_plain(value), list):
            return place
    raise BadInputError(
        "no-vectors",
        "{name} has no column of vectors: give a file that 'tacit embed' has made",
        name=source_name(source),
    )


def _plain(value: object) -> object:
    """A cell as a list where it is one, or is written as one."""
    if isinstance(value, ArrowCell):
        return value.as_py()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, str) and value[:1] == "[":
        try:
            return json.loads(value)
        except json.JSONDecodeError:
            return value
    return value


def _vector(value: object, row: int) -> Floats32:
    try:
        return _finite(np.array(_plain(value), dtype=np.float32), row)
    except (TypeError, ValueError):
        raise BadInputError(
            "not-a-vector", "row {row:,} has no list of numbers where a vector should stand", row=row
        ) from None


def _finite(vector: Floats32, row: int) -> Floats32:
    if vector.ndim == 0 or not np.isfinite(vector).all():
        raise BadInputError("not-a-vector", "row {row:,} has no list of numbers where a vector should stand", row=row)
    return vector


def _matrix(path: Path) -> Floats32:
    try:
        matrix = np.load(path, allow_pickle=False)
    except (OSError, ValueError):
        raise BadInputError("damaged-file", "{name} is no complete npy file: copy it again", name=path.name) from None
    if matrix.ndim != 2:
        raise BadInputError("not-a-vector", "row {row:,} has no list of numbers where a vector should stand", row=1)
    return _finite(matrix.astype(np.float32), 1)
