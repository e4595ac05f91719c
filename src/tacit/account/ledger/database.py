"""A database behind the few calls that a ledger makes, and its refusals in one sentence: SQLite here, PostgreSQL next
door.

A write transaction is the only one at its time, in both: SQLite by `BEGIN IMMEDIATE` (write-ahead log, every commit
on the disk before it counts), PostgreSQL by an advisory lock. So what it reads cannot change under it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, cast

from tacit.account.ledger.schema import MIGRATIONS, SCHEMA_VERSION, TABLES
from tacit.errors import BadInputError, TacitError

WAIT_SECONDS: Final = 30
POSTGRES_PREFIXES: Final = ("postgresql://", "postgres://")
MOST_ROWS: Final = 128
"""So many rows of seven values stay below the 999 values that older SQLite takes in one statement."""
SQLITE_PREFIX: Final = "sqlite:///"
Row = tuple[Any, ...]


class Cursor(Protocol):
    """The rows that a statement gives, as any library of the DB-API has them."""

    @property
    def rowcount(self) -> int: ...

    def fetchall(self) -> list[Row]: ...

    def fetchone(self) -> Row | None: ...

    def __iter__(self) -> Iterator[Row]: ...


class Connection(Protocol):
    """What SQLite and PostgreSQL both have."""

    def execute(self, statement: str, values: Sequence[object] = ..., /) -> Cursor: ...

    def close(self) -> None: ...


_OF_PARENTS: list[Connection | None] = []


class LedgerError(BadInputError):
    """The ledger cannot be used as it is."""


class MissingLedgerError(LedgerError):
    """There is no ledger, and none may be made. `place` is how messages call it."""

    def __init__(self, place: str) -> None:
        super().__init__(
            "no-such-ledger",
            "{place} does not exist: check the name, or make it with 'tacit rewrite' ({option.ledger}) or 'tacit "
            "ledger limit'",
            place=place,
        )
        self.place = place


class Database(ABC):
    """One connection, used by one thread at a time; a process that was forked opens its own."""

    words: ClassVar[dict[str, str]]

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._process = os.getpid()
        self._in_transaction = False

    @property
    @abstractmethod
    def name(self) -> str:
        """How messages call it: never with a password."""

    @abstractmethod
    def exists(self) -> bool: ...

    @abstractmethod
    def _connect(self) -> Connection: ...

    @abstractmethod
    def _begin(self, connection: Connection, lasting: bool) -> None: ...

    @abstractmethod
    def _abandon(self, connection: Connection) -> None:
        """Take back what was not committed; raise if the connection is not as new afterwards."""

    @abstractmethod
    def _has_tables(self) -> bool: ...

    @abstractmethod
    def scrub(self) -> None:
        """Overwrite what deleted and replaced rows have left behind in the files of the database."""

    @abstractmethod
    def sentence(self, error: Exception) -> TacitError | None:
        """The error of the library as one that a user can act on."""

    @property
    def connection(self) -> Connection:
        if self._in_transaction:
            assert self._connection is not None
            return self._connection  # never another one in the middle, whatever happened to it
        if self._connection is None or not self._is_alive():
            self._connection = self._connect()
        return self._connection

    def _is_alive(self) -> bool:
        return True

    @abstractmethod
    def _check_place(self) -> None:
        """Raise if the open connection no longer leads to what lies at the place of the ledger."""

    def close(self) -> None:
        with self._alone():
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time; after a fork, with nothing of the parent."""
        if self._process != os.getpid():
            # Closing the parent's connection here would disturb the parent, so it is only put aside.
            _OF_PARENTS.append(self._connection)
            self._connection, self._in_transaction, self._lock = None, False, threading.RLock()
            self._process = os.getpid()
        with self._lock:
            yield

    # Transactions ---------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def speaking(self) -> Iterator[None]:
        """Errors of the library become sentences."""
        try:
            yield
        except TacitError:
            raise
        except Exception as error:
            readable = self.sentence(error)
            if readable is None:
                raise
            raise readable from None

    @contextlib.contextmanager
    def writing(self, *, lasting: bool = True) -> Iterator[None]:
        """The only write transaction at its time; all of it, or nothing when an exception leaves it.

        lasting   whether it has to be on the disk at the end, whatever happens to the machine; otherwise it may be lost
                  in a power cut (not when a process dies), and it is written with the next one that is lasting
        """
        with self.speaking(), self._alone():
            connection = self.connection
            self._check_place()
            self._in_transaction = True
            try:
                self._begin(connection, lasting)
                yield
                connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            finally:
                self._in_transaction = False

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """All queries inside see the same moment."""
        with self.speaking(), self._alone():
            connection = self.connection
            self._check_place()
            self._in_transaction = True
            try:
                connection.execute(self.words["begin reading"])
                yield
            finally:
                self._roll_back()
                self._in_transaction = False

    def _roll_back(self) -> None:
        """End the transaction. A connection of which it is not certain that this worked is never used again: the next
        transaction would begin inside of this one, or find the connection dead for ever."""
        connection = self._connection
        if connection is None:
            return
        try:
            self._abandon(connection)
        except Exception:
            with contextlib.suppress(Exception):
                connection.close()
            self._connection = None

    # Queries --------------------------------------------------------------------------------------------------

    def run(self, statement: str, values: Sequence[object] = ()) -> Cursor:
        return self.connection.execute(self._spelled(statement), values)

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        return [tuple(row) for row in self.run(statement, values).fetchall()]

    def first_row(self, statement: str, values: Sequence[object] = ()) -> Row | None:
        row = self.run(statement, values).fetchone()
        return None if row is None else tuple(row)

    @abstractmethod
    def stream(self, statement: str, values: Sequence[object] = ()) -> Iterator[Row]:
        """Rows one after the other, however many there are."""

    @abstractmethod
    def many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """The same statement for many rows."""

    @abstractmethod
    def where_in(self, statement: str, values: Sequence[bytes]) -> Iterator[Row]:
        """`statement` ends before `IN`; the rows for all values."""

    def _spelled(self, statement: str) -> str:
        return statement

    # Tables ---------------------------------------------------------------------------------------------------

    def version(self) -> int | None:
        """The version of the tables; None in an empty database."""
        if not self._has_tables():
            return None
        row = self.first_row("SELECT value FROM meta WHERE name = ?", ("schema",))
        return None if row is None else int(row[0])

    def make_tables(self) -> None:
        for statement in TABLES:
            self.run(statement.format(**self.words))
        self.run("INSERT INTO meta (name, value) VALUES (?, ?)", ("schema", str(SCHEMA_VERSION)))

    def migrate(self, migrations: dict[int, tuple[str, ...]] = MIGRATIONS, target: int = SCHEMA_VERSION) -> None:
        """Step by step to this version, all in one transaction; a newer one is left alone."""
        with self.writing():
            version = self.version()
            if version is None or version > target:
                raise LedgerError(
                    "ledger-of-newer-version",
                    "{name} was written by a newer Tacit (tables of version {version}, this one knows {target}): "
                    "update Tacit",
                    name=self.name,
                    version=version,
                    target=target,
                )
            for step in range(version, target):
                for statement in migrations[step]:
                    self.run(statement.format(**self.words))
            self.run("UPDATE meta SET value = ? WHERE name = ?", (str(target), "schema"))


# SQLite -------------------------------------------------------------------------------------------------------------


class Sqlite(Database):
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
        """Which file lies at the path; None if there is none, or nothing in it."""
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


def open_database(place: str | os.PathLike[str]) -> Database:
    """By the look of the URL; anything else is the path of an SQLite file."""
    text = os.fspath(place)
    if text.startswith(POSTGRES_PREFIXES):
        from tacit.account.ledger.postgres import Postgres

        return Postgres(text)
    if text.startswith(SQLITE_PREFIX):
        text = text.removeprefix(SQLITE_PREFIX)
    elif "://" in text:
        raise LedgerError("bad-ledger-place", "a ledger is a file, sqlite:///FILE, or postgresql://USER@HOST/DATABASE")
    if not text:
        raise LedgerError("bad-ledger-place", "give the name of a ledger file, or postgresql://USER@HOST/DATABASE")
    return Sqlite(Path(text))
