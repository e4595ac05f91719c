"""The read side of the ledger: balances, limits, releases and the seal over them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from tacit.account.ledger.amounts import ReleaseRecord, Spent, sum_of
from tacit.account.ledger.books import CANCELED, JOB, Balance, Books
from tacit.account.ledger.charges import DATASET, PLAIN, Subject
from tacit.account.ledger.checks import check_kind
from tacit.account.ledger.custody import Custody
from tacit.account.ledger.database import Database
from tacit.account.ledger.keys import LedgerKey
from tacit.account.ledger.limits import Limit, Rules
from tacit.account.ledger.schema import COMMAND_START
from tacit.account.ledger.verify import Verification
from tacit.errors import BadParameterError
from tacit.guarantee import Guarantee
from tacit.version import __version__


class ReadableLedger:
    """A ledger as it is read: who spent how much, under which limits, in which releases. `Ledger` adds the writing."""

    def __init__(
        self, database: Database, key: LedgerKey, id: str, *, is_new: bool = False, new_key_place: str | None = None
    ) -> None:
        self._database = database
        self._custody = Custody(database, key, id)
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

    def close(self) -> None:
        self._database.close()

    def check_whole(self) -> None:
        """Raise `RolledBackError` if it lacks events that its anchor knows: what it says of spent budget is too low."""
        self._custody.check_whole()

    def anchor(self) -> str:
        """The number of events, and the seal of the last one: kept elsewhere, it lets `verify` notice if events
        up to here are changed or cut off."""
        with self._custody.reading():
            row = self._database.first_row("SELECT position, seal FROM chain ORDER BY position DESC LIMIT 1")
        return "0:" if row is None else f"{row[0]}:{bytes(row[1]).hex()}"

    @property
    def anchor_place(self) -> Path | None:
        """The file of the anchor; None as long as there is none."""
        return self._custody.anchor_place

    def verify(self, anchor: str | None = None) -> Verification:
        """Recompute everything that can be recomputed, and compare: with the anchor, or else the one beside the key."""
        return self._custody.verify(anchor)

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

    def _job_name(self, dataset: str, job: str) -> str:
        return self._key.name(JOB, f"{dataset}\0{job}").hex()
