"""A ledger in an SQLite file: a write-ahead log, every commit on the disk before it counts."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar, Final, cast

from tacit.account.ledger.database import WAIT_SECONDS, Connection, Database, LedgerError, Row
from tacit.errors import TacitError

MOST_ROWS: Final = 128
"""So many rows of seven values stay below the 999 values that older SQLite takes in one statement."""


class Sqlite(Database):
    """A ledger in a file."""

    words: ClassVar[dict[str, str]] = {
        "blob": "BLOB",
        "real": "REAL",
        "big": "INTEGER",
        "clustered": " WITHOUT ROWID",
        "begin reading": "BEGIN",
    }

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self._file: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        return f"the ledger '{self.path}'"

    def exists(self) -> bool:
        return self.path.exists() and (self.path.is_dir() or self.path.stat().st_size > 0)

    def _connect(self) -> Connection:
        if self.path.is_dir():
            raise LedgerError("is-a-folder", "'{path}' is a folder: give the name of a file in it", path=self.path)
        if not self.path.parent.is_dir():
            raise LedgerError(
                "no-such-folder", "the folder '{folder}' does not exist: make it first", folder=self.path.parent
            )
        if self._file is not None and self._identity() is None:
            raise self._gone()  # never a new, empty one in its place
        if not self.path.exists():
            # Made by hand, so that nobody else can read who is in it, whatever the umask says.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = sqlite3.connect(
            self.path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        connection.execute(f"PRAGMA busy_timeout = {WAIT_SECONDS * 1000}")
        with contextlib.suppress(sqlite3.OperationalError):  # a file that may only be read keeps its mode
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        self._file = self._identity()  # the log mode has been written, so it is not empty any more
        return connection

    def _identity(self) -> tuple[int, int] | None:
        """The identity of the file at the path; None if there is none, or nothing in it."""
        try:
            facts = self.path.stat()
        except FileNotFoundError:
            return None
        return (facts.st_dev, facts.st_ino) if facts.st_size else None

    def _check_place(self) -> None:
        if self._identity() != self._file:
            # An open connection goes on with a file that was removed: what it writes there, nobody will find again.
            self.close()
            raise self._gone()

    def _gone(self) -> LedgerError:
        return LedgerError(
            "ledger-replaced",
            "{name} was removed, emptied or replaced while it was in use: bring the file back",
            name=self.name,
        )

    def _begin(self, connection: Connection, lasting: bool) -> None:
        connection.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")

    def _abandon(self, connection: Connection) -> None:
        if cast("sqlite3.Connection", connection).in_transaction:
            connection.execute("ROLLBACK")

    def scrub(self) -> None:
        with self.speaking(), self._alone():
            self.connection.execute("PRAGMA secure_delete = ON")
            self.connection.execute("VACUUM")
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _has_tables(self) -> bool:
        names = {row[0] for row in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if names and not {"meta", "chain", "balances"} <= names:
            raise LedgerError(
                "not-a-ledger", "'{path}' is a database, but not a ledger of Tacit: give another file", path=self.path
            )
        return bool(names)

    def stream(self, statement: str, values: Sequence[object] = ()) -> Iterator[Row]:
        yield from self.run(statement, values)

    def many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """Several rows at a step: between two steps a busy service would give the interpreter to another thread and
        wait to get it back. Powers of two, so that few different statements have to be remembered."""
        start = 0
        while start < len(rows):
            count = min(MOST_ROWS, 1 << (len(rows) - start).bit_length() - 1)
            part = rows[start : start + count]
            values = [value for row in part for value in row]
            self.connection.execute(_repeated(statement, len(part[0]), count), values)
            start += count

    def where_in(self, statement: str, values: Sequence[bytes]) -> Iterator[Row]:
        for start in range(0, len(values), 500):
            part = values[start : start + 500]
            marks = ", ".join("?" * len(part))
            yield from self.run(f"{statement} IN ({marks})", part)

    def sentence(self, error: Exception) -> TacitError | None:
        if isinstance(error, OSError):
            return LedgerError(
                "ledger-cannot-be-opened",
                "{name} cannot be opened ({reason}): check the file and its folder",
                name=self.name,
                reason=error.strerror,
            )
        if not isinstance(error, sqlite3.Error):
            return None
        text = str(error).lower()
        for sign, advice in _SQLITE_ADVICE:
            if sign in text:
                return LedgerError("ledger-refused", "{name} {advice}", name=self.name, advice=advice)
        if isinstance(error, sqlite3.OperationalError | sqlite3.DatabaseError) and not isinstance(
            error, sqlite3.IntegrityError | sqlite3.ProgrammingError
        ):
            return LedgerError(
                "ledger-refused",
                "{name} cannot be used ({text}): check the file, or take a copy of it from before",
                name=self.name,
                text=text,
            )
        return None


@cache
def _repeated(statement: str, columns: int, rows: int) -> str:
    """An INSERT of one row as an INSERT of several."""
    row = f"({', '.join('?' * columns)})"
    before, separator, after = statement.partition(row)
    if not separator:
        raise ValueError(f"no row of {columns} values in: {statement}")
    return before + ", ".join([row] * rows) + after


_SQLITE_ADVICE: Final = (
    ("locked", f"is locked: another program has held it for {WAIT_SECONDS} seconds; try again when it is done"),
    ("readonly", "may only be read: make the file and its folder writable"),
    ("unable to open", "cannot be opened: check that the file may be read and its folder written"),
    ("full", "cannot grow, the disk is full: free some space; nothing was counted or released"),
    ("not a database", "is not a ledger, or is damaged: give another file, or a copy of it from before"),
    ("malformed", "is damaged: take a copy of it from before, and keep this one"),
    ("no such table", "is damaged, a table is missing: take a copy of it from before, and keep this one"),
    ("no such column", "is damaged, a column is missing: take a copy of it from before, and keep this one"),
)
