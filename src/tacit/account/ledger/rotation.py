"""Another key for a ledger, inside a transaction that somebody else opened.

Every hash of a name is hashed once more under the new secret (`LedgerKey.renamed`), and everything that was computed
from hashes is computed again: the content of each release, the facts of its event, the names in limits, and all seals.
So after it, an older key neither finds a name nor seals an event, and `verify` finds the same ledger as before.

Anchors of before do not fit the new seals. The last of them is part of the event "key changed", which is sealed with
the new key; whoever changes the key checks the ledger against the anchor he has first.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Final

from tacit.account.ledger.books import Books, now
from tacit.account.ledger.charges import KEY, Charges, digest_of
from tacit.account.ledger.database import Database, LedgerError, Row
from tacit.account.ledger.keys import LedgerKey
from tacit.account.ledger.verify import (
    KEY_CHANGED,
    RELEASE_COLUMNS,
    canonical,
    charges_by_release,
    event_seal,
    release_digest,
    verify,
)

AT_ONCE: Final = 5_000
_HASH_IN_TEXT = re.compile(r"\b[0-9a-f]{32}\b")


def change_key(database: Database, ledger: str, old: LedgerKey, new: LedgerKey, anchor: str | None) -> Books:
    """The books of the ledger under its new key; raises, and changes nothing, if the ledger is not whole."""
    verification = verify(database, old, anchor)
    if not verification.ok:
        raise LedgerError(
            "ledger-was-changed",
            "the key is not changed, because the ledger was: {problem}; see 'tacit ledger verify'",
            problem=verification.problems[0],
        )
    keys = {
        bytes(row[0]).hex()
        for row in database.rows(
            "SELECT DISTINCT b.subject FROM balances b JOIN accounts a ON a.id = b.account WHERE a.kind = ?", (KEY,)
        )
    }
    _rename_subjects(database, new)
    _rename_limits(database, new)
    digests = _rename_releases(database, new, keys)
    _seal_again(database, new, digests)
    database.run("UPDATE meta SET value = ? WHERE name = ?", (new.check(ledger), "key"))
    books = Books(database, new)
    events, _, seal = verification.anchor.partition(":")
    books.record(KEY_CHANGED, [old.check(ledger), int(events), seal, now()])
    return books


def _rename_subjects(database: Database, new: LedgerKey) -> None:
    """By a table of old and new hashes, which lives as long as the transaction."""
    database.run(
        "CREATE TEMPORARY TABLE renamed (old {blob} PRIMARY KEY, new {blob} NOT NULL)".format(**database.words)
    )
    subjects = database.stream("SELECT subject FROM balances UNION SELECT subject FROM charges")
    for rows in _parts(subjects):
        database.many(
            "INSERT INTO renamed VALUES (?, ?)", [(bytes(row[0]), new.renamed(bytes(row[0]))) for row in rows]
        )
    for table in ("charges", "balances"):
        database.run(f"UPDATE {table} SET subject = (SELECT new FROM renamed WHERE old = {table}.subject)")
    database.run("DROP TABLE renamed")


def _rename_limits(database: Database, new: LedgerKey) -> None:
    for (name,) in database.rows("SELECT DISTINCT name FROM limits WHERE name <> ''"):
        database.run("UPDATE limits SET name = ? WHERE name = ?", (_hex(new, name), name))


def _rename_releases(database: Database, new: LedgerKey, keys: set[str]) -> dict[int, str]:
    """The digest of each release under its new names. The name of an API key in a command is renamed like others."""

    def command_of(command: str) -> str:
        return _HASH_IN_TEXT.sub(lambda match: _hex(new, match[0]) if match[0] in keys else match[0], command)

    digests: dict[int, str] = {}
    charges = charges_by_release(database)
    own: tuple[int, Charges, set[str]] | None = next(charges, None)
    for row in database.rows(f"SELECT {RELEASE_COLUMNS}, g.digest FROM releases r JOIN guarantees g "
                            "ON g.id = r.guarantee ORDER BY r.id"):  # fmt: skip
        *line, digest = row
        charged: Charges = {}
        if own is not None and own[0] == line[0]:
            charged, own = own[1], next(charges, None)
        token, job = _hex(new, line[1]), None if line[2] is None else _hex(new, line[2])
        command = command_of(line[6])
        content = hashlib.sha256(canonical([line[3], digest, job]) + digest_of(charged)).digest()
        line[1], line[2], line[6], line[11] = token, job, command, content
        digests[line[0]] = release_digest(tuple(line), digest).hex()
        database.run(
            "UPDATE releases SET token = ?, job = ?, command = ?, content = ? WHERE id = ?",
            (token, job, command, content, line[0]),
        )
    return digests


def _seal_again(database: Database, new: LedgerKey, digests: dict[int, str]) -> None:
    position, before = 0, b""
    while rows := database.rows(
        "SELECT position, event, body FROM chain WHERE position > ? ORDER BY position LIMIT ?", (position, AT_ONCE)
    ):
        sealed: list[tuple[object, ...]] = []
        for position, event, body in rows:
            body = _renamed_facts(event, body, new, digests)
            before = event_seal(new, before, position, event, body)
            sealed.append((position, event, body, before))
        database.many(
            "INSERT INTO chain VALUES (?, ?, ?, ?) ON CONFLICT (position) DO UPDATE SET body = excluded.body, "
            "seal = excluded.seal",
            sealed,
        )


def _renamed_facts(event: str, body: str, new: LedgerKey, digests: dict[int, str]) -> str:
    facts = json.loads(body)
    if event == "reserve":
        facts[1] = digests[facts[0]]
    elif event in ("limit", "limit removed") and facts[1]:
        facts[1] = _hex(new, facts[1])
    return canonical(facts).decode()


def _hex(new: LedgerKey, hashed: str) -> str:
    return new.renamed(bytes.fromhex(hashed)).hex()


def _parts(rows: Iterator[Row]) -> Iterator[list[Row]]:
    part: list[Row] = []
    for row in rows:
        part.append(row)
        if len(part) == AT_ONCE:
            yield part
            part = []
    if part:
        yield part
