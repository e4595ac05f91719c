"""`OUTPUT.resume` of a job that draws over and over from one secret key: the key, and all that was drawn already.

The first line holds the key and what the run was about; one line follows for every finished piece. After a crash no
piece is drawn twice: finished ones are read from the file, and others get the noise that they would have had. The file
is as secret as the records: made for its owner alone, and overwritten when the output is there
(`tacit.noise.kept_key`).
"""

from __future__ import annotations

import io
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tacit.engines.resume import differences, in_use_error, locked, resume_path
from tacit.errors import BadInputError
from tacit.noise.kept_key import create_private, erase, open_private
from tacit.noise.source import KEY_BYTES, StreamKey, seed_key
from tacit.text.files import storage_error, write_at

VERSION: Final = 2


class KeyedDraft:
    """The key of a run and its finished pieces.

    pieces   what was drawn before, in order
    token    the name of the run in a ledger: a run that goes on is charged once
    """

    def __init__(self, output: Path, about: Mapping[str, object], *, resume: bool, seed: int | None) -> None:
        self.path = resume_path(output)
        self.pieces: list[dict[str, Any]] = []
        self._about = json.loads(json.dumps(dict(about)))
        self._file: io.FileIO
        self._end = 0
        if resume and self.path.exists():
            self._load()
        else:
            self._create(seed)

    @property
    def key(self) -> StreamKey:
        return StreamKey(bytes.fromhex(self._header["key"]), secure=bool(self._header["secure"]))

    @property
    def token(self) -> str:
        return str(self._header["token"])

    def known_records(self, digest: str) -> None:
        """Refuse to go on with other rows than those that the run began with."""
        if not self.pieces:
            self.add({"records": digest})
        elif self.pieces[0].get("records") != digest:
            self.close()
            raise BadInputError(
                "other-rows",
                "the rows are not those that the stopped run '{path}' has read: give the same files, or start "
                "over with {option.force}, which spends the budget again",
                path=self.path,
            )

    def known_plan(self, plan: object) -> None:
        """Refuse to go on by another plan than the one that the run began with, as another version might make it.

        In other batches a record would be read a second time, beyond its price.
        """
        written = json.loads(json.dumps(plan))
        before = [piece["plan"] for piece in self.pieces if "plan" in piece]
        if not before:
            self.add({"plan": written})
        elif before[0] != written:
            self.close()
            raise BadInputError(
                "other-plan",
                "the stopped run '{path}' was planned by another version of Tacit: go on with that version, or start "
                "over with {option.force}, which spends the budget again",
                path=self.path,
            )

    def add(self, piece: Mapping[str, object]) -> None:
        """Write down a finished piece."""
        self._append(piece)
        self.pieces.append(dict(piece))

    def close(self) -> None:
        self._file.close()

    def delete(self) -> None:
        """Overwrite the key and remove the file."""
        self.close()
        erase(self.path)

    def _create(self, seed: int | None) -> None:
        if self.path.exists():
            raise BadInputError(
                "unfinished-run",
                "'{path}' is left of a run that was stopped: go on with {option.resume}, or start over with "
                "{option.force}, which spends the budget again",
                path=self.path,
            )
        key = secrets.token_bytes(KEY_BYTES) if seed is None else seed_key(seed)
        header = {"key": key.hex(), "secure": seed is None, "token": secrets.token_hex(16), "about": self._about}
        self._header: dict[str, Any] = {"tacit": VERSION, **header}
        try:
            self._file = create_private(self.path)
        except OSError as error:
            raise storage_error(error, self.path) from error
        self._lock()
        self._append(self._header)

    def _load(self) -> None:
        self._file = open_private(self.path)
        self._lock()
        data = self._file.readall() or b""
        complete = data[: data.rfind(b"\n") + 1]  # a last line that a crash has cut off is not there
        try:
            self._header, *self.pieces = [json.loads(line) for line in complete.splitlines()]
            if self._header["tacit"] != VERSION or not any(self.key.key):
                raise ValueError
        except (ValueError, KeyError, TypeError):
            self.close()
            raise BadInputError(
                "unreadable-state",
                "'{path}' cannot be read (damaged, or of another version of Tacit): add {option.force} to start over",
                path=self.path,
            ) from None
        if changes := differences(self._header["about"], self._about):
            self.close()
            raise BadInputError(
                "another-run",
                "'{path}' is of a run with other options ({changes}): repeat them, or start over with {option.force}, "
                "which spends the budget again",
                path=self.path,
                changes="; ".join(changes),
            )
        self._end = len(complete)
        self._file.truncate(self._end)

    def _lock(self) -> None:
        if not locked(self._file):
            self.close()
            raise in_use_error(self.path.stem)

    def _append(self, item: Mapping[str, object]) -> None:
        data = json.dumps(item).encode() + b"\n"
        try:
            write_at(self._file, self._end, data)
        except OSError as error:
            raise storage_error(error, self.path) from error
        self._end += len(data)


def remove_draft(output: Path) -> None:
    """Forget a stopped run."""
    erase(resume_path(output))
