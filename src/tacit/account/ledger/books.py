"""The lines and running sums of a ledger, inside a transaction that somebody else opened.

A data set is charged once per job, the largest cost of a document in it: when a further block of the job costs more
than those before, only the difference is added. Everybody else is charged what each release costs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from tacit.account.ledger.charges import (
    DATASET,
    DOCUMENT,
    EVERY_DOCUMENT,
    EVERY_USER,
    NOTHING,
    PLAIN,
    PRESENCE,
    USER,
    Charge,
    ChargeRate,
    Charges,
    rate_of,
)
from tacit.account.ledger.database import Database, Row
from tacit.account.ledger.keys import LedgerKey
from tacit.account.ledger.limits import Limit, Standing
from tacit.account.ledger.verify import canonical, event_seal, release_digest
from tacit.guarantee import Guarantee
from tacit.version import __version__

RESERVED, COMMITTED, CANCELED = "reserved", "committed", "canceled"
JOB: Final = "job"
EVERYBODY: Final = {DOCUMENT: EVERY_DOCUMENT, USER: EVERY_USER}
"""Kinds that a release about a whole data set charges without naming anybody."""
OWN_KINDS: Final = frozenset({JOB, "token", *EVERYBODY.values()})

_BALANCES = (
    "SELECT b.subject, a.kind, a.measure, a.dataset, b.epsilon, b.added, b.delta, b.releases "
    "FROM balances b JOIN accounts a ON a.id = b.account WHERE "
)


class Balance(NamedTuple):
    """The sum that a subject has spent in one account."""

    subject: bytes
    kind: str
    measure: str
    dataset: str
    charge: Charge
    releases: int

    @classmethod
    def of(cls, row: Row) -> Balance:
        subject, kind, measure, dataset, epsilon, added, delta, releases = row
        return cls(bytes(subject), kind, measure, dataset, Charge(epsilon, added, delta), releases)


class StoredGuarantee(NamedTuple):
    """A guarantee as it is stored, each one once, and how its cost grows."""

    guarantee: Guarantee
    body: str
    digest: str
    rate: ChargeRate

    @classmethod
    def down(cls, guarantee: Guarantee) -> StoredGuarantee:
        body = json.dumps(guarantee.to_dict(), sort_keys=True, ensure_ascii=False, allow_nan=False)
        return cls(guarantee, body, hashlib.sha256(body.encode()).hexdigest(), rate_of(guarantee))


class Books:
    def __init__(self, database: Database, key: LedgerKey) -> None:
        self.database = database
        self.key = key
        self.head: tuple[int, bytes] | None = None
        """Number and seal of the last event that was recorded here."""

    def forget_head(self) -> None:
        """At the begin of a transaction: nothing was recorded in it yet."""
        self.head = None

    # Lines ----------------------------------------------------------------------------------------------------

    def add_release(
        self,
        written: StoredGuarantee,
        charges: Charges,
        *,
        dataset: str,
        token: str,
        job: str | None,
        command: str,
        content: bytes,
    ) -> int:
        release = _next(self.database.first_row("SELECT MAX(id) FROM releases"))
        subjects = sum(len(rows) for (kind, _), rows in charges.items() if kind not in {DATASET, *OWN_KINDS})
        unit, guarantee = written.guarantee.unit.value, self._guarantee_id(written)
        line = (release, token, job, dataset, unit, guarantee, command, __version__, now(), RESERVED, subjects, content)
        self.database.run("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", line)
        for (kind, measure), rows in charges.items():
            account = self._account(kind, dataset, measure)
            self.database.many(
                "INSERT INTO charges VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(release, account, name, units, *charge) for name, (units, charge) in rows.items()],
            )
        self.record("reserve", [release, release_digest(line, written.digest).hex()])
        return release

    def set_state(self, release: int, state: str) -> None:
        self.database.run("UPDATE releases SET state = ? WHERE id = ?", (state, release))
        self.record(state, [release, now()])

    def charges(self, release: int) -> Charges:
        """The charges of a release that is in the ledger, for everybody in it."""
        charges: Charges = {}
        for kind, measure, subject, units, *charge in self.database.rows(
            "SELECT a.kind, a.measure, c.subject, c.units, c.epsilon, c.added, c.delta "
            "FROM charges c JOIN accounts a ON a.id = c.account WHERE c.release = ?",
            (release,),
        ):
            charges.setdefault((kind, measure), {})[bytes(subject)] = (units, Charge(*charge))
        return charges

    def record(self, event: str, facts: Sequence[object]) -> None:
        """Append an event to the chain."""
        last = self.database.first_row("SELECT position, seal FROM chain ORDER BY position DESC LIMIT 1")
        position, before = (1, b"") if last is None else (last[0] + 1, bytes(last[1]))
        body = canonical(list(facts)).decode()
        seal = event_seal(self.key, before, position, event, body)
        self.database.run("INSERT INTO chain VALUES (?, ?, ?, ?)", (position, event, body, seal))
        self.head = (position, seal)

    def limits(self) -> list[Limit]:
        rows = self.database.rows("SELECT kind, name, dataset, epsilon, delta FROM limits ORDER BY 1, 3, 2")
        return [Limit(*row) for row in rows]

    def _account(self, kind: str, dataset: str, measure: str) -> int:
        values = (kind, dataset, measure)
        row = self.database.first_row("SELECT id FROM accounts WHERE kind = ? AND dataset = ? AND measure = ?", values)
        if row is None:
            row = (_next(self.database.first_row("SELECT MAX(id) FROM accounts")),)
            self.database.run("INSERT INTO accounts (id, kind, dataset, measure) VALUES (?, ?, ?, ?)", (*row, *values))
        return int(row[0])

    def _guarantee_id(self, written: StoredGuarantee) -> int:
        row = self.database.first_row("SELECT id FROM guarantees WHERE digest = ?", (written.digest,))
        if row is None:
            row = (_next(self.database.first_row("SELECT MAX(id) FROM guarantees")),)
            values = (*row, written.digest, written.body)
            self.database.run("INSERT INTO guarantees (id, digest, body) VALUES (?, ?, ?)", values)
        return int(row[0])

    # Running sums ---------------------------------------------------------------------------------------------

    def spend(self, charges: Charges, dataset: str, job: str | None) -> None:
        """Add the charges of a release to the running sums."""
        self._add_charges(charges, dataset, job, sign=1)
        for name, measure, charge in _of_dataset(charges):
            if job is not None:
                before, known = self.job_so_far(job, dataset, measure)
                self._move_job(name, job, dataset, measure, before, before.at_least(charge), 0 if known else 1)

    def take_back(self, charges: Charges, dataset: str, job: str | None) -> None:
        """Take the charges of a release off the running sums, after it was marked as canceled."""
        self._add_charges(charges, dataset, job, sign=-1)
        for name, measure, _ in _of_dataset(charges):
            if job is not None:
                before, _ = self.job_so_far(job, dataset, measure)
                rest = self._largest_left(job, dataset, measure)
                self._move_job(name, job, dataset, measure, before, rest or NOTHING, 0 if rest else -1)

    def _add_charges(self, charges: Charges, dataset: str, job: str | None, *, sign: int) -> None:
        for (kind, measure), rows in charges.items():
            if kind == DATASET and job is not None:
                continue
            account = self._account(kind, dataset, measure)
            self._add(
                [
                    (name, account, sign * charge.epsilon, sign * charge.added, sign * charge.delta, sign)
                    for name, (_, charge) in rows.items()
                ]
            )

    def _move_job(
        self, name: bytes, job: str, dataset: str, measure: str, before: Charge, after: Charge, jobs: int
    ) -> None:
        change = (after.epsilon - before.epsilon, after.added - before.added, after.delta - before.delta, jobs)
        self._add([(name, self._account(DATASET, dataset, measure), *change)])
        self._add([(bytes.fromhex(job), self._account(JOB, dataset, measure), *change)])

    def _add(self, rows: Sequence[Sequence[object]]) -> None:
        self.database.many(
            "INSERT INTO balances VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (subject, account) DO UPDATE SET "
            "epsilon = balances.epsilon + excluded.epsilon, added = balances.added + excluded.added, "
            "delta = balances.delta + excluded.delta, releases = balances.releases + excluded.releases",
            rows,
        )

    def job_so_far(self, job: str, dataset: str, measure: str) -> tuple[Charge, bool]:
        """The largest cost of a document in a job so far, and whether the job is known at all."""
        for balance in self.balances([bytes.fromhex(job)]):
            if (balance.kind, balance.dataset, balance.measure) == (JOB, dataset, measure):
                return balance.charge, balance.releases > 0
        return NOTHING, False

    def _largest_left(self, job: str, dataset: str, measure: str) -> Charge | None:
        row = self.database.first_row(
            "SELECT MAX(c.epsilon), MAX(c.added), MAX(c.delta) FROM releases r JOIN charges c ON c.release = r.id "
            "JOIN accounts a ON a.id = c.account WHERE r.job = ? AND r.state <> ? AND a.kind = ? AND a.dataset = ? "
            "AND a.measure = ?",
            (job, CANCELED, DATASET, dataset, measure),
        )
        return None if row is None or row[0] is None else Charge(*row)

    def balances(self, names: Sequence[bytes]) -> Iterator[Balance]:
        return map(Balance.of, self.database.where_in(f"{_BALANCES} b.subject", names))

    def about_everybody(self, kind: str) -> list[Balance]:
        """The balances of releases about whole data sets (trained models): the cost for each document or user in
        them."""
        if kind not in EVERYBODY:
            return []
        places = self.database.rows("SELECT DISTINCT dataset FROM accounts WHERE kind = ?", (EVERYBODY[kind],))
        names = [self.key.name(DATASET, place[0]) for place in places]
        return [balance for balance in self.balances(names) if balance.kind == EVERYBODY[kind]] if names else []

    def everyone_in(self, kind: str, dataset: str) -> dict[bytes, Standing]:
        """All subjects that releases of this data set have named, with what they spent anywhere."""
        everyone = standings(map(Balance.of, self.database.stream(f"{_BALANCES} a.kind = ?", (kind,))))
        return {name: standing for name, standing in everyone.items() if dataset in standing.datasets}


def standings(balances: Iterable[Balance]) -> dict[bytes, Standing]:
    """The accounts of each subject put together, as a limit looks at them."""
    standing_of: dict[bytes, Standing] = {}
    for subject, _, measure, dataset, charge, releases in balances:
        standing = standing_of.get(subject)
        if standing is None:
            standing = standing_of[subject] = Standing()
        if measure == PLAIN:
            standing.plain[dataset] = charge
        elif measure != PRESENCE and releases:
            standing.apart[dataset] = measure
    return standing_of


def _of_dataset(charges: Charges) -> Iterator[tuple[bytes, str, Charge]]:
    for (kind, measure), rows in charges.items():
        if kind == DATASET:
            for name, (_, charge) in rows.items():
                yield name, measure, charge


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _next(row: Row | None) -> int:
    return 1 if row is None or row[0] is None else int(row[0]) + 1
