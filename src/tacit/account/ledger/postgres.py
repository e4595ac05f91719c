"""A ledger in PostgreSQL.

A write transaction is READ COMMITTED, said explicitly because a server can have another default: it waits for the
advisory lock in its first query, and under REPEATABLE READ all its later queries would see the ledger as it was
*before* the wait, without what the others have spent meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast
from urllib.parse import unquote, urlsplit

from tacit.account.ledger.database import WAIT_SECONDS, Connection, Database, LedgerError, Row
from tacit.account.ledger.schema import TABLE_NAMES
from tacit.errors import BadInputError, TacitError, require

if TYPE_CHECKING:
    import psycopg

CONNECTION: Final = {
    "connect_timeout": WAIT_SECONDS,
    "keepalives_idle": WAIT_SECONDS,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 1000 * WAIT_SECONDS,
}
"""A line that is cut without a word (a firewall that forgets it) is noticed within a minute, not in hours."""


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
        return not cast("psycopg.Connection", self._connection).closed  # the server may have gone away in between

    def _check_place(self) -> None:
        """A server that was replaced has ended its connections."""

    @property
    def _postgres(self) -> psycopg.Connection:
        """The connection, with what only PostgreSQL has."""
        return cast("psycopg.Connection", self.connection)

    def _connect(self) -> Connection:
        import psycopg

        in_address = psycopg.conninfo.conninfo_to_dict(self._url)
        settings: dict[str, Any] = {name: value for name, value in CONNECTION.items() if name not in in_address}
        connection = psycopg.connect(self._url, autocommit=True, **settings)
        connection.execute(f"SET lock_timeout = '{WAIT_SECONDS}s'")
        connection.execute("SET search_path TO tacit_ledger")
        connection.execute("SET synchronous_commit = on")
        return connection

    def _begin(self, connection: Connection, lasting: bool) -> None:
        connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        if not lasting:
            connection.execute("SET LOCAL synchronous_commit = off")
        # One lock for the whole ledger, held until the end of the transaction, also before there is any table.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('tacit ledger'))")

    def _abandon(self, connection: Connection) -> None:
        import psycopg

        connection.execute("ROLLBACK")
        if cast("psycopg.Connection", connection).info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            raise psycopg.OperationalError("the transaction did not end")

    def scrub(self) -> None:
        with self.speaking(), self._alone():
            for table in TABLE_NAMES:
                self.connection.execute(f"VACUUM FULL {table}")

    def _has_tables(self) -> bool:
        row = self.connection.execute("SELECT to_regclass('tacit_ledger.meta')").fetchone()
        return row is not None and row[0] is not None

    def make_tables(self) -> None:
        self.run("CREATE SCHEMA IF NOT EXISTS tacit_ledger")
        super().make_tables()

    def stream(self, statement: str, values: Sequence[object] = ()) -> Iterator[Row]:
        with self._postgres.cursor(name="tacit_stream") as cursor:
            cursor.itersize = 10_000
            cursor.execute(self._spelled(statement), values)
            yield from cursor

    def many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        with self._postgres.cursor() as cursor:
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
                "ledger-locked",
                "{name} is locked: another program has held it for {wait_seconds} seconds; try again when it is done",
                name=self.name,
                wait_seconds=WAIT_SECONDS,
            )
        if isinstance(error, psycopg.errors.InsufficientPrivilege | psycopg.errors.ReadOnlySqlTransaction):
            return LedgerError(
                "ledger-not-writable",
                "{name} may not be written by this user: grant it the right, or use another",
                name=self.name,
            )
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
            return LedgerError(
                "damaged-ledger",
                "{name} is damaged, a table or column is missing: restore it from a backup",
                name=self.name,
            )
        if isinstance(error, psycopg.DataError):
            return BadInputError(
                "control-character-in-name", "a name cannot be stored in PostgreSQL: leave out its control characters"
            )
        if isinstance(error, psycopg.OperationalError):
            return LedgerError(
                "ledger-server-not-reached",
                "{name} cannot be reached: check that the server runs, and the name and password in the URL",
                name=self.name,
            )
        return None
