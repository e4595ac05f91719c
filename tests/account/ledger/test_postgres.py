"""What only PostgreSQL can do: lose a connection in the middle, and have an isolation that lets two overspend."""

from __future__ import annotations

import threading
import uuid
from typing import Any
from urllib.parse import urlsplit

import pytest

from tacit.account.ledger import Ledger, LedgerError, Subject, open_ledger

from .conftest import KEY, pure

A = Subject("document", "a")
END_OWN_CONNECTION = "SELECT pg_terminate_backend(pg_backend_pid()) WHERE ? = ?"


@pytest.fixture
def own_database(postgres: str) -> str:
    import psycopg

    name = f"tacit_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres.replace("/postgres?", f"/{name}?")


@pytest.mark.parametrize("rows", [1, 200])
def test_b7_a_connection_that_is_lost_while_many_rows_are_written_is_not_used_again(
    own_database: str, rows: int
) -> None:
    with open_ledger(own_database, KEY) as ledger:
        ledger.reserve(pure(), dataset="d", subjects=[A], token="1")
        database = ledger._database
        with pytest.raises(LedgerError, match="cannot be reached"), database.writing():
            database.many(END_OWN_CONNECTION, [(1, 1)] * rows)
        for token in ("2", "3"):  # the ledger is well again with the next call
            ledger.reserve(pure(), dataset="d", subjects=[A], token=token).commit()
        assert ledger.spent(A).epsilon == 3
        assert ledger.verify().ok


def test_b7_a_connection_that_is_lost_while_reading_is_not_used_again(own_database: str) -> None:
    with open_ledger(own_database, KEY) as ledger:
        ledger.reserve(pure(), dataset="d", subjects=[A], token="1")
        with pytest.raises(LedgerError, match="cannot be reached"), ledger._database.reading():
            ledger._database.many(END_OWN_CONNECTION, [(1, 1)] * 200)
        assert ledger.spent(A).epsilon == 1


def _fail_in_a_pipeline(connection: Any) -> None:
    connection.pgconn.enter_pipeline_mode()
    raise RuntimeError("stuck")


def test_b7_a_connection_that_stays_in_the_middle_of_many_rows_is_not_used_again(own_database: str) -> None:
    """As the library leaves it when the way out of its pipeline fails: not closed, and of no use for anything."""
    with open_ledger(own_database, KEY) as ledger:
        database = ledger._database
        stuck = database.connection
        with pytest.raises(RuntimeError, match="stuck"), database.writing():
            _fail_in_a_pipeline(stuck)
        for token in ("1", "2"):
            ledger.reserve(pure(), dataset="d", subjects=[A], token=token)
        assert database.connection is not stuck
        assert stuck.closed
        assert ledger.verify().ok


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_b7_a_limit_holds_whatever_isolation_the_server_prefers(own_database: str, level: str) -> None:
    """Two wait for the lock at the same time, and only one fits: the other must see what the first has spent."""
    import psycopg

    name = urlsplit(own_database).path.lstrip("/")
    with psycopg.connect(own_database, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'")
    outcomes: list[object] = []

    def spend(ledger: Ledger, token: str) -> None:
        try:
            outcomes.append(ledger.reserve(pure(), dataset="d", subjects=[A], token=token))
        except Exception as error:
            outcomes.append(error)

    with open_ledger(own_database, KEY) as first, open_ledger(own_database, KEY) as second:
        first.set_limit("document", epsilon=1)
        threads = [threading.Thread(target=spend, args=each) for each in ((first, "first"), (second, "second"))]
        with psycopg.connect(own_database, autocommit=True) as holder:
            holder.execute("SELECT pg_advisory_lock(hashtext('tacit ledger'))")
            for thread in threads:
                thread.start()
            waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            while holder.execute(waiting).fetchone() != (2,):
                assert all(thread.is_alive() for thread in threads), outcomes
        for thread in threads:
            thread.join()
        assert sorted(type(outcome).__name__ for outcome in outcomes) == ["BudgetExceededError", "Reservation"]
        assert first.spent(A).epsilon == 1
        assert first.verify().ok


def test_b7_a_server_that_prefers_reading_is_written_all_the_same(own_database: str) -> None:
    import psycopg

    name = urlsplit(own_database).path.lstrip("/")
    with psycopg.connect(own_database, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with open_ledger(own_database, KEY) as ledger:
        ledger.reserve(pure(), dataset="d", subjects=[A], token="1")
        assert ledger.spent(A).epsilon == 1
