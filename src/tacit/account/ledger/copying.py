"""A whole ledger in another place: a backup, a ledger brought back from one, or the way from a file to PostgreSQL.

Row by row, of one moment, in one transaction: both kinds of database have the same tables. The key is not copied.
"""

from __future__ import annotations

import os
from pathlib import Path

from tacit.account.ledger.database import Database, LedgerError
from tacit.account.ledger.keys import LedgerKey
from tacit.account.ledger.places import open_database
from tacit.account.ledger.schema import TABLE_NAMES
from tacit.account.ledger.sqlite import Sqlite
from tacit.account.ledger.verify import Verification, verify
from tacit.atomic import draft_file

AT_ONCE = 5_000


def copy_ledger(source: Database, key: LedgerKey, place: str | os.PathLike[str]) -> Verification:
    """Copy a ledger to a place where nothing is, and verify the copy: it appears complete or not at all."""
    target = open_database(place)
    try:
        if target.exists():
            raise _place_taken(target)
        if isinstance(target, Sqlite):
            return _into_file(source, key, target.path)
        return _copied(source, key, target)
    finally:
        target.close()


def _into_file(source: Database, key: LedgerKey, path: Path) -> Verification:
    """Copy to a draft first, so that nobody takes half of a ledger for a ledger."""
    try:
        with draft_file(path, private=True, shared=True, replace_existing=False) as draft:
            copy = Sqlite(draft)
            try:
                verification = _copied(source, key, copy)
            finally:
                copy.close()  # everything is in one file now
    except FileExistsError:
        raise LedgerError(
            "place-taken", "'{path}' is there already: give a place where nothing is", path=path
        ) from None
    return verification


def _place_taken(target: Database) -> LedgerError:
    return LedgerError("place-taken", "{target} is there already: give a place where nothing is", target=target.name)


def _copied(source: Database, key: LedgerKey, target: Database) -> Verification:
    with source.reading(), target.speaking():
        head = source.first_row("SELECT position, seal FROM chain ORDER BY position DESC LIMIT 1")
        with target.writing():
            if target.version() is not None:
                raise _place_taken(target)
            target.make_tables()
            target.run("DELETE FROM meta")
            for table in TABLE_NAMES:
                _copy_table(source, target, table)
    anchor = None if head is None else f"{head[0]}:{bytes(head[1]).hex()}"
    with target.reading():
        verification = verify(target, key, anchor)
    if not verification.ok:
        raise LedgerError(
            "ledger-was-changed",
            "the copy is as damaged as the ledger: {problem}; see 'tacit ledger verify'",
            problem=verification.problems[0],
        )
    return verification


def _copy_table(source: Database, target: Database, table: str) -> None:
    part: list[tuple[object, ...]] = []
    statement = ""
    for row in source.stream(f"SELECT * FROM {table}"):
        statement = statement or f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})"
        part.append(tuple(row))
        if len(part) == AT_ONCE:
            target.many(statement, part)
            part = []
    if part:
        target.many(statement, part)
