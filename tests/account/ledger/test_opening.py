"""Missing, locked, damaged, too new, wrong key: one sentence each, and nothing is lost."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from tacit.account.ledger import Ledger, LedgerError, Subject, open_ledger, sqlite
from tacit.account.ledger.keys import LedgerKey, key_file
from tacit.account.ledger.schema import SCHEMA_VERSION as NOW
from tacit.errors import BadInputError, BadParameterError, MissingExtraError

from .conftest import KEY, pure

A = Subject("document", "a")


def sentence(message: str) -> str:
    assert "\n" not in message
    assert len(message) < 250
    return message


def test_the_key_file_is_made_once_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    place = tmp_path / "budget.db"
    with open_ledger(place) as ledger:
        made = Path(ledger.new_key_place or "")
        ledger.reserve(pure(), dataset="d", subjects=[A], token="1")
    assert made.is_file()
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert made.read_text().strip().encode() not in place.read_bytes()
    with open_ledger(place) as ledger:
        assert ledger.new_key_place is None
        assert ledger.spent(A).epsilon == 1
        assert made == key_file(ledger.id)
    made.unlink()
    with pytest.raises(BadInputError, match="cannot be read from"):
        open_ledger(place)


def test_wrong_and_weak_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "budget.db"
    open_ledger(place, KEY).close()
    with pytest.raises(LedgerError, match="not the key of"):
        open_ledger(place, "another key, long enough")
    monkeypatch.setenv("TACIT_LEDGER_KEY", KEY)
    open_ledger(place).close()
    monkeypatch.setenv("TACIT_LEDGER_KEY", "short")
    with pytest.raises(BadParameterError, match="TACIT_LEDGER_KEY has 5 characters"):
        open_ledger(place)


def test_names_are_hashed_with_hmac_sha256() -> None:
    import hmac

    key = LedgerKey(b"0123456789abcdef")
    names = hmac.new(b"0123456789abcdef", b"tacit ledger: names", "sha256").digest()
    expected = hmac.new(names, "document\0caf\u00e9".encode(), "sha256").digest()[:16]
    assert key.name("document", "caf\u00e9") == expected
    assert key.name("user", "caf\u00e9") != expected
    assert "0123" not in repr(key)


def test_a_missing_ledger(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="does not exist") as caught:
        open_ledger(tmp_path / "none.db", KEY, create=False)
    sentence(str(caught.value))
    assert list(tmp_path.glob("none*")) == []
    with pytest.raises(LedgerError, match="make it first"):
        open_ledger(tmp_path / "no folder" / "budget.db", KEY)
    with pytest.raises(LedgerError, match="is a folder"):
        open_ledger(tmp_path, KEY)
    with pytest.raises(LedgerError, match="a ledger is a file"):
        open_ledger("mysql://host/database", KEY)


@pytest.mark.parametrize("content", [b"text,label\nhello,1\n" * 200, b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_file_that_is_no_ledger_stays_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "reviews.csv"
    path.write_bytes(content)
    with pytest.raises(LedgerError) as caught:
        open_ledger(path, KEY)
    sentence(str(caught.value))
    assert path.read_bytes() == content


def test_a_database_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE meta (name TEXT, value TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="not a ledger of Tacit"):
        open_ledger(path, KEY)


def test_a_damaged_ledger(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    with open_ledger(path, KEY) as ledger:
        for number in range(50):
            ledger.reserve(pure(), dataset="d", subjects=[Subject("document", str(number))], token=str(number))
    content = bytearray(path.read_bytes())
    content[4096:40960] = os.urandom(36864)
    path.write_bytes(content)
    with pytest.raises(LedgerError) as caught, open_ledger(path, KEY) as ledger:
        ledger.verify()
    sentence(str(caught.value))


def test_a_locked_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "WAIT_SECONDS", 0)
    path = tmp_path / "budget.db"
    with open_ledger(path, KEY) as ledger:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="is locked") as caught:
            ledger.reserve(pure(), dataset="d", subjects=[A], token="1")
        sentence(str(caught.value))
        other.execute("ROLLBACK")
        other.close()
        ledger.reserve(pure(), dataset="d", subjects=[A], token="1")
        assert ledger.spent(A).epsilon == 1


def test_a_ledger_that_may_only_be_read(tmp_path: Path) -> None:
    """The database refuses, as it does for a file without write permission (which root ignores)."""
    with open_ledger(tmp_path / "budget.db", KEY) as ledger:
        ledger.reserve(pure(), dataset="d", subjects=[A], token="1")
        ledger._database.run("PRAGMA query_only = ON")
        with pytest.raises(LedgerError, match="may only be read"):
            ledger.reserve(pure(), dataset="d", subjects=[A], token="2")
        assert ledger.spent(A).epsilon == 1


def test_a_full_disk(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "budget.db", KEY) as ledger:
        ledger._database.run("PRAGMA max_page_count = 1")
        with pytest.raises(LedgerError, match="the disk is full"):
            ledger.reserve(
                pure(), dataset="d", subjects=[Subject("document", str(number)) for number in range(5000)], token="1"
            )
        ledger._database.run("PRAGMA max_page_count = 1000000")
        assert ledger.releases() == []
        assert ledger.verify().ok


def test_tables_of_a_newer_version_are_left_alone(place: str) -> None:
    with open_ledger(place, KEY) as ledger, ledger._database.writing():
        ledger._database.run("UPDATE meta SET value = ? WHERE name = ?", ("99", "schema"))
    with pytest.raises(LedgerError, match="written by a newer Tacit"):
        open_ledger(place, KEY)


def test_migrations_lead_step_by_step(ledger: Ledger) -> None:
    ledger.reserve(pure(), dataset="d", subjects=[A], token="1")
    steps = {NOW: ("ALTER TABLE releases ADD COLUMN note TEXT",), NOW + 1: ("CREATE TABLE notes (body {blob})",)}
    ledger._database.migrate(steps, target=NOW + 2)
    assert ledger._database.version() == NOW + 2
    assert ledger._database.rows("SELECT note FROM releases") == [(None,)]
    assert ledger._database.rows("SELECT body FROM notes") == []


def test_a_migration_that_fails_changes_nothing(ledger: Ledger) -> None:
    steps = {NOW: ("ALTER TABLE releases ADD COLUMN note TEXT", "SELECT no_such_column FROM releases")}
    with pytest.raises(LedgerError):
        ledger._database.migrate(steps, target=NOW + 1)
    assert ledger._database.version() == NOW
    with pytest.raises(LedgerError), ledger._database.reading():
        ledger._database.rows("SELECT note FROM releases")


def test_a_ledger_of_the_first_version_is_brought_up_to_date(place: str) -> None:
    with open_ledger(place, KEY) as ledger:
        ledger.reserve(pure(), dataset="d", subjects=[A], token="1", command="tacit serve: alice")
        with ledger._database.writing():
            ledger._database.run("DROP INDEX releases_command")
            ledger._database.run("UPDATE meta SET value = ? WHERE name = ?", ("1", "schema"))
    with open_ledger(place, KEY) as ledger:
        assert ledger._database.version() == NOW
        assert [release.id for release in ledger.releases(commands=["tacit serve: alice", "other"])] == [1]
        assert ledger.releases(commands=["other"]) == []
        assert ledger.verify().ok


@pytest.mark.parametrize("name", ["a\x00b", "a\nb", "\x7f", "a\ud800"])
def test_a_data_set_has_a_name_that_can_be_printed(ledger: Ledger, name: str) -> None:
    with pytest.raises(BadParameterError, match="control character"):
        ledger.reserve(pure(), dataset=name, subjects=[A], token="1")
    with pytest.raises(BadParameterError, match="control character"):
        ledger.set_limit("document", epsilon=1, dataset=name)


def test_what_postgres_cannot_store_is_said_in_a_sentence(postgres: str) -> None:
    with open_ledger(postgres, KEY) as ledger, pytest.raises(BadInputError, match="control characters"):
        ledger.reserve(pure(), dataset="d", subjects=[A], token="nul", command="a\x00b")


def test_a_limit_is_for_somebody_who_is_charged(ledger: Ledger) -> None:
    """A misspelled kind would be a limit that never refuses anything."""
    with pytest.raises(BadParameterError, match="no limit per 'users': choose one of document, user, dataset, key"):
        ledger.set_limit("users", epsilon=1)
    for kind in ("document", "user", "dataset", "key"):
        ledger.set_limit(kind, epsilon=1)


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    def spend(name: int) -> None:
        for number in range(10):
            ledger.reserve(pure(0.5), dataset="d", subjects=[A], token=f"{name} {number}").commit()

    threads = [threading.Thread(target=spend, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.spent(A).epsilon == 20
    assert ledger.verify().ok


def test_a_forked_process_opens_its_own_connection(file_ledger: Ledger) -> None:
    file_ledger.reserve(pure(), dataset="d", subjects=[A], token="parent")
    child = os.fork()
    if child == 0:
        try:
            file_ledger.reserve(pure(), dataset="d", subjects=[A], token="child")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert file_ledger.spent(A).epsilon == 2
    assert file_ledger.verify().ok


def test_postgres_comes_back_after_a_lost_connection(postgres: str) -> None:
    import psycopg

    with open_ledger(postgres, KEY) as ledger:
        ledger.reserve(pure(), dataset="d", subjects=[A], token="1")
        pid = ledger._database.connection.info.backend_pid
        with psycopg.connect(postgres, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (pid,))
        with pytest.raises(LedgerError, match="cannot be reached"):
            ledger.reserve(pure(), dataset="d", subjects=[A], token="2")
        ledger.reserve(pure(), dataset="d", subjects=[A], token="2")
        assert ledger.spent(A).epsilon == 2


def test_postgres_that_cannot_be_reached() -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'tacit-dp[ledger]'")
    with pytest.raises(LedgerError, match="cannot be reached") as caught:
        open_ledger("postgresql://somebody:secret-word@127.0.0.1:9/budget", KEY)
    assert "secret-word" not in sentence(str(caught.value))


def test_postgres_without_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'tacit-dp\[ledger\]'"):
        open_ledger("postgresql://host/budget", KEY)
