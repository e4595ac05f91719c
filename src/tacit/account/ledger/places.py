"""Where a ledger lies: an SQLite file, or a PostgreSQL database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tacit.account.ledger.database import Database, LedgerError
from tacit.account.ledger.sqlite import Sqlite

POSTGRES_PREFIXES: Final = ("postgresql://", "postgres://")
SQLITE_PREFIX: Final = "sqlite:///"


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
