"""One service per state folder: two would work on the same jobs and clear away each other's uploads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tacit.errors import BadInputError

LOCK_NAME: Final = "service.lock"


class StateLock:
    """A lock that is held until `release` or the end of the process, however that comes."""

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK_NAME
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            _lock(self._descriptor)
        except OSError:
            self.release()
            raise BadInputError(
                f"another service uses the state folder '{folder}': stop it, or give this one a folder of its own with "
                "--state"
            ) from None

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
