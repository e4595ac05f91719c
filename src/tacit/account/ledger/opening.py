"""Opening a ledger: where it is, whether it may be made, and which key is its own."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Mapping

from tacit.account.ledger.books import now
from tacit.account.ledger.database import Database, LedgerError, MissingLedgerError
from tacit.account.ledger.keys import (
    RULES,
    LedgerKey,
    Recognizes,
    by_tokens,
    given_key,
    kept_key,
    key_file,
    make_key,
    prepared_key,
    recognized,
    take_prepared_key,
    to_the_letter,
)
from tacit.account.ledger.ledger import Ledger
from tacit.account.ledger.places import open_database
from tacit.account.ledger.schema import SCHEMA_VERSION

DOCUMENTS, BY_TOKENS = "documents", "by their tokens"
USERS, BY_SPELLINGS = "users", "by all spellings of their names"
"""What a ledger remembers of how it recognizes documents and users (`LedgerKey.recognizes`)."""


def open_ledger(place: str | os.PathLike[str], key: bytes | str | None = None, *, create: bool = True) -> Ledger:
    """Open a ledger: the path of an SQLite file, sqlite:///PATH, or postgresql://USER@HOST/DATABASE.

    The key comes from `key`, from TACIT_LEDGER_KEY, or from a file that is made together with a new ledger;
    `Ledger.new_key_place` then says where it is.
    """
    database = open_database(place)
    chosen_key = given_key(key)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(database.close)
        if not create and not database.exists():
            raise MissingLedgerError(database.name)
        ledger = _opened(database, chosen_key)
        on_failure.pop_all()
    return ledger


def _opened(database: Database, chosen_key: LedgerKey | None) -> Ledger:
    is_new, place = False, None
    with database.speaking():
        version = database.version()
        if version is None:
            with database.writing():
                if database.version() is None:  # nobody else was faster
                    is_new, place = True, _make(database, chosen_key)
        elif version != SCHEMA_VERSION:
            database.migrate()
        facts = {str(row[0]): str(row[1]) for row in database.rows("SELECT name, value FROM meta")}
    if not {"ledger", "key"} <= set(facts):
        raise LedgerError(
            "damaged-ledger",
            "{database} is damaged: take a copy of it from before, and keep this one",
            database=database.name,
        )
    rule = _rule_of(facts)
    key = _fitting(chosen_key, facts["ledger"], facts["key"], rule)
    others = [other for other in RULES if other is not rule]
    if key is None and any(_fitting(chosen_key, facts["ledger"], facts["key"], other) for other in others):
        raise LedgerError(
            "ledger-was-changed",
            "{database} was changed without its key: it says otherwise how it recognizes documents or users; take a "
            "copy of it from before, and keep this one",
            database=database.name,
        )
    if key is None:
        raise LedgerError(
            "wrong-ledger-key",
            "this is not the key of {database}: give the one it was made with, in TACIT_LEDGER_KEY or its file (a "
            "key that was changed has several lines)",
            database=database.name,
        )
    return Ledger(database, key, facts["ledger"], is_new=is_new, new_key_place=place)


def _rule_of(facts: Mapping[str, str]) -> Recognizes:
    """How a ledger says that it recognizes subjects."""
    if facts.get(DOCUMENTS) != BY_TOKENS:
        return to_the_letter
    return recognized if facts.get(USERS) == BY_SPELLINGS else by_tokens


def _fitting(chosen_key: LedgerKey | None, ledger: str, check: str, recognizes: Recognizes) -> LedgerKey | None:
    """The key that fits: the one given, or that of the file, or the one of a change that was stopped at its end."""
    if chosen_key is None:
        prepared = prepared_key(ledger)
        if prepared is not None:
            prepared.recognizes = recognizes
            if prepared.check(ledger) == check:
                take_prepared_key(ledger)
    key = chosen_key or kept_key(ledger)
    key.recognizes = recognizes
    return key.fitting(ledger, check)


def _make(database: Database, chosen_key: LedgerKey | None) -> str | None:
    id = secrets.token_hex(8)
    key = chosen_key or make_key(id)
    key.recognizes = recognized
    database.make_tables()
    rules = ((DOCUMENTS, BY_TOKENS), (USERS, BY_SPELLINGS))
    for name, value in (("ledger", id), ("key", key.check(id)), ("made", now()), *rules):
        database.run("INSERT INTO meta (name, value) VALUES (?, ?)", (name, value))
    return None if chosen_key else str(key_file(id))
