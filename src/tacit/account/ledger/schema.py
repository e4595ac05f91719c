"""The tables of a ledger, and the way from an older version of them to this one.

    meta         name, value: the version of the tables, the name of the ledger, what recognizes its key
    guarantees   each distinct guarantee once, as JSON
    accounts     kind of subject, data set, measure: amounts are only ever added within one account
    releases     one line per reservation
    charges      what each release costs each subject
    balances     the running sums of the charges, so that a limit is checked in one look; kind "job" holds the largest
                 charge of a job so far, kind "dataset" the sum over jobs of that
    limits       what nobody may spend more than
    chain        every event in order, each sealed together with the one before

Identifiers are given by the program while it holds the only write transaction, so both databases take the same SQL.
`{blob}`, `{real}`, `{big}` are the words in which the two differ.
"""

from __future__ import annotations

from typing import Final

SCHEMA_VERSION: Final = 2
COMMAND_START: Final = 64
"""So many characters of a command are indexed: PostgreSQL takes no long ones."""
_INDEX_OF_COMMANDS = f"CREATE INDEX releases_command ON releases (substr(command, 1, {COMMAND_START}))"

TABLES: Final = (
    """CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)""",
    """CREATE TABLE guarantees (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, body TEXT NOT NULL)""",
    """CREATE TABLE accounts (
        id INTEGER PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL, measure TEXT NOT NULL,
        UNIQUE (kind, dataset, measure))""",
    """CREATE TABLE releases (
        id {big} PRIMARY KEY, token TEXT NOT NULL UNIQUE, job TEXT, dataset TEXT NOT NULL, unit TEXT NOT NULL,
        guarantee INTEGER NOT NULL REFERENCES guarantees (id), command TEXT NOT NULL, version TEXT NOT NULL,
        created TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('reserved', 'committed', 'canceled')),
        subjects INTEGER NOT NULL, content {blob} NOT NULL)""",
    """CREATE TABLE charges (
        release {big} NOT NULL REFERENCES releases (id), account INTEGER NOT NULL REFERENCES accounts (id),
        subject {blob} NOT NULL, units {big} NOT NULL, epsilon {real} NOT NULL, added {real} NOT NULL,
        delta {real} NOT NULL, PRIMARY KEY (release, account, subject)){clustered}""",
    """CREATE TABLE balances (
        subject {blob} NOT NULL, account INTEGER NOT NULL REFERENCES accounts (id), epsilon {real} NOT NULL,
        added {real} NOT NULL, delta {real} NOT NULL, releases {big} NOT NULL,
        PRIMARY KEY (subject, account)){clustered}""",
    """CREATE TABLE limits (
        kind TEXT NOT NULL, name TEXT NOT NULL, dataset TEXT NOT NULL, epsilon {real} NOT NULL, delta {real} NOT NULL,
        PRIMARY KEY (kind, name, dataset))""",
    """CREATE TABLE chain (
        position {big} PRIMARY KEY, event TEXT NOT NULL, body TEXT NOT NULL, seal {blob} NOT NULL)""",
    """CREATE INDEX releases_job ON releases (job)""",
    _INDEX_OF_COMMANDS,
)

TABLE_NAMES: Final = ("meta", "guarantees", "accounts", "releases", "charges", "balances", "limits", "chain")
"""All tables, each after those it refers to."""

MIGRATIONS: Final[dict[int, tuple[str, ...]]] = {1: (_INDEX_OF_COMMANDS,)}
"""From each version the statements that lead to the next one."""
