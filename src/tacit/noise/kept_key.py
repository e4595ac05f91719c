"""Files that hold the key of unfinished noise.

Whoever knows the key of a run and guesses a text can test the guess against the output, so a key must come from this
user's own run and be known to nobody else. A file is trusted with a key only if

    made       this process made it, under a name that was free, for its owner alone; or
    found      it is a file of its own (no link was followed to it) that belongs to this user, and nobody else may read
               or write it

which is looked at on the open file, so that nothing can be exchanged in between. A key is written once. When it is no
longer needed its bytes are overwritten in place before the name is removed. What may remain all the same: copies that a
file system with snapshots, a journal of data or a disk that spreads its writes keeps below the file, and backups.

On systems without owners and modes (Windows) only the exclusive making and the overwriting hold.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tacit.errors import BadInputError

_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT: Final = getattr(os, "O_NONBLOCK", 0)
"""A planted pipe would otherwise keep us waiting for a writer."""


class NotPrivateError(BadInputError):
    """A file or folder that somebody else can have planted or read."""


def create_private(path: Path) -> io.FileIO:
    """A new empty file for its owner alone. FileExistsError where the name is taken, by whatever it is."""
    return io.FileIO(path, "x+", opener=lambda name, flags: os.open(name, flags | _NO_LINK, 0o600))


def open_private(path: Path) -> io.FileIO:
    """An existing file, for reading and writing, if this user alone can have written and read it."""
    try:
        file = io.FileIO(path, "r+", opener=lambda name, flags: os.open(name, flags | _NO_LINK | _NO_WAIT))
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise _refusal(path, "it is a link") from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENXIO):
            raise _refusal(path, "it is not a file of yours") from None
        raise
    try:
        _check(path, os.fstat(file.fileno()), stat.S_ISREG)
    except BaseException:
        file.close()
        raise
    return file


def check_private_folder(path: Path) -> None:
    """Refuse a folder that belongs to somebody else, that others may enter, or that is a link."""
    _check(path, os.lstat(path), stat.S_ISDIR)


def erase(path: Path, *, but: bytes = b"") -> None:
    """Overwrite a file of this user in place, all bytes `but` these, and remove its name. What is not this user's own
    file is not written to; only its name is removed."""
    with contextlib.suppress(NotPrivateError, FileNotFoundError), open_private(path) as file:
        blank = bytes(byte if byte in but else 0 for byte in file.readall() or b"")
        file.seek(0)
        remaining = memoryview(blank)
        while remaining:
            remaining = remaining[file.write(remaining) :]
        os.fsync(file.fileno())
    path.unlink(missing_ok=True)


def keep_key(path: Path, key: bytes) -> None:
    """Store a key in a new file, once, down to the disk."""
    with create_private(path) as file:
        file.write(key)
        os.fsync(file.fileno())


def kept_key(path: Path, size: int) -> bytes:
    """The key in a file, or why it cannot be trusted."""
    with open_private(path) as file:
        key = file.read(size + 1) or b""
    if len(key) != size or not any(key):
        raise BadInputError(
            "noise-key-missing",
            "'{path}' holds no key any more: start over, because no other noise may be drawn for it",
            path=path,
        )
    return key


def _check(path: Path, status: os.stat_result, is_kind: Callable[[int], bool]) -> None:
    if not is_kind(status.st_mode):
        raise _refusal(path, "it is a link, a pipe or something else")
    if not hasattr(os, "geteuid"):
        return
    if status.st_uid != os.geteuid():
        raise _refusal(path, "it belongs to another user")
    if status.st_mode & 0o077:
        raise _refusal(path, f"others may read or write it (mode {stat.S_IMODE(status.st_mode):03o})")


def _refusal(path: Path, reason: str) -> NotPrivateError:
    return NotPrivateError(
        "key-not-private",
        "'{path}' would give the key of the noise, but {reason}, so somebody else may know that key: throw the "
        "unfinished run away and start over, in a folder where only you can write",
        path=path,
        reason=reason,
    )
