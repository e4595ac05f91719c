"""The anchor of a ledger: the newest event that is known to have been there, kept beside the key.

A chain shows by itself that nothing in it was changed, but not that its end is missing: a ledger whose newest lines
were cut off, and an older copy of the file, both fit. The anchor remembers the number and seal of the newest event, on
the disk of the one who uses the ledger. Whatever ledger is opened under this name later has to hold that event.

The anchor follows the ledger and is never ahead of it: it is written after a transaction that is on the disk for
certain. It is one record of fixed length, overwritten in place by one write, so a process that is killed or a power cut
leaves the old record or the new one. Several machines that share a ledger each have their own.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import NamedTuple

from tacit.account.ledger.database import LedgerError
from tacit.account.ledger.keys import key_file

_RECORD = re.compile(rb"(\d{20}):([0-9a-f]{64}|-{64}) ([0-9a-f]{32})\n")
_NO_SEAL = "-" * 64


class Anchor(NamedTuple):
    """The number of events, the seal of the last one, and what recognizes the key that sealed it."""

    events: int
    seal: str
    key: str

    def __str__(self) -> str:
        return f"{self.events}:{self.seal}"

    def record(self) -> bytes:
        return f"{self.events:020d}:{self.seal or _NO_SEAL} {self.key}\n".encode()


class KeptAnchor:
    """The file of an anchor. Where it cannot be written (no home, a folder that may only be read), none is kept, and
    `tacit ledger verify` says so."""

    def __init__(self, ledger: str) -> None:
        try:
            self.path: Path | None = key_file(ledger).with_suffix(".anchor")
        except RuntimeError:  # nobody's home
            self.path = None

    def read(self) -> Anchor | None:
        """None if there is none; `LedgerError` for one that cannot be read."""
        if self.path is None:
            return None
        try:
            content = self.path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise LedgerError(
                "unreadable-anchor",
                "the anchor '{path}' cannot be read ({reason}): check the file",
                path=self.path,
                reason=error.strerror,
            ) from None
        return self._parsed(content) if content else None  # empty: somebody was stopped before the first record

    def _parsed(self, content: bytes) -> Anchor:
        match = _RECORD.fullmatch(content)
        if match is None:
            raise LedgerError(
                "damaged-anchor",
                "the anchor '{path}' is damaged: bring it back, or check the ledger against an anchor that was kept "
                "elsewhere and go on with 'tacit ledger accept'",
                path=self.path,
            )
        events, seal, key = (part.decode() for part in match.groups())
        return Anchor(int(events), seal.strip("-"), key)

    def advance(self, anchor: Anchor) -> None:
        """Write a later anchor. An earlier one, of another process that was overtaken, is left out."""
        self._write(anchor, only_forward=True)

    def replace(self, anchor: Anchor) -> None:
        """Write an anchor whatever was there: after a change of the key, or when an older copy was accepted."""
        self._write(anchor, only_forward=False)

    def _write(self, anchor: Anchor, *, only_forward: bool) -> None:
        if self.path is None:
            return
        with contextlib.suppress(OSError):  # `verify` reports an anchor that could not be kept
            descriptor = _opened(self.path)
            try:
                _lock(descriptor)
                before = os.read(descriptor, 4096)
                if only_forward and before:
                    known = _RECORD.fullmatch(before)
                    if known is None or (known[3].decode() == anchor.key and int(known[1]) >= anchor.events):
                        return
                os.lseek(descriptor, 0, os.SEEK_SET)
                os.write(descriptor, anchor.record())
                if len(before) != len(anchor.record()):
                    os.ftruncate(descriptor, len(anchor.record()))
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)


def _lock(descriptor: int) -> None:
    """Until the file is closed; on a system without such locks an anchor may stay behind, which is no harm."""
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)
