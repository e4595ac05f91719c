"""Writing: rows as self-contained blocks of bytes, so that a file can be cut back to any block's end and continued."""

from __future__ import annotations

import base64
import csv
import datetime
import functools
import gzip
import io
import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tacit.atomic import sync
from tacit.errors import BadInputError, require
from tacit.text.files.arrow import ArrowCell, arrow_library, is_text_type
from tacit.text.files.formats import MISSING, FileFormat
from tacit.text.files.tables import TableReader, dialect

if TYPE_CHECKING:
    import pyarrow

GROUP_ROWS: Final = 65_536
"""Rows in a group of a parquet file: a fixed number, which says nothing about the texts."""


class RowEncoder(ABC):
    """Rows to bytes. `head` and every block stand for themselves, so the file can be cut after any of them."""

    def __init__(self, format: FileFormat, columns: Sequence[str]) -> None:
        self.format = format
        self.columns = tuple(columns)

    def head(self) -> bytes:
        return self._packed(self._head())

    def block(self, rows: Sequence[Sequence[object]]) -> bytes:
        return self._packed(self._block(rows))

    def finish(self, partial: Path) -> Path:
        """Turn the finished partial file into the final one, not yet under its name.

        Nothing of the final file tells where blocks ended: the cuts depend on the lengths of the original texts.
        """
        return _zipped_anew(partial) if self.format.gzip else partial

    def _packed(self, data: bytes) -> bytes:
        return gzip.compress(data, 1, mtime=0) if self.format.gzip and data else data

    def _head(self) -> bytes:
        return b""

    @abstractmethod
    def _block(self, rows: Sequence[Sequence[object]]) -> bytes: ...


def encoder_for(
    format: FileFormat,
    columns: Sequence[str],
    source: TableReader | None = None,
    texts: Sequence[str] = (),
    vectors: Mapping[str, int] | None = None,
) -> RowEncoder:
    """The encoder of a format; a parquet source passes on the types of its columns. `vectors` are the columns that hold
    vectors (1), or lists of vectors (2)."""
    if format.kind == "txt":
        return TextEncoder(format, columns)
    if format.kind == "jsonl":
        return JsonEncoder(format, columns)
    if format.kind == "npy":
        from tacit.text.files.matrix import MatrixEncoder

        return MatrixEncoder(format, columns)
    if format.kind == "parquet":
        return ParquetEncoder(format, columns, _column_types(columns, source, texts, vectors or {}))
    return SeparatedEncoder(format, columns)


class TextEncoder(RowEncoder):
    def __init__(self, format: FileFormat, columns: Sequence[str]) -> None:
        super().__init__(format, columns)
        if len(columns) != 1:
            raise BadInputError(
                "several-columns-in-txt",
                "a txt file holds one column, not {columns}: choose a csv, jsonl or parquet output",
                columns=len(columns),
            )

    def _block(self, rows: Sequence[Sequence[object]]) -> bytes:
        return "".join(one_line(plain_text(row[0])) + "\n" for row in rows).encode("utf-8")


class SeparatedEncoder(RowEncoder):
    def _head(self) -> bytes:
        return self._block([self.columns])

    def _block(self, rows: Sequence[Sequence[object]]) -> bytes:
        if self.format.kind == "tsv-raw":
            lines = ("\t".join(one_line(plain_text(value)).replace("\t", " ") for value in row) for row in rows)
            return "".join(line + "\n" for line in lines).encode("utf-8")
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n", **dialect(self.format.kind))
        writer.writerows([plain_text(value) for value in row] for row in rows)
        return buffer.getvalue().encode("utf-8")


class JsonEncoder(RowEncoder):
    def _block(self, rows: Sequence[Sequence[object]]) -> bytes:
        lines = (
            json.dumps(
                {
                    name: value.as_py() if isinstance(value, ArrowCell) else value
                    for name, value in zip(self.columns, row, strict=True)
                    if value is not MISSING
                },
                ensure_ascii=False,
                default=_json_value,
            )
            for row in rows
        )
        return "".join(line + "\n" for line in lines).encode("utf-8")


