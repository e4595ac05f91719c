"""Reading parquet: a batch at a time, cut by what it takes in memory and not by rows.

A few bytes of a parquet file can stand for gigabytes: a text of 8 MB that is in the dictionary of a column once and in
each of its rows by number. So texts and other values of variable length stay numbers of a dictionary until they are
needed, their decoded size is added up first, and no more than `BATCH_BYTES` of them are decoded at a time (one row at
least). What pages unpack to cannot be known before they are read: a process that reads the files of strangers needs a
memory limit of its own (`tacit.engines.processes.limit_memory`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np

from tacit.arrays import Integers
from tacit.errors import BadInputError, require
from tacit.text.files.arrow import FIXED_SIZE, ArrowCell, arrow_library, is_text_type
from tacit.text.files.formats import STANDARD_STREAM
from tacit.text.files.sources import RECORD_LIMIT, open_file
from tacit.text.files.tables import TableReader

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetSchema, RowGroupMetaData

BATCH_ROWS: Final = 4_096
BATCH_BYTES: Final = 16_000_000
LEAST_VALUE_BYTES: Final = 4
"""What a value takes at least, nulls and numbers of a dictionary included."""
MOST_FOOTER_BYTES: Final = 64_000_000
READ_BYTES: Final = 1 << 20
_TAIL: Final = 8


class ParquetTable(TableReader):
    """Texts come as strings, every other value as an `ArrowCell`."""

    def __init__(self, path: str, most_bytes: int | None = None) -> None:
        super().__init__(Path(path).name)
        if path == STANDARD_STREAM:
            raise BadInputError(
                "parquet-from-a-stream",
                "parquet cannot be read from standard input, since its index is at its end: give a file",
            )
        arrow = arrow_library()
        parquet = require("pyarrow.parquet", extra="parquet", purpose="reading parquet")
        raw, self.size_bytes = open_file(path)
        try:
            if not self.size_bytes:
                raise self._empty()
            self._check_footer(raw, self.size_bytes, min(most_bytes or MOST_FOOTER_BYTES, MOST_FOOTER_BYTES))
            plain = parquet.ParquetFile(raw, pre_buffer=False)
            self.schema = plain.schema_arrow
            self._file = parquet.ParquetFile(
                raw,
                metadata=plain.metadata,
                read_dictionary=_variable_leaves(plain.metadata.schema, self.schema),
                pre_buffer=False,
                buffer_size=READ_BYTES,  # a column as it is needed, not all that the file holds of it
            )
        except MemoryError:
            raw.close()
            raise
        except (arrow.ArrowException, OSError):
            raw.close()
            raise BadInputError(
                "damaged-file", "{name} is not a complete parquet file: copy it again", name=self.name
            ) from None
        except BaseException:
            raw.close()
            raise
        self._raw = raw
        self.columns = tuple(self.schema.names)
        self._rows_read = 0

    def _check_footer(self, raw: BinaryIO, size: int, most: int) -> None:
        """The index is read as a whole, and takes many times its size in memory."""
        raw.seek(max(0, size - _TAIL))
        length = int.from_bytes(raw.read(_TAIL)[:4], "little")
        raw.seek(0, os.SEEK_SET)
        if most < length < size:  # one that is longer than the file is no index at all
            raise BadInputError(
                "parquet-index-too-large",
                "the index of {name} is larger than {most:,} bytes: write the file again with larger row groups",
                name=self.name,
                most=most,
            )

    def rows(self) -> Iterator[tuple[int, list[object]]]:
        arrow = arrow_library()
        texts = [is_text_type(self.schema.field(name).type) for name in self.selected]
        batches = self._batches()
        row = 0
        while True:
            try:
                batch = next(batches, None)
            except MemoryError:
                raise
            except (arrow.ArrowException, OSError):
                raise BadInputError(
                    "damaged-file", "{name} cannot be decoded after row {row}: copy it again", name=self.name, row=row
                ) from None
            if batch is None:
                return
            for first, last in self._cuts(batch, row, texts):
                columns = self._decoded(batch.slice(first, last - first), row, texts)
                for values in zip(*columns, strict=True):
                    row += 1
                    self._rows_read = row
                    yield row, list(values)

    def _batches(self) -> Iterator[pyarrow.RecordBatch]:
        """The selected columns, some rows at a time, values of variable length still as numbers of a dictionary."""
        wanted = frozenset(self.selected)
        for group in range(self._file.metadata.num_row_groups):
            rows = _rows_at_a_time(self._file.metadata.row_group(group), wanted)
            yield from self._file.iter_batches(batch_size=rows, row_groups=[group], columns=list(self.selected))

    def _cuts(self, batch: pyarrow.RecordBatch, row: int, texts: list[bool]) -> Iterator[tuple[int, int]]:
        """From where to where rows can be decoded together."""
        total = np.zeros(batch.num_rows, np.int64)
        for name, text in zip(self.selected, texts, strict=True):
            sizes = _decoded_sizes(batch.column(name))
            if sizes is None:
                continue
            if text and len(sizes) and sizes.max() > RECORD_LIMIT:
                raise BadInputError(
                    "text-too-long",
                    "row {row} has a text longer than {most:,} bytes: split it into several rows",
                    row=row + 1 + int(sizes.argmax()),
                    most=RECORD_LIMIT,
                )
            total += sizes
        start = 0
        ends = np.cumsum(total)
        while start < len(ends):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + BATCH_BYTES, side="right")))
            yield start, stop
            start = stop

    def _decoded(self, batch: pyarrow.RecordBatch, row: int, texts: list[bool]) -> list[list[object]]:
        """Columns of values."""
        columns = []
        try:
            for name, text in zip(self.selected, texts, strict=True):
                array = batch.column(name)
                if text:
                    columns.append(_looked_up(array).to_pylist())
                    continue
                sizes = _sizes(array)
                array = _as_type(array, self.schema.field(name).type)
                columns.append([ArrowCell(array, position, size) for position, size in enumerate(sizes)])
        except UnicodeDecodeError:
            raise BadInputError(
                "not-utf-8",
                "a text between row {first_row} and row {last_row} is not valid UTF-8: write the file again from "
                "clean strings",
                first_row=row + 1,
                last_row=row + batch.num_rows,
            ) from None
        return columns

    def bytes_read(self) -> int:
        total = self._file.metadata.num_rows
        return int((self.size_bytes or 0) * self._rows_read / total) if total else 0

    def close(self) -> None:
        self._file.close()
        self._raw.close()


def _looked_up(array: pyarrow.Array) -> pyarrow.Array:
    return array.dictionary_decode() if arrow_library().types.is_dictionary(array.type) else array


def _as_type(array: pyarrow.Array, kind: pyarrow.DataType) -> pyarrow.Array:
    """The same values, as the file says they are."""
    if array.type == kind:
        return array
    return (array if arrow_library().types.is_dictionary(kind) else _looked_up(array)).cast(kind)


def _variable_leaves(schema: ParquetSchema, columns: Iterable[pyarrow.Field]) -> list[str]:
    """The places of values of variable length, also inside lists and structures, where the library can turn numbers of
    a dictionary into what the file says the values are."""
    stubborn = frozenset(field.name for field in columns if _holds_views(field.type))
    leaves = (schema.column(number) for number in range(len(schema)))
    return [
        leaf.path
        for leaf in leaves
        if leaf.physical_type == "BYTE_ARRAY"
        and leaf.logical_type.type != "DECIMAL"
        and not _is_part(leaf.path, stubborn)
    ]


def _holds_views(kind: pyarrow.DataType) -> bool:
    """Whether there are string or binary views inside a list or structure."""
    types = arrow_library().types
    inner = [kind.field(number).type for number in range(kind.num_fields)]
    return any(types.is_string_view(each) or types.is_binary_view(each) or _holds_views(each) for each in inner)


def _rows_at_a_time(group: RowGroupMetaData, selected: frozenset[str]) -> int:
    """The number of rows of a row group that take `BATCH_BYTES`, by what the file says about them."""
    chunks = (group.column(number) for number in range(group.num_columns))
    sizes = (
        max(chunk.total_uncompressed_size, LEAST_VALUE_BYTES * chunk.num_values)
        for chunk in chunks
        if _is_part(chunk.path_in_schema, selected)
    )
    return int(max(1, min(BATCH_ROWS, BATCH_BYTES * max(1, group.num_rows) // max(1, sum(sizes)))))


def _is_part(path: str, selected: frozenset[str]) -> bool:
    """Whether a leaf such as `tags.list.element` belongs to a selected column; names may hold dots themselves."""
    return path in selected or any(path[:end] in selected for end, letter in enumerate(path) if letter == ".")


def _decoded_sizes(array: pyarrow.Array) -> Integers | None:
    """The bytes that each row of a column takes when its numbers are looked up in the dictionary; None if it has
    none."""
    types = arrow_library().types
    kind = array.type
    if types.is_dictionary(kind):
        return _looked_up_sizes(array)
    if types.is_struct(kind):
        parts = [part for part in map(_decoded_sizes, array.flatten()) if part is not None]
        return sum(parts[1:], parts[0]) if parts else None
    if types.is_fixed_size_list(kind):
        inner = _decoded_sizes(array.values)
        start, width = array.offset, kind.list_size
        return None if inner is None else inner[start * width : (start + len(array)) * width].reshape(-1, width).sum(1)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        inner = _decoded_sizes(array.values)
        ends = array.offsets.to_numpy()
        return None if inner is None else np.diff(np.concatenate([[0], np.cumsum(inner)])[ends])
    return None


def _sizes(array: pyarrow.Array) -> list[int]:
    """About what each value of a column takes in memory."""
    sizes = _decoded_sizes(array)
    if sizes is not None:
        return list(map(int, sizes))
    nested = array.type.num_fields > 0
    return [array.nbytes // len(array) if nested else FIXED_SIZE] * len(array) if len(array) else []


def _looked_up_sizes(array: pyarrow.Array) -> Integers | None:
    compute = require("pyarrow.compute", extra="parquet", purpose="reading parquet")
    values = array.dictionary
    types = arrow_library().types
    if not (is_text_type(values.type) or types.is_binary(values.type) or types.is_large_binary(values.type)):
        return None
    lengths = compute.fill_null(compute.binary_length(values), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    if not len(lengths):
        return np.zeros(len(array), np.int64)
    numbers = compute.fill_null(array.indices, 0).to_numpy(zero_copy_only=False)
    return np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths[numbers], 0)
