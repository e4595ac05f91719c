"""Ledgers for tests: an SQLite file, or a real PostgreSQL server where one is installed."""

from __future__ import annotations

import shutil
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.account.ledger import Ledger, open_ledger
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit

KEY = "a key that is only used in tests"


@pytest.fixture(autouse=True)
def _own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Key files go to a folder of the test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TACIT_LEDGER_KEY", raising=False)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a server that runs while the tests do."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'tacit-dp[ledger]'")
    pgserver = pytest.importorskip("pgserver", reason="no PostgreSQL to test with: pip install pgserver")
    folder = tempfile.mkdtemp(prefix="tacit-pg-")  # short, because the name of a socket must be
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pgserver.get_server(folder)
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new, empty place for a ledger in each kind of database."""
    if request.param == "sqlite":
        return str(tmp_path / "budget.db")
    import psycopg

    url = request.getfixturevalue("postgres")
    name = f"tacit_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return str(url).replace("/postgres?", f"/{name}?")


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    with open_ledger(place, KEY) as opened:
        yield opened


@pytest.fixture
def file_ledger(tmp_path: Path) -> Iterator[Ledger]:
    with open_ledger(tmp_path / "budget.db", KEY) as opened:
        yield opened


def pure(epsilon: float = 1.0, unit: Unit = Unit.DOCUMENT, **more: object) -> Guarantee:
    """A local guarantee as a mechanism would make it."""
    return Guarantee(
        notion=Notion.PURE,
        epsilon=epsilon,
        unit=unit,
        adjacency=Adjacency.ANY_TWO,
        mechanism="test",
        **more,  # type: ignore[arg-type]
    )
