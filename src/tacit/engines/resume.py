"""`OUTPUT.resume`: what a run needs to go on after it was stopped, without drawing new noise for any row.

The first line holds the job's key and configuration, written once; then one line follows per finished block, with a
digest of what it has written. Whoever has the key and the texts can repeat the noise, so this file is as secret as the
input: it is made for its owner alone, a file that somebody else can have planted or read is refused
(`tacit.noise.kept_key`), and it is overwritten and removed when the output is finished.
"""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tacit.errors import BadInputError
from tacit.guarantee import Guarantee
from tacit.noise.kept_key import NotPrivateError, create_private, erase, open_private
from tacit.text.files import OutputError, storage_error, write_at

STATE_VERSION: Final = 2

Configuration = dict[str, object]
"""All settings that must be the same when a stopped run is resumed, by name, as JSON values."""


@dataclass(frozen=True)
class Finished:
    """One block that is in the output, up to the byte `offset`: `digest` of its texts, `written` of its bytes there."""

    block: int
    rows: int
    documents: int
    units: int
    longest_document: int
    longest_row: int
    offset: int
    digest: str
    written: str = ""


@dataclass(frozen=True)
class Header:
    key: str
    secure: bool
    overwrite: bool
    start: int
    configuration: Configuration


class ResumeFile:
    def __init__(self, output: Path) -> None:
        self.path = resume_path(output)
        self._file: io.FileIO | None = None
        self._end = 0

    def create(self, header: Header) -> None:
        """A new file; what an earlier run or somebody else left under its name is removed, never written into."""
        self._remove_old()
        try:
            self._file = create_private(self.path)
        except FileExistsError:
            raise in_use_error(self.path.stem) from None
        except OSError as error:
            raise storage_error(error, self.path) from error
        self._lock()
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
            if not any(bytes.fromhex(header.key)):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError):
            self.close()
            raise BadInputError(
                "unreadable-state",
                "'{path}' cannot be read (damaged, or of another version of Tacit): add {option.force} to start over",
                path=self.path,
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

    def _append(self, item: Mapping[str, object]) -> None:
        assert self._file is not None
        data = _line(item)
        try:
            write_at(self._file, self._end, data)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
            raise storage_error(error, self.path) from error
        self._end += len(data)

    def _open(self) -> None:
        try:
            self._file = open_private(self.path)
        except FileNotFoundError:
            raise BadInputError(
                "missing-state",
                "'{path}' is missing, and without it the run cannot go on with the same noise: add {option.force} to "
                "start over",
                path=self.path,
            ) from None
        except OSError as error:
            raise storage_error(error, self.path) from error
        self._lock()

    def _lock(self) -> None:
        """Two runs on one output would tear it apart; the lock goes with the process, however it ends."""
        assert self._file is not None
        if not locked(self._file):
            self.close()
            raise in_use_error(self.path.stem)

    def _remove_old(self) -> None:
        """Remove the key file of an earlier run; a run of this user that is still at work keeps its own."""
        try:
            with contextlib.suppress(NotPrivateError):
                self._file = open_private(self.path)
                self._lock()
            self.delete()
        except FileNotFoundError:
            return
        except OSError as error:
            raise storage_error(error, self.path) from error

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def delete(self) -> None:
        """Overwrite the key, and remove the file. The ends of lines stay until then, so that a run that is stopped in
        between is known to be finished (`is_left_over`)."""
        self.close()
        erase(self.path, but=b"\n")


def is_left_over(output: Path) -> bool:
    """Whether the state tells of finished blocks: beside a finished output, nothing else is left to do."""
    state = resume_path(output)
    try:
        # Nothing in it is believed: its lines are counted, and then it is removed.
        return state.is_file() and not state.is_symlink() and state.read_bytes().count(b"\n") > 1
    except OSError:
        return False


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


def public_parts(promised: Guarantee) -> dict[str, str]:
    """The content of the public files behind a promise, by the digests that its card shows: parameters name them by
    their paths alone, and a file may change while a run is stopped."""
    parts = {name: str(value) for name, value in promised.parameters.items() if name.endswith("digest")}
    if promised.metric is not None and promised.metric.fingerprint:
        parts["metric"] = promised.metric.fingerprint
    return parts


def differences(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """The differences to the run that was stopped, in words."""
    changes = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            changes += differences(old, new)
        else:
            changes.append(f"{name} was {_shown(old)} and is now {_shown(new)}")
    return changes


def in_use_error(name: str) -> OutputError:
    """The error for an output that another run is writing."""
    return OutputError("output-in-use", "another run is writing '{output}': wait for it, or stop it first", output=name)


def another_run_error(changes: Sequence[str]) -> BadInputError:
    """The hint for an unfinished output of another version or configuration."""
    return BadInputError(
        "another-run",
        "this is not the command that was stopped: {changes}. Give the same options to go on, or {option.force} to "
        "start over",
        changes="; ".join(changes),
    )


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    return ", ".join(str(item) for item in value) or "none" if isinstance(value, list) else str(value)


def _line(item: Mapping[str, object]) -> bytes:
    return json.dumps(item).encode("utf-8") + b"\n"
