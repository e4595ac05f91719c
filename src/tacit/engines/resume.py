"""`OUTPUT.resume`: what a run needs to go on after it was stopped, without drawing new noise for any row.

The first line holds the job's key and configuration, then one line follows per finished block. Whoever has the key
and the texts can repeat the noise, so this file is as secret as the input: only its owner may read it, and it is
deleted when the output is finished.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tacit.errors import BadInputError
from tacit.text.files import OutputError, storage_error, write_at

STATE_VERSION: Final = 1


@dataclass(frozen=True)
class Finished:
    """One block that is in the output, up to the byte `offset`."""

    block: int
    rows: int
    documents: int
    units: int
    longest_document: int
    longest_row: int
    offset: int
    digest: str


@dataclass(frozen=True)
class Header:
    key: str
    secure: bool
    overwrite: bool
    start: int
    configuration: dict[str, Any]


class ResumeFile:
    def __init__(self, output: Path) -> None:
        self.path = resume_path(output)
        self._file: io.FileIO | None = None
        self._end = 0

    def create(self, header: Header) -> None:
        self._open(os.O_CREAT)
        assert self._file is not None
        self._file.truncate(0)
        self._end = 0
        try:
            self._append({"tacit": STATE_VERSION, **asdict(header)})
        except OutputError:
            self.delete()
            raise

    def load(self) -> tuple[Header, list[Finished]]:
        """The header and the finished blocks; a last line that was cut off by a crash is dropped."""
        self._open()
        assert self._file is not None
        data = self._file.readall() or b""
        complete = data[: data.rfind(b"\n") + 1]
        try:
            first, *others = [json.loads(line) for line in complete.splitlines()]
            if first.pop("tacit") != STATE_VERSION:
                raise ValueError
            header, finished = Header(**first), [Finished(**item) for item in others]
        except (ValueError, KeyError, TypeError, AttributeError):
            self.close()
            raise BadInputError(
                f"'{self.path}' cannot be read (damaged, or of another version of Tacit): add --force to start over"
            ) from None
        self._end = len(complete)
        return header, finished

    def keep(self, header: Header, finished: list[Finished]) -> None:
        """Forget the blocks after these, which are not in the output."""
        assert self._file is not None
        lines = [{"tacit": STATE_VERSION, **asdict(header)}, *(asdict(item) for item in finished)]
        self._end = sum(len(_line(item)) for item in lines)
        self._file.truncate(self._end)

    def append(self, finished: Finished) -> None:
        self._append(asdict(finished))

    def _append(self, item: Mapping[str, Any]) -> None:
        assert self._file is not None
        data = _line(item)
        try:
            write_at(self._file, self._end, data)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
            raise storage_error(error, self.path) from error
        self._end += len(data)

    def _open(self, create: int = 0) -> None:
        """Two runs on one output would tear it apart; the lock goes with the process, however it ends."""
        try:
            self._file = io.FileIO(
                self.path, "r+", opener=lambda path, flags: os.open(path, flags | create, mode=0o600)
            )
        except FileNotFoundError:
            if create:
                raise storage_error(FileNotFoundError(errno.ENOENT, ""), self.path) from None
            raise BadInputError(
                f"'{self.path}' is missing, and without it the run cannot go on with the same noise: "
                "add --force to start over"
            ) from None
        except OSError as error:
            raise storage_error(error, self.path) from error
        if not locked(self._file):
            self.close()
            raise OutputError(f"another run is writing '{self.path.stem}': wait for it, or stop it first")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def delete(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)


def locked(file: io.FileIO) -> bool:
    """Whether this process now holds the file; the lock goes with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # a system without this kind of lock
        return True
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def resume_path(output: Path) -> Path:
    return output.with_name(output.name + ".resume")


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What is not as in the run that was stopped, in words."""
    found = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            found += differences(old, new)
        else:
            found.append(f"{name} was {_shown(old)} and is now {_shown(new)}")
    return found


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    return ", ".join(str(item) for item in value) or "none" if isinstance(value, list) else str(value)


def _line(item: Mapping[str, Any]) -> bytes:
    return json.dumps(item).encode("utf-8") + b"\n"
