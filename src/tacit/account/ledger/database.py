"""SQLite or PostgreSQL behind the few calls that a ledger makes, and their refusals in one sentence.

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
from typing import Any, ClassVar, Final
from urllib.parse import unquote, urlsplit

from tacit.account.ledger.schema import MIGRATIONS, SCHEMA_VERSION, TABLES
from tacit.errors import BadInputError, TacitError, require

WAIT_SECONDS: Final = 30
POSTGRES_PREFIXES: Final = ("postgresql://", "postgres://")
MOST_ROWS: Final = 128
"""So many rows of seven values stay below the 999 values that older SQLite takes in one statement."""
SQLITE_PREFIX: Final = "sqlite:///"
Row = tuple[Any, ...]
_OF_PARENTS: list[Any] = []


class LedgerError(BadInputError):
    """The ledger cannot be used as it is."""


class Database(ABC):
    """One connection, used by one thread at a time; a process that was forked opens its own."""

    words: ClassVar[dict[str, str]]

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._connection: Any = None
        self._process = os.getpid()
        self._in_transaction = False

    @property
    @abstractmethod
    def name(self) -> str:
        """How messages call it: never with a password."""

    @abstractmethod
    def exists(self) -> bool: ...

    @abstractmethod
    def _connect(self) -> Any: ...

    @abstractmethod
    def _begin(self, connection: Any, lasting: bool) -> None: ...

    @abstractmethod
    def _has_tables(self) -> bool: ...

    @abstractmethod
    def sentence(self, error: Exception) -> TacitError | None:
        """The error of the library as one that a user can act on."""

    @property
    def connection(self) -> Any:
        if self._in_transaction:
            return self._connection  # never another one in the middle, whatever happened to it
        if self._connection is None or not self._is_alive():
            self._connection = self._connect()
        return self._connection

    def _is_alive(self) -> bool:
        return True

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
            found = self.sentence(error)
            if found is None:
                raise
            raise found from None

    @contextlib.contextmanager
    def writing(self, *, lasting: bool = True) -> Iterator[None]:
        """The only write transaction at its time; all of it, or nothing when an exception leaves it.

        lasting   whether it has to be on the disk at the end, whatever happens to the machine; otherwise it may be lost
                  in a power cut (not when a process dies), and it is written with the next one that is lasting
        """
        with self.speaking(), self._alone():
            connection = self.connection
            self._in_transaction = True
            try:
                self._begin(connection, lasting)
                yield
                connection.execute("COMMIT")
            except BaseException:
                self._end("ROLLBACK")
                raise
            finally:
                self._in_transaction = False

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """All queries inside see the same moment."""
        with self.speaking(), self._alone():
            self.connection.execute(self.words["begin reading"])
            self._in_transaction = True
            try:
                yield
            finally:
                self._end("ROLLBACK")
                self._in_transaction = False

    def _end(self, statement: str) -> None:
        with contextlib.suppress(Exception):
            self._connection.execute(statement)

    # Queries --------------------------------------------------------------------------------------------------

    def run(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self.connection.execute(self._spelled(statement), values)

    def all(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return [tuple(row) for row in self.run(statement, values).fetchall()]

    def one(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        row = self.run(statement, values).fetchone()
        return None if row is None else tuple(row)

    @abstractmethod
    def stream(self, statement: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """Rows one after the other, however many there are."""

    @abstractmethod
    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
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
        row = self.one("SELECT value FROM meta WHERE name = ?", ("schema",))
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
                    f"{self.name} was written by a newer Tacit (tables of version {version}, this one knows {target}): "
                    "update Tacit"
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

    @property
    def name(self) -> str:
        return f"the ledger '{self.path}'"

    def exists(self) -> bool:
        return self.path.exists() and (self.path.is_dir() or self.path.stat().st_size > 0)

    def _connect(self) -> Any:
        if self.path.is_dir():
            raise LedgerError(f"'{self.path}' is a folder: give the name of a file in it")
        if not self.path.parent.is_dir():
            raise LedgerError(f"the folder '{self.path.parent}' does not exist: make it first")
        new = not self.path.exists()
        if new:
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
        return connection

    def _begin(self, connection: Any, lasting: bool) -> None:
        connection.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")

    def _has_tables(self) -> bool:
        names = {row[0] for row in self.all("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if names and not {"meta", "chain", "balances"} <= names:
            raise LedgerError(f"'{self.path}' is a database, but not a ledger of Tacit: give another file")
        return bool(names)

    def stream(self, statement: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        yield from self.run(statement, values)

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
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
            return LedgerError(f"{self.name} cannot be opened ({error.strerror}): check the file and its folder")
        if not isinstance(error, sqlite3.Error):
            return None
        text = str(error).lower()
        for sign, advice in _SQLITE_ADVICE:
            if sign in text:
                return LedgerError(f"{self.name} {advice}")
        if isinstance(error, sqlite3.OperationalError | sqlite3.DatabaseError) and not isinstance(
            error, sqlite3.IntegrityError | sqlite3.ProgrammingError
        ):
            return LedgerError(f"{self.name} cannot be used ({text}): check the file, or take a copy of it from before")
        return None


@cache
def _repeated(statement: str, columns: int, rows: int) -> str:
    """An INSERT of one row as an INSERT of several."""
    one = f"({', '.join('?' * columns)})"
    before, found, after = statement.partition(one)
    if not found:
        raise ValueError(f"no row of {columns} values in: {statement}")
    return before + ", ".join([one] * rows) + after


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


# PostgreSQL ---------------------------------------------------------------------------------------------------------


class Postgres(Database):
    """All tables lie in the schema `tacit_ledger` of the database that the URL names."""

    words: ClassVar[dict[str, str]] = {
        "blob": "BYTEA",
        "real": "DOUBLE PRECISION",
        "big": "BIGINT",
        "clustered": "",
        "begin reading": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    }

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        require("psycopg", extra="ledger", purpose="a ledger in PostgreSQL")

    @property
    def name(self) -> str:
        return f"the ledger in the PostgreSQL database '{unquote(urlsplit(self._url).path.lstrip('/'))}'"

    def exists(self) -> bool:
        with self.speaking():
            return self._has_tables()

    def _is_alive(self) -> bool:
        return not self._connection.closed  # the server may have gone away in between

    def _connect(self) -> Any:
        import psycopg

        connection = psycopg.connect(self._url, autocommit=True, connect_timeout=WAIT_SECONDS)
        connection.execute(f"SET lock_timeout = '{WAIT_SECONDS}s'")
        connection.execute("SET search_path TO tacit_ledger")
        connection.execute("SET synchronous_commit = on")
        return connection

    def _begin(self, connection: Any, lasting: bool) -> None:
        connection.execute("BEGIN")
        if not lasting:
            connection.execute("SET LOCAL synchronous_commit = off")
        # One lock for the whole ledger, held until the end of the transaction, also before there is any table.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('tacit ledger'))")

    def _has_tables(self) -> bool:
        row = self.connection.execute("SELECT to_regclass('tacit_ledger.meta')").fetchone()
        return row is not None and row[0] is not None

    def make_tables(self) -> None:
        self.run("CREATE SCHEMA IF NOT EXISTS tacit_ledger")
        super().make_tables()

    def stream(self, statement: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        with self.connection.cursor(name="tacit_stream") as cursor:
            cursor.itersize = 10_000
            cursor.execute(self._spelled(statement), values)
            yield from cursor

    def many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        with self.connection.cursor() as cursor:
            cursor.executemany(self._spelled(statement), rows)

    def where_in(self, statement: str, values: Sequence[bytes]) -> Iterator[Row]:
        yield from self.connection.execute(self._spelled(f"{statement} = ANY(?)"), (list(values),))

    def _spelled(self, statement: str) -> str:
        return statement.replace("?", "%s")

    def sentence(self, error: Exception) -> TacitError | None:
        import psycopg

        if not isinstance(error, psycopg.Error):
            return None
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return LedgerError(
                f"{self.name} is locked: another program has held it for {WAIT_SECONDS} seconds; try again when it "
                "is done"
            )
        if isinstance(error, psycopg.errors.InsufficientPrivilege | psycopg.errors.ReadOnlySqlTransaction):
            return LedgerError(f"{self.name} may not be written by this user: grant it the right, or use another")
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
            return LedgerError(f"{self.name} is damaged, a table or column is missing: restore it from a backup")
        if isinstance(error, psycopg.DataError):
            return BadInputError("a name cannot be stored in PostgreSQL: leave out its control characters")
        if isinstance(error, psycopg.OperationalError):
            return LedgerError(
                f"{self.name} cannot be reached: check that the server runs, and the name and password in the URL"
            )
        return None


def open_database(place: str | os.PathLike[str]) -> Database:
    """By the look of the URL; anything else is the path of an SQLite file."""
    text = os.fspath(place)
    if text.startswith(POSTGRES_PREFIXES):
        return Postgres(text)
    if text.startswith(SQLITE_PREFIX):
        text = text.removeprefix(SQLITE_PREFIX)
    elif "://" in text:
        raise LedgerError("a ledger is a file, sqlite:///FILE, or postgresql://USER@HOST/DATABASE")
    if not text:
        raise LedgerError("give the name of a ledger file, or postgresql://USER@HOST/DATABASE")
    return Sqlite(Path(text))
