"""The files of a data set: one file, a folder of files, or a pattern with `*`, here or anywhere fsspec reaches.

All files have one format and the same columns, which is checked before any noise is drawn. Their order is that of
their paths; names that begin with `.` or `_` are left out, as is usual for such folders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tacit.engines.cluster.storage import local_path, remote_system
from tacit.errors import BadInputError, TacitError
from tacit.progress import StepProgress
from tacit.text.files import (
    STANDARD_STREAM,
    ColumnSelection,
    FileFormat,
    TableReader,
    format_of,
    open_table,
    suffix_format,
)
from tacit.text.files.formats import FirstLine, shown_names

HEADERS_AT_A_TIME: Final = 16


@dataclass(frozen=True)
class SourceFile:
    url: str
    size: int

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class ClusterDataSet:
    """Files in their order, with the format that they share."""

    files: tuple[SourceFile, ...]
    format: FileFormat

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def find_data_set(path: str, format: str | None = None) -> ClusterDataSet:
    """The files that `path` stands for."""
    if path == STANDARD_STREAM:
        raise BadInputError(
            "cluster-reads-files",
            "a cluster cannot read standard input: give a file or a folder that its workers reach",
        )
    try:
        files = tuple(sorted(_files(path), key=lambda file: file.url))
    except TacitError:
        raise
    except FileNotFoundError:
        raise BadInputError("no-such-file", "there is no file or folder '{path}': check the path", path=path) from None
    except Exception as error:
        raise BadInputError(
            "not-reached",
            "'{path}' cannot be reached ({error}): check the path, the network and the access",
            path=path,
            error=type(error).__name__,
        ) from error
    if not files:
        raise BadInputError(
            "no-files", "'{path}' holds no files: give a folder of csv, jsonl or parquet files, or one file", path=path
        )
    return ClusterDataSet(files, _common_format(files, format))


def _files(path: str) -> Iterator[SourceFile]:
    local = local_path(path)
    if local is not None and "*" not in path:
        if local.is_file():
            yield SourceFile(str(local), local.stat().st_size)
        elif local.is_dir():
            paths = (file for file in local.rglob("*") if file.is_file() and _is_data(file.relative_to(local).parts))
            yield from (SourceFile(str(file), file.stat().st_size) for file in paths)
        else:
            raise FileNotFoundError(path)
        return
    if local is not None:
        root = Path(local.anchor)
        yield from (SourceFile(str(file), file.stat().st_size) for file in root.glob(str(local.relative_to(root))))
        return
    system, place = remote_system(path)
    if "*" in place:
        listed = system.glob(place, detail=True)
    elif system.isfile(place):
        listed = {place: system.info(place)}
    else:
        listed = system.find(place, detail=True)
        if not listed and not system.exists(place):
            raise FileNotFoundError(path)
    for name, facts in listed.items():
        inside = str(name).removeprefix(place).strip("/").split("/")
        if facts["type"] == "file" and (name == place or _is_data(inside)):
            yield SourceFile(system.unstrip_protocol(name), int(facts["size"] or 0))


def _is_data(parts: Sequence[str]) -> bool:
    return not any(part.startswith((".", "_")) for part in parts)


def _common_format(files: Sequence[SourceFile], named: str | None) -> FileFormat:
    if named is not None:
        return format_of(files[0].url, named)
    first = format_of(files[0].url)
    for file in files:
        other = suffix_format(file.url)
        if other != first:
            shown = f"is {other}" if other else "does not tell its format"
            raise BadInputError(
                "several-formats",
                "'{file}' is {first} and '{other_file}' {other}: a data set has one format; move other files away, "
                "or name the format of all with {option.format}",
                file=files[0].name,
                first=first,
                other_file=file.name,
                other=shown,
            )
    return first


# Columns ----------------------------------------------------------------------------------------------------------


def check_files(
    data: ClusterDataSet, selection: ColumnSelection, wanted: Sequence[str], progress: StepProgress | None = None
) -> None:
    """Every file has the columns of the first one; in parquet files what is copied also has the same types."""
    with opened(data.files[0], data.format) as table:
        first = _header(table, selection)
    with ThreadPoolExecutor(HEADERS_AT_A_TIME) as pool:
        headers = pool.map(lambda file: _header_of(file, data.format, selection), data.files[1:])
        for done, (file, header) in enumerate(zip(data.files[1:], headers, strict=True), start=2):
            _check_header(data.files[0].name, first, file.name, header, data.format, wanted)
            if progress is not None:
                progress(done, len(data.files))


Header = tuple[tuple[str, ...], dict[str, str]]


def opened(file: SourceFile, format: FileFormat) -> TableReader:
    return open_table(file.url, format)


def _header_of(file: SourceFile, format: FileFormat, selection: ColumnSelection) -> Header:
    try:
        with opened(file, format) as table:
            return _header(table, selection)
    except TacitError as error:
        raise unreadable_error(file, error) from None


def unreadable_error(file: SourceFile, error: TacitError) -> BadInputError:
    """An error about one file of a data set, with its name."""
    return BadInputError("unreadable-file-of-data-set", "{file}: {reason}", file=file.name, reason=str(error))


def _header(table: TableReader, selection: ColumnSelection) -> Header:
    schema: Any = getattr(table, "schema", None)
    names = [name for name in selection.written if schema is not None and name in schema.names]
    return table.columns, {name: str(schema.field(name).type) for name in names}


def _check_header(
    first_name: str, first: Header, name: str, header: Header, format: FileFormat, wanted: Sequence[str]
) -> None:
    missing = [column for column in wanted if column not in header[0]]
    # The keys of a jsonl file are those of its first row, and rows may leave out what is not asked for.
    if missing or (format.kind != "jsonl" and sorted(header[0]) != sorted(first[0])):
        different = sorted({*header[0]} ^ {*first[0]})
        unlike = missing or shown_names(FirstLine(different) if isinstance(first[0], FirstLine) else different)
        shown = ", ".join(f"'{column}'" for column in unlike[:5]) or "names that may be text and are not shown"
        raise BadInputError(
            "files-do-not-agree",
            "'{file}' and '{other_file}' do not have the same columns (they differ in {columns}): the files of a "
            "data set must agree",
            file=first_name,
            other_file=name,
            columns=shown,
        )
    for column, kind in first[1].items():
        if header[1].get(column) != kind:
            raise BadInputError(
                "files-do-not-agree",
                "the column '{column}' is {kind} in '{file}' and {other_kind} in '{other_file}': the files of a "
                "data set must agree",
                column=column,
                kind=kind,
                file=first_name,
                other_kind=header[1].get(column),
                other_file=name,
            )
