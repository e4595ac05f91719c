"""Reading: one row at a time, memory independent of the file's size.

Reading refuses rather than guesses: an open quote, a row with missing fields or a broken byte stops with the row's
number, because a row that is silently merged or dropped is text that nobody knows was lost. No error ever quotes a
cell.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, NamedTuple, Self, cast

from tacit.errors import BadInputError, TacitError, require
from tacit.text.files.formats import (
    MISSING,
    STANDARD_STREAM,
    SUPPORTED,
    TEXT_COLUMN,
    FileFormat,
    FirstLine,
    check_columns,
    format_of,
    json_kind,
    unambiguous,
)

RECORD_LIMIT: Final = 16_000_000
"""The longest line, or row of a csv file, in characters. It also bounds what an open quote can swallow."""

_BEGINNINGS: Final = {
    b"PK\x03\x04": "a spreadsheet, a document of an office program or an archive (zip)",
    b"%PDF-": "a PDF",
    b"\xd0\xcf\x11\xe0\xa1\xb1": "a file of an older office program",
    b"{\\rtf1": "a document of an office program (rtf)",
    b"SQLite format 3\0": "a database",
}
"""How files begin that are no tables of text."""

_BOM: Final = b"\xef\xbb\xbf"


# Bytes in ---------------------------------------------------------------------------------------------------------


class InputBytes:
    """The bytes of a file or of standard input, unzipped, and how far the file itself has been read."""

    def __init__(self, path: str, zipped: bool, most_bytes: int | None = None) -> None:
        self.name = "standard input" if path == STANDARD_STREAM else Path(path).name
        self.size_bytes: int | None = None
        if path == STANDARD_STREAM:
            self._raw: BinaryIO = sys.stdin.buffer
            self._counted = False
        else:
            self._raw, self.size_bytes = open_file(path)
            self._counted = True
        self.stream: BinaryIO = self._raw
        if zipped:
            self.stream = io.BufferedReader(gzip.GzipFile(fileobj=self._raw, mode="rb"))
        self._unzipped = 0
        self._most_bytes = most_bytes

    def readline(self, limit: int) -> bytes:
        if self._most_bytes is not None:
            limit = min(limit, self._most_bytes - self._unzipped + 1)
        try:
            line = self.stream.readline(limit)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise BadInputError(
                "damaged-file",
                "{name} is not a complete gzip file (it breaks after {unzipped:,} unzipped bytes): copy it again, "
                "or use the format without .gz",
                name=self.name,
                unzipped=self._unzipped,
            ) from error
        self._unzipped += len(line)
        if self._most_bytes is not None and self._unzipped > self._most_bytes:
            raise BadInputError(
                "file-longer-than-a-look",
                "{name} is read no further than {most:,} bytes for a first look",
                name=self.name,
                most=self._most_bytes,
            )
        return line

    def bytes_read(self) -> int:
        """How much of the file has been taken in, for a progress bar; for standard input, unzipped bytes."""
        return self._raw.tell() if self._counted else self._unzipped

    def close(self) -> None:
        if self._counted:
            self.stream.close()
            self._raw.close()


def open_file(path: str) -> tuple[BinaryIO, int | None]:
    """A file and its size."""
    if "://" in path:
        return _open_url(path)
    try:
        return Path(path).open("rb"), Path(path).stat().st_size
    except FileNotFoundError:
        raise BadInputError("no-such-file", "there is no file '{path}': check the path", path=path) from None
    except IsADirectoryError:
        raise BadInputError(
            "is-a-folder", "'{path}' is a folder: give one file in it, {supported}", path=path, supported=SUPPORTED
        ) from None
    except PermissionError:
        raise BadInputError(
            "file-not-readable", "'{path}' may not be read: ask its owner for permission", path=path
        ) from None


def _open_url(url: str) -> tuple[BinaryIO, int | None]:
    """A file anywhere fsspec reaches, such as s3://bucket/name.csv."""
    fsspec = require("fsspec", extra="ray", purpose=f"reading {url.partition(':')[0]}://")
    try:
        raw = fsspec.open(url, "rb").open()
    except FileNotFoundError:
        raise BadInputError("no-such-file", "there is no file '{path}': check the path", path=url) from None
    except Exception as error:  # whatever the library behind this kind of path raises
        raise BadInputError(
            "not-reached",
            "'{path}' cannot be read ({error}): check the path and the access",
            path=url,
            error=type(error).__name__,
        ) from error
    return cast(BinaryIO, io.BufferedReader(raw, 1 << 20)), getattr(raw, "size", None)


