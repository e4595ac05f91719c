"""The file that lets long public work go on after it was interrupted: one line of JSON for each piece that is done.

The first line says what the work is, such as the digest of a sketch, those of the pools, and the settings: the record
of other work is never continued. Names of files hold a key of that line, so none is overwritten either. A last line
that was cut off by a crash does not count. What goes in here is public or was released, so the file is no secret.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.text.files.partial import storage_error

VERSION = 1


def record_key(facts: Mapping[str, Any]) -> str:
    """By which a piece of work is known."""
    return hashlib.sha256(_head(facts)).hexdigest()[:16]


def _head(facts: Mapping[str, Any]) -> bytes:
    return json.dumps({"version": VERSION, **facts}, sort_keys=True, ensure_ascii=False).encode("utf-8")


class WorkRecord:
    """The finished pieces of some work, by their names; kept in a file, or in memory without one."""

    def __init__(self, path: Path | None, facts: Mapping[str, Any]) -> None:
        self.path = path
        self._done: dict[str, Any] = {}
        if path is not None:
            self._begin(path, facts)

    def _begin(self, path: Path, facts: Mapping[str, Any]) -> None:
        try:
            lines = path.read_bytes().split(b"\n") if path.exists() else []
            complete = lines[:-1]  # what follows the last line break was not finished
            head = _head(facts)
            if not complete or complete[0] != head:
                path.write_bytes(head + b"\n")
                return
            for line in complete[1:]:
                entry = json.loads(line)
                self._done[entry["work"]] = entry["result"]
            if lines[-1]:
                path.write_bytes(b"\n".join(complete) + b"\n")
        except OSError as error:
            raise storage_error(error, path) from error

    def done(self, work: str) -> Any | None:
        """The result of a piece of work that is done, or None."""
        return self._done.get(work)

    def add(self, work: str, result: Any) -> None:
        """Keep a result, on the disk before this returns."""
        self._done[work] = result
        if self.path is None:
            return
        line = json.dumps({"work": work, "result": result}, ensure_ascii=False).encode("utf-8") + b"\n"
        try:
            with self.path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise storage_error(error, self.path) from error
