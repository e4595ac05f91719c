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

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tacit.account.ledger.amounts import ReleaseRecord, Spent, sum_of
from tacit.account.ledger.books import (
    CANCELED,
    COMMITTED,
    JOB,
    RESERVED,
    Balance,
    Books,
    StoredGuarantee,
    now,
)
from tacit.account.ledger.charges import (
    DATASET,
    DOCUMENT,
    KEY,
    PLAIN,
    USER,
    Subject,
    charges_of,
    digest_of,
)
from tacit.account.ledger.checks import check_dataset, check_kind, check_release
from tacit.account.ledger.custody import Custody
from tacit.account.ledger.database import Database, LedgerError
from tacit.account.ledger.enforce import check_limits
from tacit.account.ledger.keys import LedgerKey
from tacit.account.ledger.limits import Limit, Rules
from tacit.account.ledger.schema import COMMAND_START
from tacit.account.ledger.verify import Verification, canonical
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Guarantee
from tacit.version import __version__

REMEMBERED_GUARANTEES = 16
LIMITED: Final = (DOCUMENT, USER, DATASET, KEY)
"""Whom a limit can be for: a limit on a kind that nobody is charged under would never refuse anything."""


class TokenUsedError(BadInputError):
    """A token is in the ledger for a release with other content."""


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


class MissingLimitError(LedgerError):
    """Somebody who is known to have a limit has none in this ledger."""


