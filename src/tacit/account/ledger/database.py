"""A database behind the few calls that a ledger makes, and its refusals in one sentence: `sqlite` and `postgres` are
the two kinds.

A write transaction is the only one at its time, in both: SQLite by `BEGIN IMMEDIATE` (write-ahead log, every commit
on the disk before it counts), PostgreSQL by an advisory lock. So what it reads cannot change under it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final, Protocol

from tacit.account.ledger.schema import MIGRATIONS, SCHEMA_VERSION, TABLES
from tacit.errors import BadInputError, TacitError

WAIT_SECONDS: Final = 30
Row = tuple[Any, ...]


class Cursor(Protocol):
    """The rows that a statement gives, as any library of the DB-API has them."""

    @property
    def rowcount(self) -> int: ...

    def fetchall(self) -> list[Row]: ...

    def fetchone(self) -> Row | None: ...

    def __iter__(self) -> Iterator[Row]: ...


class Connection(Protocol):
    """A connection, with the calls that SQLite and PostgreSQL share."""

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
        """The name of the ledger in messages, never with a password."""

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
