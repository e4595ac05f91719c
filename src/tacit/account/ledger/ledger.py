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
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tacit.account.ledger.books import (
    CANCELED,
    COMMITTED,
    RESERVED,
    StoredGuarantee,
    now,
)
from tacit.account.ledger.charges import (
    DATASET,
    DOCUMENT,
    KEY,
    USER,
    Subject,
    charges_of,
    digest_of,
)
from tacit.account.ledger.checks import check_dataset, check_kind, check_release
from tacit.account.ledger.database import Database, LedgerError
from tacit.account.ledger.enforce import check_limits
from tacit.account.ledger.keys import LedgerKey
from tacit.account.ledger.limits import Limit, Rules
from tacit.account.ledger.readable import ReadableLedger
from tacit.account.ledger.verify import Verification, canonical
from tacit.errors import BadInputError, BadParameterError, check_choice
from tacit.guarantee import Guarantee

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


class Ledger(ReadableLedger):
    """Made by `open_ledger`. One object may be used by several threads; every process opens its own."""

    def __init__(
        self, database: Database, key: LedgerKey, id: str, *, is_new: bool = False, new_key_place: str | None = None
    ) -> None:
        super().__init__(database, key, id, is_new=is_new, new_key_place=new_key_place)
        self._written: list[StoredGuarantee] = []

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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

    # Limits ---------------------------------------------------------------------------------------------------

    def set_limit(
        self, kind: str, *, epsilon: float, delta: float = 0.0, name: str | None = None, dataset: str | None = None
    ) -> Limit:
        """Nobody of this kind may spend more from now on: everybody, or the one `name`; in all data sets, or in one."""
        check_choice(kind, LIMITED, code="bad-limit-kind", what="limit per")
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