class Lines:
    """Decoded lines with their numbers. Only a newline ends a line; other separators of Unicode are part of texts."""

    def __init__(self, source: InputBytes) -> None:
        self._source = source
        self.number = 0
        self._offset = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._source.readline(RECORD_LIMIT + 1)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > RECORD_LIMIT:
            raise BadInputError(
                "text-too-long",
                "line {line} is longer than {most:,} bytes: split the text into several lines",
                line=self.number,
                most=RECORD_LIMIT,
            )
        start, self._offset = self._offset, self._offset + len(line)
        if self.number == 1:
            _check_beginning(line, self._source.name)
            if line.startswith(_BOM):
                line, start = line[len(_BOM) :], len(_BOM)
                if not line:
                    raise StopIteration
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadInputError(
                "not-utf-8",
                "line {line} is not valid UTF-8 (byte {byte:,}): convert the file first, for example with iconv -f "
                "latin1 -t utf-8",
                line=self.number,
                byte=start + error.start,
            ) from None


def _check_beginning(line: bytes, name: str) -> None:
    """Files that are something else altogether deserve better than a broken byte in line 1."""
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadInputError(
            "not-utf-8", "{name} is UTF-16: convert it first, for example with iconv -f utf-16 -t utf-8", name=name
        )
    if line.startswith(b"\x1f\x8b"):
        raise BadInputError(
            "format-is-another", "{name} is compressed with gzip: name it .gz, or add .gz to {option.format}", name=name
        )
    if line.startswith(b"PAR1"):
        raise BadInputError(
            "format-is-another",
            "{name} is a parquet file: name it .parquet, or use {option.format[parquet]}",
            name=name,
        )
    for beginning, what in _BEGINNINGS.items():
        if line.startswith(beginning):
            raise BadInputError(
                "unknown-format",
                "{name} is {what}, whatever its name says: save the texts as {supported}",
                name=name,
                what=what,
                supported=SUPPORTED,
            )


# Tables -----------------------------------------------------------------------------------------------------------


class Table(ABC):
    """Rows of one file. `columns` is known at once, rows come lazily and once."""

    columns: tuple[str, ...]
    size_bytes: int | None

    def __init__(self, name: str) -> None:
        self.name = name
        self.selected: tuple[str, ...] = ()

    def select(self, columns: Sequence[str]) -> None:
        """Choose the columns that `rows` yields, and their order."""
        check_columns(columns, self.columns)
        self.selected = tuple(columns)

    @abstractmethod
    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        """(row number from 1, values of the selected columns)."""

    @abstractmethod
    def bytes_read(self) -> int: ...

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _positions(self) -> list[int]:
        places = {column: position for position, column in enumerate(self.columns)}
        return [places[column] for column in self.selected]

    def _empty(self) -> BadInputError:
        return BadInputError("file-is-empty", "{name} is empty: there is nothing to rewrite", name=self.name)


def open_table(
    source: Any,
    format: str | FileFormat | None = None,
    columns: Sequence[str] | None = None,
    *,
    most_bytes: int | None = None,
) -> Table:
    """Open a file, or data in memory, for reading; by default all its columns are selected. With `most_bytes` no more
    than so many unzipped bytes are ever read, for a look at the first line of a stranger's file."""
    table = _table_of(source, format, most_bytes)
    try:
        table.select(unambiguous(table.columns) if columns is None else columns)
    except TacitError:
        table.close()
        raise
    return table


def _table_of(source: Any, format: str | FileFormat | None, most_bytes: int | None) -> Table:
    from tacit.text.files.memory import is_in_memory, memory_table  # builds on this module

    if is_in_memory(source):
        return memory_table(source)
    path = str(source)
    return _table(path, format if isinstance(format, FileFormat) else format_of(path, format), most_bytes)


def _table(path: str, format: FileFormat, most_bytes: int | None) -> Table:
    if format.kind == "parquet":
        from tacit.text.files.parquet import ParquetTable  # builds on this module

        return ParquetTable(path, most_bytes)
    source = InputBytes(path, format.gzip, most_bytes)
    try:
        if format.kind == "txt":
            return TextTable(source)
        if format.kind == "jsonl":
            return JsonTable(source)
        return SeparatedTable(source, format.kind)
    except BaseException:
        source.close()
        raise


class _LineTable(Table):
    def __init__(self, source: InputBytes) -> None:
        super().__init__(source.name)
        self._source = source
        self._lines = Lines(source)
        self.size_bytes = source.size_bytes

    def bytes_read(self) -> int:
        return self._source.bytes_read()

    def close(self) -> None:
        self._source.close()


class TextTable(_LineTable):
    """A line is a document."""

    columns = (TEXT_COLUMN,)

    def __init__(self, source: InputBytes) -> None:
        super().__init__(source)
        first = next(self._lines, None)
        if first is None:
            raise self._empty()
        self._first = first

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        for row, line in enumerate(itertools.chain([self._first], self._lines), start=1):
            yield row, [line.removesuffix("\n").removesuffix("\r")]


def allow_long_cells() -> None:
    """The csv module refuses cells above 128 kB unless it is told otherwise, once for the whole process."""
    csv.field_size_limit(max(csv.field_size_limit(), 2 * RECORD_LIMIT))