class ParquetEncoder(RowEncoder):
    """Each block is a whole Arrow stream; parquet itself cannot be continued, so it is made at the end."""

    def __init__(self, format: FileFormat, columns: Sequence[str], types: Mapping[str, pyarrow.DataType]) -> None:
        super().__init__(format, columns)
        arrow = arrow_library()
        self._schema = arrow.schema([arrow.field(name, types[name]) for name in columns])

    def _head(self) -> bytes:
        return self._stream(self._schema.empty_table())

    def _block(self, rows: Sequence[Sequence[object]]) -> bytes:
        arrow = arrow_library()
        columns = [
            arrow_column([row[position] for row in rows], field.type) for position, field in enumerate(self._schema)
        ]
        return self._stream(arrow.table(columns, schema=self._schema).unify_dictionaries())

    def _stream(self, table: pyarrow.Table) -> bytes:
        sink = io.BytesIO()
        with arrow_library().ipc.new_stream(sink, self._schema) as stream:
            stream.write_table(table)
        return sink.getvalue()

    def finish(self, partial: Path) -> Path:
        arrow = arrow_library()
        parquet = require("pyarrow.parquet", extra="parquet", purpose="writing parquet")
        final = partial.with_name(partial.name + ".parquet")
        with arrow.OSFile(str(partial)) as file, parquet.ParquetWriter(str(final), self._schema) as writer:
            for rows in _groups(_stored(file)):
                writer.write_table(rows, row_group_size=GROUP_ROWS)
        sync(final)
        return final


def _stored(file: pyarrow.NativeFile) -> Iterator[pyarrow.Table]:
    """The blocks of a file of Arrow streams, as tables."""
    arrow = arrow_library()
    while file.tell() < file.size():
        yield arrow.ipc.open_stream(file).read_all()


def _groups(tables: Iterator[pyarrow.Table]) -> Iterator[pyarrow.Table]:
    """The same rows in tables of GROUP_ROWS, but for the last."""
    arrow = arrow_library()
    waiting: list[pyarrow.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(part.num_rows for part in waiting) < GROUP_ROWS:
            continue
        rows = arrow.concat_tables(waiting).unify_dictionaries()
        whole = rows.num_rows - rows.num_rows % GROUP_ROWS
        for start in range(0, whole, GROUP_ROWS):
            yield rows.slice(start, GROUP_ROWS)
        waiting = [rows.slice(whole)]
    rest = arrow.concat_tables(waiting).unify_dictionaries() if waiting else None
    if rest is not None and rest.num_rows:
        yield rest


def _zipped_anew(partial: Path) -> Path:
    """One gzip stream in place of one per block."""
    final = partial.with_name(partial.name + ".gz")
    with (
        gzip.open(partial, "rb") as blocks,
        final.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as zipped,
    ):
        shutil.copyfileobj(blocks, zipped, 1 << 20)
    sync(final)
    return final


def arrow_column(values: Sequence[object], kind: pyarrow.DataType) -> pyarrow.Array:
    """A column of plain strings, or of cells copied from where they lie."""
    arrow = arrow_library()
    if arrow.types.is_list(kind) and any(isinstance(value, list) for value in values):
        return arrow.chunked_array([arrow.array(values, kind)])
    cells = [value for value in values if isinstance(value, ArrowCell)]
    if not cells:
        texts = [None if value is None or value is MISSING else plain_text(value) for value in values]
        return arrow.chunked_array([arrow.array(texts, kind)])
    pieces, start = [], 0
    for end in range(1, len(cells) + 1):
        first = cells[start]
        if end == len(cells) or not cells[end].follows(first, end - start):
            pieces.append(first.array.slice(first.position, end - start))
            start = end
    return arrow.chunked_array(pieces, kind)


def _column_types(
    columns: Sequence[str], source: TableReader | None, texts: Sequence[str], vectors: Mapping[str, int]
) -> dict[str, pyarrow.DataType]:
    from tacit.text.files.parquet import ParquetTable  # loads numpy, which the start of a command need not wait for

    arrow = arrow_library()
    known = {field.name: field.type for field in source.schema} if isinstance(source, ParquetTable) else {}

    def decided(name: str) -> pyarrow.DataType:
        if name in vectors:
            return functools.reduce(lambda kind, _: arrow.list_(kind), range(vectors[name]), arrow.float32())
        kind = known.get(name, arrow.string())
        dictionary_of_texts = arrow.types.is_dictionary(kind) and is_text_type(kind)
        if name in texts or dictionary_of_texts:
            return kind if arrow.types.is_large_string(kind) else arrow.string()
        return kind

    return {name: decided(name) for name in columns}


def plain_text(value: object) -> str:
    """A value as it stands in a file that has only strings."""
    if isinstance(value, str):
        return value
    if isinstance(value, ArrowCell):
        return plain_text(value.as_py())
    if value is None or value is MISSING:
        return ""
    if isinstance(value, datetime.date | datetime.time | bytes):
        return str(_json_value(value))
    return json.dumps(value, ensure_ascii=False, default=_json_value)


def one_line(text: str) -> str:
    """A text that cannot be mistaken for two lines."""
    if "\n" not in text and "\r" not in text:
        return text
    return text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ")


def _json_value(value: object) -> object:
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return str(value)
