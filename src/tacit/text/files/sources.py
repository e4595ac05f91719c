"""Bytes of an input, from a file, a stream or an address, and their lines."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from tacit.errors import BadInputError, require
from tacit.text.files.formats import (
    STANDARD_STREAM,
    SUPPORTED,
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
        """The bytes of the file that have been taken in, for a progress bar; for standard input, unzipped bytes."""
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


class TextLines:
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