class SeparatedTable(_LineTable):
    """csv and tsv with a header, read strictly: a quote that is opened must be closed, and every row is complete."""

    def __init__(self, source: InputBytes, kind: str) -> None:
        super().__init__(source)
        self._separator = "comma" if kind == "csv" else "tab"
        allow_long_cells()
        self._reader = csv.reader(self._record_lines(), strict=True, **dialect(kind))
        self._record_start = 1
        self._row = 0
        header = self._record()
        if header is None:
            raise self._empty()
        if not any(name.strip() for name in header):
            raise BadInputError(
                "no-header", "{name} begins with an empty line instead of the names of its columns", name=self.name
            )
        self.columns = FirstLine(header)

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        positions, width = self._positions(), len(self.columns)
        while True:
            self._row += 1
            fields = self._record()
            if fields is None:
                return
            if not fields:
                if width > 1:  # a blank line; in a file of one column it is an empty text
                    self._row -= 1
                    continue
                fields = [""]
            if len(fields) != width:
                raise BadInputError(
                    "wrong-number-of-fields",
                    "{place} has {fields} fields where the header has {expected}: correct the row, or put texts "
                    'that hold a {separator} in "quotes"',
                    place=self._place(),
                    fields=len(fields),
                    expected=width,
                    separator=self._separator,
                )
            yield self._row, [fields[position] for position in positions]

    def _record(self) -> list[str] | None:
        self._record_start, self._record_size = self._lines.number + 1, 0
        try:
            return next(self._reader, None)
        except csv.Error as error:
            if "new-line" in str(error):
                problem = "holds a carriage return outside quotes: convert the line ends to \\n"
            elif "unexpected end" in str(error):
                problem = 'opens a quote (") that is never closed: close it, or write a quote inside a text twice ("")'
            else:
                problem = (
                    'has a quote (") that is opened or closed in the wrong place: put the text in quotes and write '
                    'a quote inside it twice ("")'
                )
            hint = ", or use {option.format[tsv-raw]} if the file has no quoting at all"
            raise BadInputError(
                "not-a-csv-row",
                "{place} {problem}" + ("" if self._separator == "comma" else hint),
                place=self._place(),
                problem=problem,
            ) from None

    def _record_lines(self) -> Iterator[str]:
        for line in self._lines:
            self._record_size += len(line)
            if self._record_size > RECORD_LIMIT:
                raise BadInputError(
                    "quote-not-closed",
                    '{place} opens a quote (") that is still open after {most:,} characters: close it',
                    place=self._place(),
                    most=RECORD_LIMIT,
                )
            yield line

    def _place(self) -> str:
        return f"row {self._row} (line {self._record_start})" if self._row else "the header"


def dialect(kind: str) -> dict[str, Any]:
    """How the csv module reads and writes a kind of separated file."""
    if kind == "csv":
        return {"delimiter": ","}
    if kind == "tsv":
        return {"delimiter": "\t"}
    return {"delimiter": "\t", "quoting": csv.QUOTE_NONE, "quotechar": None}


class JsonTable(_LineTable):
    """One JSON object per line. The columns are the keys of the first object."""

    def __init__(self, source: InputBytes) -> None:
        super().__init__(source)
        self._row = 0
        first = self._object()
        if first is None:
            raise self._empty()
        self._first = first
        self.columns = tuple(first)

    def rows(self) -> Iterator[tuple[int, list[Any]]]:
        item: dict[str, Any] | None = self._first
        while item is not None:
            yield self._row, [item.get(column, MISSING) for column in self.selected]
            item = self._object()

    def _object(self) -> dict[str, Any] | None:
        for line in self._lines:
            if not line.strip():
                continue
            self._row += 1
            place = f"row {self._row} (line {self._lines.number})"
            try:
                item = json.loads(line)
            except (ValueError, RecursionError):
                raise BadInputError(
                    "not-a-json-object",
                    "{place} is not valid JSON: each line must hold one object {{...}}",
                    place=place,
                ) from None
            if not isinstance(item, dict):
                raise BadInputError(
                    "not-a-json-object",
                    "{place} holds {given}, not an object {{...}} with named texts",
                    place=place,
                    given=json_kind(item),
                )
            if "\\u" in line and not _is_unicode(item):
                raise BadInputError(
                    "half-a-surrogate-pair",
                    "{place} holds half of a surrogate pair (\\ud800 to \\udfff): correct the escape",
                    place=place,
                )
            return item
        return None


def _is_unicode(item: object) -> bool:
    try:
        json.dumps(item, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


FIXED_SIZE: Final = 8
"""About what a number takes."""


class ArrowCell(NamedTuple):
    """A value of a parquet file where it lies, so that copying it cannot change its type or precision; `size` is about
    what it takes in memory."""

    array: Any
    position: int
    size: int = FIXED_SIZE

    def as_py(self) -> Any:
        return self.array[self.position].as_py()

    def follows(self, first: ArrowCell, distance: int) -> bool:
        return self.array is first.array and self.position == first.position + distance


def is_text_type(kind: Any) -> bool:
    types = arrow_library().types
    if types.is_dictionary(kind):
        return is_text_type(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def arrow_library() -> Any:
    return require("pyarrow", extra="parquet", purpose="parquet")