class Ledger:
    """Made by `open_ledger`. One object may be used by several threads; every process opens its own."""

    def __init__(
        self, database: Database, key: LedgerKey, id: str, *, is_new: bool = False, new_key_place: str | None = None
    ) -> None:
        self._database = database
        self._custody = Custody(database, key, id)
        self._written: list[StoredGuarantee] = []
        self.id = id
        self.is_new = is_new
        """Whether it was made just now: nothing is counted in it, whatever was spent before."""
        self.new_key_place = new_key_place
        """Where the key of a ledger that was made just now lies, unless it was given."""

    @property
    def _key(self) -> LedgerKey:
        return self._custody.key

    @property
    def _books(self) -> Books:
        return self._custody.books

    @property
    def name(self) -> str:
        return self._database.name

    @property
    def making(self) -> str | None:
        """The warning about a ledger that was made just now; None for an older one."""
        if not self.is_new:
            return None
        key = "its key is the one that was given"
        if self.new_key_place is not None:
            key = f"its key is in '{self.new_key_place}'"
        return (
            f"NEW LEDGER: made {self.name} (id {self.id}), and nothing is counted in it yet; {key}: keep a copy of it "
            "apart from the ledger, without it nobody is recognized. If you expected a ledger to be there, stop and "
            "bring it back: what was spent before is not in this one"
        )

    # Keys, copies and trust -----------------------------------------------------------------------------------

    def accept(self) -> str:
        """Go on with a ledger that lacks events which its anchor knows: a backup, because the newest is lost.

        What was spent since the copy was made is not counted any more, so this is written into the chain. Returns what
        was accepted, in one sentence.
        """
        return self._custody.accept()

    def change_key(self) -> Path:
        """Give the ledger a new key, hash all names under it and seal everything anew. Returns the file of the key."""
        return self._custody.change_key()

    def copy_to(self, place: str | os.PathLike[str]) -> Verification:
        """Copy everything but the key to a place where nothing is: a file, or PostgreSQL. Returns how the copy was
        verified; its anchor belongs to this copy."""
        return self._custody.copy_to(place)

    def check_whole(self) -> None:
        """Raise `RolledBackError` if it lacks events that its anchor knows: what it says of spent budget is too low."""
        self._custody.check_whole()

    @property
    def anchor_place(self) -> Path | None:
        """The file of the anchor; None as long as there is none."""
        return self._custody.anchor_place

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
        must_be_limited: Sequence[Subject] = (),
    ) -> Reservation:
        """Charge a release to its subjects and its data set, or raise `BudgetExceededError`.

        guarantee   of one unit of the release, as made by the mechanism
        token       the same token and content again is the same reservation, counted once; other content is an error
        job         releases of one job have disjoint documents: the data set is charged the largest of them, once
        must_be_limited   subjects that are known to have a limit: `MissingLimitError` if the ledger has none for them
        """
        listed = list(subjects)
        check_release(guarantee, dataset, listed)
        written = self._write_down(guarantee)
        charges = charges_of(guarantee, dataset, listed, self._key.name, written.rate)
        job_name = None if job is None else self._job_name(dataset, job)
        token_name = self._key.name("token", token).hex()
        content = hashlib.sha256(canonical([dataset, written.digest, job_name]) + digest_of(charges)).digest()
        books = self._books
        with self._custody.writing():
            self._must_be_limited(must_be_limited)
            earlier = self._database.first_row("SELECT id, state, content FROM releases WHERE token = ?", (token_name,))
            if earlier is not None and bytes(earlier[2]) != content:
                raise TokenUsedError(
                    "token-used",
                    "this token was used for another release: use a new token for a new release, or repeat the same "
                    "one",
                )
            if earlier is not None and earlier[1] != CANCELED:
                return Reservation(self, earlier[0], earlier[1])
            check_limits(books, guarantee, charges, dataset, job_name)
            if earlier is not None:
                release = int(earlier[0])
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

    def check_limited(self, subjects: Sequence[Subject]) -> None:
        """Raise `MissingLimitError` if the ledger has no limit for one of these subjects."""
        with self._custody.reading():
            self._must_be_limited(subjects)

    def _must_be_limited(self, subjects: Sequence[Subject]) -> None:
        if not subjects:
            return
        limits = self._books.limits()
        for kind, identity, _ in subjects:
            if Rules(limits, kind, "").limit_of(self._key.name(kind, identity)) is None:
                raise MissingLimitError(
                    "limit-missing",
                    "{name} has no limit for a {kind} that is known to have one, so nothing is released to it: set "
                    "it again with 'tacit ledger limit LEDGER {kind}' ({option.name[NAME]} {option.epsilon[E]})",
                    name=self.name,
                    kind=kind,
                )

    def _change_state(self, release: int, state: str) -> str:
        # What stays reserved counts as spent: a commit that a power cut takes away is no loss.
        with self._custody.writing(lasting=state != COMMITTED):
            row = self._database.first_row("SELECT state, dataset, job FROM releases WHERE id = ?", (release,))
            if row is None:
                raise LedgerError(
                    "release-lost",
                    "{name} has lost release {release}: run 'tacit ledger verify'",
                    name=self.name,
                    release=release,
                )
            if row[0] == state:
                return state
            if row[0] != RESERVED:
                raise BadParameterError(
                    "release-already-settled",
                    "this release is {current} already, so it cannot be {state} any more",
                    current=row[0],
                    state=state,
                )
            self._books.set_state(release, state)
            if state == CANCELED:
                self._books.take_back(self._books.charges(release), row[1], row[2])
        return state

    def _write_down(self, guarantee: Guarantee) -> StoredGuarantee:
        """A service releases millions of times under the same guarantee."""
        for written in self._written:
            if written.guarantee is guarantee:
                return written
        written = StoredGuarantee.down(guarantee)
        self._written = [written, *self._written[: REMEMBERED_GUARANTEES - 1]]
        return written

    def _job_name(self, dataset: str, job: str) -> str:
        return self._key.name(JOB, f"{dataset}\0{job}").hex()

    # Limits ---------------------------------------------------------------------------------------------------

    def limits(self) -> list[Limit]:
        """All limits. The name of a subject is its hash."""
        with self._custody.reading():
            return self._books.limits()

    def limit_of(self, subject: Subject, dataset: str | None = None) -> Limit | None:
        """The limit that counts for a subject over all data sets (or within one): its own, or that of its kind."""
        check_kind(subject.kind)
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
            raise BadParameterError(
                "bad-limit-kind",
                "a limit is per {kinds} or {last_kind}: choose one of these",
                kinds=", ".join(LIMITED[:-1]),
                last_kind=LIMITED[-1],
            )
        epsilon, delta = float(epsilon), float(delta)
        if not 0 <= epsilon < float("inf"):
            raise BadParameterError(
                "impossible-epsilon",
                "the epsilon of a limit is a number of at least 0, not {epsilon:g}",
                epsilon=epsilon,
            )
        if not 0 <= delta < 1:
            raise BadParameterError(
                "impossible-delta", "the delta of a limit lies in [0, 1), not {delta:g}", delta=delta
            )
        limit = self._limit(kind, name, dataset, epsilon, delta)
        with self._custody.writing():
            self._database.run(
                "INSERT INTO limits VALUES (?, ?, ?, ?, ?) ON CONFLICT (kind, name, dataset) DO UPDATE SET "
                "epsilon = excluded.epsilon, delta = excluded.delta",
                limit,
            )
            self._books.record("limit", [*limit, now()])
        return limit

    def remove_limit(self, kind: str, *, name: str | None = None, dataset: str | None = None) -> None:
        limit = self._limit(kind, name, dataset, 0.0, 0.0)
        with self._custody.writing():
            done = self._database.run("DELETE FROM limits WHERE kind = ? AND name = ? AND dataset = ?", limit[:3])
            if not done.rowcount:
                raise BadParameterError("no-such-limit", "there is no such limit: 'tacit ledger show' lists them")
            self._books.record("limit removed", [*limit[:3], now()])

    def _limit(self, kind: str, name: str | None, dataset: str | None, epsilon: float, delta: float) -> Limit:
        check_kind(kind)
        for dataset_name in (dataset, name if kind == DATASET else None):
            if dataset_name:
                check_dataset(dataset_name)
        if kind == DATASET:
            if name and dataset and name != dataset:
                raise BadParameterError("data-set-name-twice", "a limit per data set has one name: give it once")
            return Limit(kind, "", dataset or name or "", epsilon, delta)
        return Limit(kind, self._key.name(kind, name).hex() if name else "", dataset or "", epsilon, delta)

    # Looking --------------------------------------------------------------------------------------------------

    def spent(self, subject: Subject, dataset: str | None = None) -> Spent:
        """The spending of a subject, open reservations included: in all data sets, or in one.

        Releases about whole data sets (trained models) count for documents and users that were named in those data
        sets. For a data set, `Subject("dataset", name)`, it is what was spent on one document of it.
        """
        check_kind(subject.kind)
        name = self._key.name(subject.kind, subject.identity)
        with self._custody.reading():
            own = [balance for balance in self._books.balances([name]) if balance.kind == subject.kind]
            places = {balance.dataset for balance in own}
            own += [balance for balance in self._books.about_everybody(subject.kind) if balance.dataset in places]
        return sum_of([balance for balance in own if dataset is None or balance.dataset == dataset])

    def spent_by_unit(self, subject: Subject, commands: Sequence[str]) -> dict[str, Spent]:
        """The spending of a subject in releases of these commands, for each unit that their guarantees are about: as
        plain epsilons of whole documents, but not added across units."""
        marks = ", ".join("?" * len(commands))
        with self._custody.reading():
            rows = self._database.rows(
                "SELECT r.unit, SUM(c.epsilon + c.added), SUM(c.delta), COUNT(*) FROM releases r "
                "JOIN charges c ON c.release = r.id JOIN accounts a ON a.id = c.account "
                f"WHERE substr(r.command, 1, {COMMAND_START}) IN ({marks}) AND r.command IN ({marks}) "
                "AND r.state <> ? AND a.kind = ? AND a.measure = ? AND c.subject = ? GROUP BY r.unit",
                [
                    *(command[:COMMAND_START] for command in commands),
                    *commands,
                    CANCELED,
                    subject.kind,
                    PLAIN,
                    self._key.name(subject.kind, subject.identity),
                ],
            )
        return {unit: Spent(epsilon, min(1.0, delta), count) for unit, epsilon, delta, count in rows}

    def knows_others(self, kind: str, identities: Iterable[str]) -> bool:
        """Whether the ledger has a limit for, or has charged, anybody of this kind besides these."""
        known = {self._key.name(kind, identity) for identity in identities}
        with self._custody.reading():
            named = {bytes.fromhex(limit.name) for limit in self._books.limits() if limit.kind == kind and limit.name}
            charged = self._database.rows(
                "SELECT DISTINCT b.subject FROM balances b JOIN accounts a ON a.id = b.account WHERE a.kind = ?",
                (kind,),
            )
        return not (named | {bytes(row[0]) for row in charged}) <= known

    def hash_of(self, subject: Subject) -> str:
        """Under which name a subject is stored."""
        return self._key.name(subject.kind, subject.identity).hex()

    def datasets_of(self, subject: Subject) -> set[str]:
        """The data sets in which a subject was charged."""
        name = self._key.name(subject.kind, subject.identity)
        with self._custody.reading():
            return {balance.dataset for balance in self._books.balances([name]) if balance.kind == subject.kind}

    def datasets(self) -> dict[str, Spent]:
        """All data sets, with what was spent on one document of each."""
        with self._custody.reading():
            names = [row[0] for row in self._database.rows("SELECT DISTINCT dataset FROM accounts ORDER BY 1")]
            rows: dict[str, list[Balance]] = {name: [] for name in names}
            for balance in self._books.balances([self._key.name(DATASET, name) for name in names]):
                if balance.kind == DATASET:
                    rows[balance.dataset].append(balance)
        return {name: sum_of(lines) for name, lines in rows.items()}

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
            raise BadParameterError("job-without-data-set", "to list a job, name its data set as well")
        job_name = None if job is None or dataset is None else self._job_name(dataset, job)
        wanted = [("r.dataset", dataset), ("r.state", state), ("r.job", job_name)]
        values: list[object] = [value for _, value in wanted if value is not None]
        conditions = " AND ".join(["1 = 1", *(f"{column} = ?" for column, value in wanted if value is not None)])
        if commands is not None:
            marks = ", ".join("?" * len(commands))
            conditions += f" AND substr(r.command, 1, {COMMAND_START}) IN ({marks}) AND r.command IN ({marks})"
            values += [*(command[:COMMAND_START] for command in commands), *commands]
        order = "ASC" if last is None else "DESC LIMIT ?"
        with self._custody.reading():
            rows = self._database.rows(
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
        """The number of events, and the seal of the last one: kept elsewhere, it lets `verify` notice if events
        up to here are changed or cut off."""
        with self._custody.reading():
            row = self._database.first_row("SELECT position, seal FROM chain ORDER BY position DESC LIMIT 1")
        return "0:" if row is None else f"{row[0]}:{bytes(row[1]).hex()}"

    def verify(self, anchor: str | None = None) -> Verification:
        """Recompute everything that can be recomputed, and compare: with the anchor, or else the one beside the key."""
        return self._custody.verify(anchor)

    def export(
        self, *, dataset: str | None = None, subjects: bool = False, last: int | None = None
    ) -> dict[str, object]:
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

    def _exported(self, record: ReleaseRecord, subjects: bool) -> dict[str, object]:
        line: dict[str, object] = {**vars(record), "guarantee": record.guarantee.to_dict()}
        if subjects:
            with self._custody.reading():
                line["charges"] = [
                    {"kind": kind, "measure": measure, "subject": name.hex(), "units": units, **charge._asdict()}
                    for (kind, measure), rows in sorted(self._books.charges(record.id).items())
                    for name, (units, charge) in sorted(rows.items())
                ]
        return line
