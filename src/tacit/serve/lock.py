"""One service per state folder, and one process per job: two services would work on the same jobs and clear away each
other's uploads, and a process that has not noticed yet that its service is gone would write beside its successor."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tacit.errors import BadInputError

SERVICE_LOCK: Final = "service.lock"
JOB_LOCK: Final = "work.lock"


class FolderLock:
    """A lock that is held until `release` or the end of the process, however that comes."""

    def __init__(self, path: Path, *, wait: bool) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            _lock(self._descriptor, wait)
        except OSError:
            self.release()
            raise

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def lock_state(folder: Path) -> FolderLock:
    """The right to be the service of a state folder."""
    try:
        return FolderLock(folder / SERVICE_LOCK, wait=False)
    except OSError:
        raise BadInputError(
            "state-folder-in-use",
            "another service uses the state folder '{folder}': stop it, or choose another state folder for this one",
            folder=folder,
        ) from None


def lock_job(folder: Path) -> FolderLock:
    """The lock of a job; waits until the process that held it before has ended."""
    return FolderLock(folder / JOB_LOCK, wait=True)


def _lock(descriptor: int, wait: bool) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        kind = msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK  # type: ignore[attr-defined]
        msvcrt.locking(descriptor, kind, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
