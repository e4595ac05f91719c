"""The file that grows: blocks go to `OUTPUT.partial`, and only a finished file gets its name."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tacit.atomic import sync, write_files
from tacit.errors import TacitError

SHUFFLED = ".shuffled"
"""What the name of an unfinished file with its rows in their final order ends in."""


class OutputError(TacitError):
    """The output could not be written."""


class PartialOutput:
    """`OUTPUT.partial`: grows by whole blocks, can be cut back to the end of any block, gets its name at the end."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.path = partial_path(output)
        self._file: io.FileIO | None = None
        self.offset = 0

    def create(self) -> None:
        """A new empty file; fails if there is one, so that two runs never write into each other."""
        try:
            self._file = io.FileIO(self.path, "x")
        except FileExistsError:
            raise OutputError(
                "unfinished-run",
                "'{path}' is there already: add {option.resume} to go on with it, or {option.force} to start over",
                path=self.path,
            ) from None
        except OSError as error:
            raise storage_error(error, self.path) from error
        self.offset = 0

    def reopen(self, offset: int) -> None:
        """Go on after the block that ends at `offset`; whatever follows it was not finished."""
        try:
            self._file = io.FileIO(self.path, "r+", opener=_not_through_a_link)
            self._file.truncate(offset)
        except OSError as error:
            raise storage_error(error, self.path) from error
        self.offset = offset

    def intact(self, head: bytes, blocks: Sequence[tuple[int, str]]) -> int:
        """The number of these blocks, each (its end, the digest of its bytes), that are there as they were written: up
        to the first that is not. -1 if not even `head` stands at the beginning."""
        try:
            with io.FileIO(self.path, "r", opener=_not_through_a_link) as file:
                if file.read(len(head)) != head:
                    return -1
                start = len(head)
                for number, (end, written) in enumerate(blocks):
                    if _digest_of(file, end - start) != written:
                        return number
                    start = end
                return len(blocks)
        except FileNotFoundError:
            return -1
        except OSError as error:
            raise storage_error(error, self.path) from error

    def append(self, data: bytes) -> int:
        """Add a block and wait until it is stored; returns the new end. After an error the old end still holds."""
        assert self._file is not None
        try:
            write_at(self._file, self.offset, data)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(self.offset)
            raise storage_error(error, self.path) from error
        self.offset += len(data)
        return self.offset

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def release(self, ready: Path) -> None:
        """Give the finished file its name, all at once."""
        self.close()
        try:
            ready.replace(self.output)
            if ready != self.path:
                self.path.unlink()
            sync(self.output.parent)
        except OSError as error:
            raise storage_error(error, self.output) from error

    def discard(self) -> None:
        self.close()
        ends = ("", ".parquet", ".gz")
        for path in (self.path.with_name(self.path.name + first + end) for first in ("", SHUFFLED) for end in ends):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise storage_error(error, path) from error


def block_digest(data: bytes) -> str:
    """By which the bytes of a block are recognized in an unfinished output."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _digest_of(file: io.FileIO, size: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    while size > 0 and (piece := file.read(min(size, 1 << 20))):
        digest.update(piece)
        size -= len(piece)
    return digest.hexdigest() if size == 0 else ""


def _not_through_a_link(path: str, flags: int) -> int:
    """Somebody else may have put a link under the name, to a file that is to be overwritten."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | (0 if flags & os.O_RDWR == 0 else os.O_CREAT), 0o666)


def partial_path(output: Path) -> Path:
    return output.with_name(output.name + ".partial")


def write_at(file: io.FileIO, offset: int, data: bytes) -> None:
    """Write all of the data at a place, down to the disk."""
    file.seek(offset)
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[file.write(remaining) :]
    os.fsync(file.fileno())


def write_whole(path: Path, text: str) -> None:
    """Write a small file all at once: it is there completely or not at all."""
    write_together({path: text})


def write_together(texts: Mapping[Path, str]) -> None:
    """Write small files: each is there completely or not at all, and none of them gets its name before all are
    stored."""
    try:
        write_files({path: text.encode() for path, text in texts.items()})
    except OSError as error:
        raise storage_error(error, error.filename) from error


def no_such_folder(folder: Path) -> OutputError:
    """The error for an output whose folder is missing."""
    return OutputError("no-such-folder", "the folder '{folder}' does not exist: make it first", folder=folder)


def storage_error(error: OSError, path: Path | str) -> OutputError:
    """A sentence for a disk that refuses."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError("disk-full", "the disk is full: '{path}' could not grow. Free some space", path=path)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return OutputError("not-allowed", "'{path}' may not be written: choose another place", path=path)
    if error.errno == errno.ENOENT:
        return no_such_folder(Path(path).parent)
    return OutputError(
        "cannot-write",
        "'{path}' could not be written ({reason}): check the disk",
        path=path,
        reason=os.strerror(error.errno or 0),
    )
