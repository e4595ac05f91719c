"""Reading: one row at a time, memory independent of the file's size.

Reading refuses rather than guesses: an open quote, a row with missing fields or a broken byte stops with the row's
number, because a row that is silently merged or dropped is text that nobody knows was lost. No error ever quotes a
cell.
"""

from __future__ import annotations

import csv
import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Final, Literal, Self, TypedDict

from tacit.errors import BadInputError, TacitError
from tacit.text.files.formats import (
    MISSING,
    TEXT_COLUMN,
    FileFormat,
    FirstKeys,
    FirstLine,
    check_columns,
    format_of,
    json_kind,
    unambiguous,
)
from tacit.text.files.sources import RECORD_LIMIT, InputBytes, TextLines

# Tables -----------------------------------------------------------------------------------------------------------


class TableReader(ABC):
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
    def rows(self) -> Iterator[tuple[int, list[object]]]:
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
        return BadInputError("file-is-empty", "{name} is empty: there is nothing to read", name=self.name)


def open_table(
    source: object,
    format: str | FileFormat | None = None,
    columns: Sequence[str] | None = None,
    *,
    most_bytes: int | None = None,
) -> TableReader:
    """Open a file, or data in memory, for reading; by default all its columns are selected. With `most_bytes` no more
    than so many unzipped bytes are ever read, to read the first line of an untrusted file."""
    table = _table_of(source, format, most_bytes)
    try:
        table.select(unambiguous(table.columns) if columns is None else columns)
    except TacitError:
        table.close()
        raise
    return table


def _table_of(source: object, format: str | FileFormat | None, most_bytes: int | None) -> TableReader:
    from tacit.text.files.memory import is_in_memory, memory_table  # builds on this module

    if is_in_memory(source):
        return memory_table(source)
    path = str(source)
    return _table(path, format if isinstance(format, FileFormat) else format_of(path, format), most_bytes)


def _table(path: str, format: FileFormat, most_bytes: int | None) -> TableReader:
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


class _LineTable(TableReader):
    def __init__(self, source: InputBytes) -> None:
        super().__init__(source.name)
        self._source = source
        self._lines = TextLines(source)
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

    def rows(self) -> Iterator[tuple[int, list[object]]]:
        for row, line in enumerate(itertools.chain([self._first], self._lines), start=1):
            yield row, [line.removesuffix("\n").removesuffix("\r")]


def allow_long_cells() -> None:
    """Let the csv module read cells above 128 kB; the limit belongs to the whole process."""
    csv.field_size_limit(max(csv.field_size_limit(), 2 * RECORD_LIMIT))


class SeparatedTable(_LineTable):
    """csv and tsv with a header, read strictly: a quote that is opened must be closed, and every row is complete."""

    def __init__(self, source: InputBytes, kind: str) -> None:
        super().__init__(source)
        self._separator = SEPARATORS.get(kind, "tab")
        allow_long_cells()
        self._reader = csv.reader(self._record_lines(), strict=True, **dialect(kind))
        self._record_start = 1
        self._row = 0
        self._line = ""
        self._ended = False
        header = self._record()
        if header is None:
            raise self._empty()
        if not any(name.strip() for name in header):
            raise BadInputError(
                "no-header", "{name} begins with an empty line instead of the names of its columns", name=self.name
            )
        self.columns = FirstLine(header)

    def rows(self) -> Iterator[tuple[int, list[object]]]:
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
        except csv.Error:
            if self._ended:
                problem = 'opens a quote (") that is never closed: close it, or write a quote inside a text twice ("")'
            elif "\r" in self._line.removesuffix("\n").removesuffix("\r"):
                problem = "holds a carriage return outside quotes: convert the line ends to \\n"
            else:
                problem = (
                    'has a quote (") that is opened or closed in the wrong place: put the text in quotes and write '
                    'a quote inside it twice ("")'
                )
            hint = ", or use {option.format[tsv-raw]} if the file has no quoting at all"
            raise BadInputError(
                "not-a-csv-row",
                "{place} {problem}" + (hint if self._separator == "tab" else ""),
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
            self._line = line
            yield line
        self._ended = True

    def _place(self) -> str:
        return f"row {self._row} (line {self._record_start})" if self._row else "the header"


SEPARATORS: Final = {"csv": "comma", "csv-semicolon": "semicolon"}
"""The names of what separates columns, where that is no tab."""


class Dialect(TypedDict, total=False):
    """Settings of the csv module."""

    delimiter: str
    quoting: Literal[3]
    quotechar: str | None


def dialect(kind: str) -> Dialect:
    """The dialect by which the csv module reads and writes a kind of separated file."""
    if kind in SEPARATORS:
        return {"delimiter": ";" if kind == "csv-semicolon" else ","}
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
        self.columns = FirstKeys(first)

    def rows(self) -> Iterator[tuple[int, list[object]]]:
        item: dict[str, object] | None = self._first
        while item is not None:
            yield self._row, [item.get(column, MISSING) for column in self.selected]
            item = self._object()

    def _object(self) -> dict[str, object] | None:
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
