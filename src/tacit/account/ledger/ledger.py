"""The ledger of spent budget: who was part of which release, what it cost, and what is left.

    reserve   in one short transaction, before any noise is drawn: all subjects of a release are charged, or, if anybody
              would go over a limit, none and the release is refused
    commit    the release is out
    cancel    nothing was drawn: the charge is taken back

A reservation that is neither committed nor canceled counts as spent. So a crash at any moment can make the ledger
count too much, never too little.

Proven: what `spent` and the limits add up is basic composition of guarantees about the same subject (see `charges`),
for subjects that are recognized as the same. Assumed: every release goes through the ledger, and a document or user
always comes under the same identity.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tacit.account.ledger.books import (
    CANCELED,
    COMMITTED,
    JOB,
    OWN_KINDS,
    RESERVED,
    Balance,
    Books,
    Written,
    now,
)
from tacit.account.ledger.charges import (
    DATASET,
    DOCUMENT,
    KEY,
    NOTHING,
    PLAIN,
    PRESENCE,
    USER,
    Subject,
    charges_of,
    digest_of,
)
from tacit.account.ledger.database import Database, LedgerError, open_database
from tacit.account.ledger.enforce import check_limits
from tacit.account.ledger.keys import LedgerKey, given_key, kept_key, key_file, make_key
from tacit.account.ledger.limits import Limit, Rules
from tacit.account.ledger.schema import COMMAND_START, SCHEMA_VERSION
from tacit.account.ledger.verify import Verification, canonical, verify
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Guarantee, Model
from tacit.rounding import rounded_up
from tacit.version import __version__

REMEMBERED_GUARANTEES = 16
LONGEST_NAME = 200
LIMITED: Final = (DOCUMENT, USER, DATASET, KEY)
"""Whom a limit can be for: a limit on a kind that nobody is charged under would never refuse anything."""


class TokenUsedError(BadInputError):
    """A token is in the ledger for a release with other content."""


@dataclass(frozen=True)
class Account:
    """Costs of one notion and metric that has no plain epsilon: `epsilon` times the distance, plus `added`."""

    measure: str
    epsilon: float
    added: float
    delta: float
    releases: int


@dataclass(frozen=True)
class Spent:
    """What a subject has spent: the plain sum, and beside it, never added, what has no plain epsilon."""

    epsilon: float
    delta: float
    releases: int
    apart: tuple[Account, ...] = ()

    def __str__(self) -> str:
        delta = f", delta {rounded_up(self.delta, 3)}" if self.delta else ""
        count = "1 release" if self.releases == 1 else f"{self.releases:,} releases"
        apart = "".join(f"; beside it {account.releases:,} of {account.measure}" for account in self.apart)
        return f"epsilon {rounded_up(self.epsilon)}{delta} ({count}){apart}"


@dataclass(frozen=True)
class ReleaseRecord:
    """One line of the ledger. `epsilon` and `delta` are what it cost one document of the data set, if that is plain."""

    id: int
    token: str
    job: str | None
    dataset: str
    unit: str
    guarantee: Guarantee
    command: str
    version: str
    created: str
    state: str
    subjects: int
    epsilon: float | None
    delta: float | None


class Reservation:
    """Budget set aside for one release."""

    def __init__(self, ledger: Ledger, release: int, state: str) -> None:
        self.release = release
        self.state = state
        self._ledger = ledger

    def commit(self) -> None:
        """The release is out. Committing again does nothing."""
        if self.state != COMMITTED:
            self.state = self._ledger._change_state(self.release, COMMITTED)

    def cancel(self) -> None:
        """Take the charge back. Only allowed when no noise was drawn; otherwise leave the reservation open."""
        if self.state != CANCELED:
            self.state = self._ledger._change_state(self.release, CANCELED)


class Ledger:
    """Made by `open_ledger`. One object may be used by several threads; every process opens its own."""

    def __init__(self, database: Database, key: LedgerKey, id: str, new_key_place: str | None = None) -> None:
        self._database = database
        self._key = key
        self._books = Books(database, key)
        self._written: list[Written] = []
        self.id = id
        self.new_key_place = new_key_place
        """Where the key of a ledger that was made just now lies."""

    @property
    def name(self) -> str:
        return self._database.name

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Spending -------------------------------------------------------------------------------------------------

    def reserve(
        self,
        guarantee: Guarantee,
        *,
        dataset: str,
        subjects: Iterable[Subject],
        token: str,
        command: str = "",
        job: str | None = None,
    ) -> Reservation:
        """Charge a release to its subjects and its data set, or raise `BudgetExceededError`.

        guarantee   of one unit of the release, as made by the mechanism
        token       the same token and content again is the same reservation, counted once; other content is an error
        job         releases of one job have disjoint documents: the data set is charged the largest of them, once
        """
        listed = list(subjects)
        _check_release(guarantee, dataset, listed)
        written = self._write_down(guarantee)
        charges = charges_of(guarantee, dataset, listed, self._key.name, written.rate)
        job_name = None if job is None else self._job_name(dataset, job)
        token_name = self._key.name("token", token).hex()
        content = hashlib.sha256(canonical([dataset, written.digest, job_name]) + digest_of(charges)).digest()
        books = self._books
        with self._database.writing():
            found = self._database.one("SELECT id, state, content FROM releases WHERE token = ?", (token_name,))
            if found is not None and bytes(found[2]) != content:
                raise TokenUsedError(
                    "this token was used for another release: use a new token for a new release, or repeat the same one"
                )
            if found is not None and found[1] != CANCELED:
                return Reservation(self, found[0], found[1])
            check_limits(books, guarantee, charges, dataset, job_name)
            if found is not None:
                release = int(found[0])
                books.set_state(release, RESERVED)
            else:
                release = books.add_release(
                    written,
                    charges,
                    dataset=dataset,
                    token=token_name,
                    job=job_name,
                    command=command,
                    content=content,
                )
            books.spend(charges, dataset, job_name)
        return Reservation(self, release, RESERVED)

    def _change_state(self, release: int, state: str) -> str:
        # What stays reserved counts as spent: a commit that a power cut takes away is no loss.
        with self._database.writing(lasting=state != COMMITTED):
            found = self._database.one("SELECT state, dataset, job FROM releases WHERE id = ?", (release,))
            if found is None:
                raise LedgerError(f"{self.name} has lost release {release}: run 'tacit ledger verify'")
            if found[0] == state:
                return state
            if found[0] != RESERVED:
                raise BadParameterError(f"this release is {found[0]} already, so it cannot be {state} any more")
            self._books.set_state(release, state)
            if state == CANCELED:
                self._books.take_back(self._books.charges(release), found[1], found[2])
        return state

    def _write_down(self, guarantee: Guarantee) -> Written:
        """A service releases millions of times under the same guarantee."""
        for written in self._written:
            if written.guarantee is guarantee:
                return written
        written = Written.down(guarantee)
        self._written = [written, *self._written[: REMEMBERED_GUARANTEES - 1]]
        return written

    def _job_name(self, dataset: str, job: str) -> str:
        return self._key.name(JOB, f"{dataset}\0{job}").hex()

    # Limits ---------------------------------------------------------------------------------------------------

    def limits(self) -> list[Limit]:
        """All limits. The name of a subject is its hash."""
        with self._database.reading():
            return self._books.limits()

    def limit_of(self, subject: Subject, dataset: str | None = None) -> Limit | None:
        """The limit that counts for a subject over all data sets (or within one): its own, or that of its kind."""
        _check_kind(subject.kind)
        scope = dataset or ""
        if subject.kind == DATASET:
            own = [
                limit for limit in self.limits() if limit.kind == DATASET and limit.dataset in ("", subject.identity)
            ]
            return max(own, key=lambda limit: limit.dataset, default=None)
        return Rules(self.limits(), subject.kind, scope).limit_of(self._key.name(subject.kind, subject.identity))

    def set_limit(
        self, kind: str, *, epsilon: float, delta: float = 0.0, name: str | None = None, dataset: str | None = None
    ) -> Limit:
        """Nobody of this kind may spend more from now on: everybody, or the one `name`; in all data sets, or in one."""
        if kind not in LIMITED:
            raise BadParameterError(f"a limit is per {', '.join(LIMITED[:-1])} or {LIMITED[-1]}: choose one of these")
        epsilon, delta = float(epsilon), float(delta)
        if not 0 <= epsilon < float("inf"):
            raise BadParameterError(f"the epsilon of a limit is a number of at least 0, not {epsilon:g}")
        if not 0 <= delta < 1:
            raise BadParameterError(f"the delta of a limit lies in [0, 1), not {delta:g}")
        limit = self._limit(kind, name, dataset, epsilon, delta)
        with self._database.writing():
            self._database.run(
                "INSERT INTO limits VALUES (?, ?, ?, ?, ?) ON CONFLICT (kind, name, dataset) DO UPDATE SET "
                "epsilon = excluded.epsilon, delta = excluded.delta",
                limit,
            )
            self._books.record("limit", [*limit, now()])
        return limit

    def remove_limit(self, kind: str, *, name: str | None = None, dataset: str | None = None) -> None:
        limit = self._limit(kind, name, dataset, 0.0, 0.0)
        with self._database.writing():
            done = self._database.run("DELETE FROM limits WHERE kind = ? AND name = ? AND dataset = ?", limit[:3])
            if not done.rowcount:
                raise BadParameterError("there is no such limit: 'tacit ledger show' lists them")
            self._books.record("limit removed", [*limit[:3], now()])

    def _limit(self, kind: str, name: str | None, dataset: str | None, epsilon: float, delta: float) -> Limit:
        _check_kind(kind)
        for given in (dataset, name if kind == DATASET else None):
            if given:
                _check_dataset(given)
        if kind == DATASET:
            if name and dataset and name != dataset:
                raise BadParameterError("a limit per data set has one name: give it once")
            return Limit(kind, "", dataset or name or "", epsilon, delta)
        return Limit(kind, self._key.name(kind, name).hex() if name else "", dataset or "", epsilon, delta)

    # Looking --------------------------------------------------------------------------------------------------

    def spent(self, subject: Subject, dataset: str | None = None) -> Spent:
        """What a subject has spent, open reservations included: in all data sets, or in one.

        Releases about whole data sets (trained models) count for documents and users that were named in those data
        sets. For a data set, `Subject("dataset", name)`, it is what was spent on one document of it.
        """
        _check_kind(subject.kind)
        name = self._key.name(subject.kind, subject.identity)
        with self._database.reading():
            own = [balance for balance in self._books.balances([name]) if balance.kind == subject.kind]
            places = {balance.dataset for balance in own}
            own += [balance for balance in self._books.about_everybody(subject.kind) if balance.dataset in places]
        return _sum([balance for balance in own if dataset is None or balance.dataset == dataset])

    def hash_of(self, subject: Subject) -> str:
        """Under which name a subject is stored."""
        return self._key.name(subject.kind, subject.identity).hex()

    def datasets_of(self, subject: Subject) -> set[str]:
        """The data sets in which a subject was charged."""
        name = self._key.name(subject.kind, subject.identity)
        with self._database.reading():
            return {balance.dataset for balance in self._books.balances([name]) if balance.kind == subject.kind}

    def datasets(self) -> dict[str, Spent]:
        """All data sets, with what was spent on one document of each."""
        with self._database.reading():
            names = [row[0] for row in self._database.all("SELECT DISTINCT dataset FROM accounts ORDER BY 1")]
            rows: dict[str, list[Balance]] = {name: [] for name in names}
            for balance in self._books.balances([self._key.name(DATASET, name) for name in names]):
                if balance.kind == DATASET:
                    rows[balance.dataset].append(balance)
        return {name: _sum(found) for name, found in rows.items()}

    def releases(
        self,
        *,
        dataset: str | None = None,
        state: str | None = None,
        job: str | None = None,
        commands: Sequence[str] | None = None,
        last: int | None = None,
    ) -> list[ReleaseRecord]:
        """The lines of the ledger, oldest first; `last` gives only so many of the newest, `commands` those of any of
        these commands."""
        if job is not None and dataset is None:
            raise BadParameterError("to list a job, name its data set as well")
        job_name = None if job is None or dataset is None else self._job_name(dataset, job)
        wanted = [("r.dataset", dataset), ("r.state", state), ("r.job", job_name)]
        values: list[Any] = [value for _, value in wanted if value is not None]
        conditions = " AND ".join(["1 = 1", *(f"{column} = ?" for column, value in wanted if value is not None)])
        if commands is not None:
            marks = ", ".join("?" * len(commands))
            conditions += f" AND substr(r.command, 1, {COMMAND_START}) IN ({marks}) AND r.command IN ({marks})"
            values += [*(command[:COMMAND_START] for command in commands), *commands]
        order = "ASC" if last is None else "DESC LIMIT ?"
        with self._database.reading():
            rows = self._database.all(
                "SELECT r.id, r.token, r.job, r.dataset, r.unit, g.body, r.command, r.version, r.created, r.state, "
                "r.subjects, c.epsilon + c.added, c.delta FROM releases r JOIN guarantees g ON g.id = r.guarantee "
                "LEFT JOIN accounts a ON a.kind = 'dataset' AND a.dataset = r.dataset AND a.measure = 'plain' "
                "LEFT JOIN charges c ON c.release = r.id AND c.account = a.id "
                f"WHERE {conditions} ORDER BY r.id {order}",
                values if last is None else [*values, last],
            )
        guarantees = {body: Guarantee.from_dict(json.loads(body)) for body in {row[5] for row in rows}}
        records = [ReleaseRecord(*(*row[:5], guarantees[row[5]], *row[6:])) for row in rows]
        return records if last is None else records[::-1]

    def anchor(self) -> str:
        """How many events there are, and the seal of the last one: kept elsewhere, it lets `verify` notice if events
        up to here are changed or cut off."""
        with self._database.reading():
            row = self._database.one("SELECT position, seal FROM chain ORDER BY position DESC LIMIT 1")
        return "0:" if row is None else f"{row[0]}:{bytes(row[1]).hex()}"

    def verify(self, anchor: str | None = None) -> Verification:
        """Recompute everything that can be recomputed, and compare."""
        with self._database.reading():
            return verify(self._database, self._key, anchor)

    def export(self, *, dataset: str | None = None, subjects: bool = False, last: int | None = None) -> dict[str, Any]:
        """Everything in the ledger as plain data; with `subjects`, also the charge of each (hashed) subject."""
        return {
            "ledger": self.id,
            "tacit_version": __version__,
            "anchor": self.anchor(),
            "limits": [limit._asdict() for limit in self.limits()],
            "datasets": {
                name: {**vars(spent), "apart": [vars(account) for account in spent.apart]}
                for name, spent in self.datasets().items()
                if dataset in (None, name)
            },
            "releases": [self._exported(record, subjects) for record in self.releases(dataset=dataset, last=last)],
        }

    def _exported(self, record: ReleaseRecord, subjects: bool) -> dict[str, Any]:
        line: dict[str, Any] = {**vars(record), "guarantee": record.guarantee.to_dict()}
        if subjects:
            with self._database.reading():
                line["charges"] = [
                    {"kind": kind, "measure": measure, "subject": name.hex(), "units": units, **charge._asdict()}
                    for (kind, measure), rows in sorted(self._books.charges(record.id).items())
                    for name, (units, charge) in sorted(rows.items())
                ]
        return line


def open_ledger(place: str | os.PathLike[str], key: bytes | str | None = None, *, create: bool = True) -> Ledger:
    """Open a ledger: the path of an SQLite file, sqlite:///PATH, or postgresql://USER@HOST/DATABASE.

    The key comes from `key`, from TACIT_LEDGER_KEY, or from a file that is made together with a new ledger;
    `Ledger.new_key_place` then says where it is.
    """
    database = open_database(place)
    given = given_key(key)
    with contextlib.ExitStack() as on_failure:
        on_failure.callback(database.close)
        if not create and not database.exists():
            raise LedgerError(
                f"{database.name} does not exist: check the name, or make it with 'tacit rewrite --ledger' or "
                "'tacit ledger limit'"
            )
        ledger = _opened(database, given)
        on_failure.pop_all()
    return ledger


def _opened(database: Database, given: LedgerKey | None) -> Ledger:
    place = None
    with database.speaking():
        version = database.version()
        if version is None:
            with database.writing():
                if database.version() is None:  # nobody else was faster
                    place = _make(database, given)
        elif version != SCHEMA_VERSION:
            database.migrate()
        facts = {str(row[0]): str(row[1]) for row in database.all("SELECT name, value FROM meta")}
    if not {"ledger", "key"} <= set(facts):
        raise LedgerError(f"{database.name} is damaged: take a copy of it from before, and keep this one")
    key = given or kept_key(facts["ledger"])
    if key.check(facts["ledger"]) != facts["key"]:
        raise LedgerError(
            f"this is not the key of {database.name}: give the one it was made with, in TACIT_LEDGER_KEY or its file"
        )
    return Ledger(database, key, facts["ledger"], place)


def _make(database: Database, given: LedgerKey | None) -> str | None:
    id = secrets.token_hex(8)
    key = given or make_key(id)
    database.make_tables()
    for name, value in (("ledger", id), ("key", key.check(id)), ("made", now())):
        database.run("INSERT INTO meta (name, value) VALUES (?, ?)", (name, value))
    return None if given else str(key_file(id))


def _sum(balances: Sequence[Balance]) -> Spent:
    """The sum of the plain accounts, and the others each for itself."""
    plain = [balance for balance in balances if balance.measure == PLAIN]
    presence = [balance for balance in balances if balance.measure == PRESENCE]
    if presence and sum(b.releases for b in presence) == sum(b.releases for b in plain):
        plain = presence  # all of them hide whether a record is there at all
    total = NOTHING
    for balance in plain:
        total = total.plus(balance.charge)
    apart: dict[str, Account] = {}
    for balance in balances:
        if balance.measure not in (PLAIN, PRESENCE) and balance.releases:
            before = apart.get(balance.measure, Account(balance.measure, 0.0, 0.0, 0.0, 0))
            charge = balance.charge.plus(
                NOTHING._replace(epsilon=before.epsilon, added=before.added, delta=before.delta)
            )
            apart[balance.measure] = Account(balance.measure, *charge, before.releases + balance.releases)
    releases = sum(balance.releases for balance in plain)
    return Spent(total.epsilon + total.added, min(1.0, total.delta), releases, tuple(apart.values()))


def _check_dataset(dataset: str) -> None:
    if not dataset.strip() or len(dataset) > LONGEST_NAME:
        raise BadParameterError(
            f"give the data set a name of 1 to {LONGEST_NAME} characters: releases under the same name add up"
        )
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in dataset):
        raise BadParameterError("the name of a data set holds a control character: give it a name that can be printed")


def _check_release(guarantee: Guarantee, dataset: str, subjects: Sequence[Subject]) -> None:
    _check_dataset(dataset)
    for kind in {subject[0] for subject in subjects}:
        _check_kind(kind)
    if guarantee.model is Model.LOCAL and not subjects:
        raise BadParameterError("name the documents or users of the release: without them nobody can be charged")
    if any(subject[0] == DATASET and subject[1] != dataset for subject in subjects):
        raise BadParameterError("a release is of one data set: reserve each data set on its own")


def _check_kind(kind: str) -> None:
    if kind in OWN_KINDS or not kind.replace("-", "").isalnum() or kind != kind.lower():
        raise BadParameterError(f"a kind of subject is one word in small letters, such as user, not '{kind}'")
