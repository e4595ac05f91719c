"""The database, key and anchor of an open ledger, and transactions in which the three fit together."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tacit.account.ledger.anchor import Anchor, KeptAnchor
from tacit.account.ledger.books import Books, now
from tacit.account.ledger.copying import copy_ledger
from tacit.account.ledger.database import Database, LedgerError
from tacit.account.ledger.keys import LedgerKey, prepare_key, take_prepared_key
from tacit.account.ledger.rotation import change_key
from tacit.account.ledger.verify import KEY_CHANGED, OLDER_ACCEPTED, Verification, verify
from tacit.errors import BadParameterError


class RolledBackError(LedgerError):
    """The ledger lacks events that are known to have been in it."""


class KeyChangedError(LedgerError):
    """The key was changed since the ledger was opened: open it again."""


class Custody:
    """All changes of the ledger are made in `writing`: under the key that it has now, and only if it holds all events
    that it is known to have held. Nothing is charged to a name under a former key, and nothing is spent again because
    somebody brought back an older file."""

    def __init__(self, database: Database, key: LedgerKey, id: str) -> None:
        self._database = database
        self.id = id
        self.key = key
        self.books = Books(database, key)
        self._check = key.check(id)
        self._kept = KeptAnchor(id)
        self._anchor: Anchor | None = None
        self._distrust: RolledBackError | None = None
        self._load_anchor()

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        with self._database.reading():
            self._check_key()
            yield

    @contextlib.contextmanager
    def writing(self, *, lasting: bool = True) -> Iterator[None]:
        """A transaction of the ledger that the anchor knows, under the key that it has now."""
        with self._database.writing(lasting=lasting):
            self._check_key()
            self._check_anchor()
            self.books.forget_head()
            yield
            head = self.books.head
        if lasting and head is not None:  # what is not lasting can still be lost, and the anchor is never ahead
            self._keep(Anchor(head[0], head[1].hex(), self._check))

    def check_whole(self) -> None:
        """Raise unless the ledger can be spent from: the key is the one that it has now, and nothing is missing that
        the anchor knows."""
        with self.reading():
            self._check_anchor()

    def _check_key(self) -> None:
        """Names that were hashed under a former key would be charged to nobody."""
        row = self._database.first_row("SELECT value FROM meta WHERE name = ?", ("key",))
        if row is None or row[0] != self._check:
            raise KeyChangedError(
                "ledger-key-changed",
                "the key of {database} was changed meanwhile: open it again",
                database=self._database.name,
            )

    # The anchor -----------------------------------------------------------------------------------------------

    def _load_anchor(self) -> None:
        """Take over the anchor that is kept, or remember what is wrong with it."""
        try:
            kept = self._kept.read()
        except LedgerError as error:
            self._distrust = RolledBackError.of(error)
            return
        if kept is None or kept.key == self._check:
            self._anchor = kept
        elif not self._was_changed_after(kept):
            self._distrust = RolledBackError(
                "ledger-from-before-its-key",
                "{database} is a copy from before its key was changed, or its anchor is that of another: bring back "
                "the ledger of after the change",
                database=self._database.name,
            )

    def _was_changed_after(self, anchor: Anchor) -> bool:
        """Whether an anchor under a former key is older than the change of the key, and so replaced by it."""
        if anchor.key not in {key.check(self.id) for key in self.key.earlier()}:
            return False
        with self.reading():
            changes = self._database.rows("SELECT body FROM chain WHERE event = ?", (KEY_CHANGED,))
        facts = [json.loads(body) for (body,) in changes]
        return any(key == anchor.key and events >= anchor.events for key, events, _, _ in facts)

    def _keep(self, anchor: Anchor) -> None:
        self._kept.advance(anchor)
        if self._anchor is None or self._anchor.events < anchor.events:
            self._anchor = anchor

    def _check_anchor(self) -> None:
        """Refuse to count in a ledger that has lost events: what they had spent would be spent again."""
        if self._distrust is not None:
            raise RolledBackError.of(self._distrust)
        known = self._anchor
        if known is None or not known.events:
            return
        row = self._database.first_row("SELECT seal FROM chain WHERE position = ?", (known.events,))
        if row is None or bytes(row[0]).hex() != known.seal:
            raise RolledBackError(
                "ledger-rolled-back",
                "{database} is older than it was: its anchor knows event {events:,}, which is {state} here; bring "
                "back the newest ledger, or, if it is lost, go on with this one by 'tacit ledger accept'",
                database=self._database.name,
                events=known.events,
                state="missing" if row is None else "another one",
            )

    def accept(self) -> str:
        """Go on with a ledger that lacks events which its anchor knows: a backup, because the newest is lost.

        What was spent since the copy was made is not counted any more, so this is written into the chain. Returns what
        was accepted, in one sentence.
        """
        with self._database.writing():
            self._check_key()
            try:
                self._check_anchor()
            except RolledBackError:
                pass
            else:
                raise BadParameterError(
                    "nothing-to-accept", "this ledger holds all that its anchor knows: there is nothing to accept"
                )
            verification = verify(self._database, self.key, None)
            if not verification.ok:
                raise LedgerError(
                    "ledger-was-changed",
                    "this ledger was changed, which cannot be accepted: {problem}",
                    problem=verification.problems[0],
                )
            known = self._anchor
            lost = None if known is None else max(0, known.events - verification.events)
            self.books.record(OLDER_ACCEPTED, [str(known or ""), lost, verification.anchor, now()])
            assert self.books.head is not None
            position, seal = self.books.head
        self._anchor, self._distrust = Anchor(position, seal.hex(), self._check), None
        self._kept.replace(self._anchor)
        what = "events of before may be" if lost is None else f"{lost:,} events of before are"
        what = "1 event of before is" if lost == 1 else what
        return f"accepted: {what} missing, and what they had spent is not counted"

    # Keys and copies ------------------------------------------------------------------------------------------

    def change_key(self) -> Path:
        """Give the ledger a new key, hash all names under it and seal everything anew. Returns the file of the key."""
        new = self.key.changed()
        with self._database.writing():
            self._check_key()
            self._check_anchor()
            prepare_key(self.id, new)
            anchor = None if self._anchor is None else str(self._anchor)
            books = change_key(self._database, self.id, self.key, new, anchor)
        path = take_prepared_key(self.id)
        self.key, self._check, self.books = new, new.check(self.id), books
        assert books.head is not None
        self._anchor = Anchor(books.head[0], books.head[1].hex(), self._check)
        self._kept.replace(self._anchor)
        self._database.scrub()
        return path

    def copy_to(self, place: str | os.PathLike[str]) -> Verification:
        """Copy everything but the key to a place where nothing is: a file, or PostgreSQL. Returns how the copy was
        verified; its anchor belongs to this copy."""
        with self.reading():
            pass  # the right key
        return copy_ledger(self._database, self.key, place)

    def verify(self, anchor: str | None = None) -> Verification:
        """Compare with this anchor, or else with the one that is kept."""
        kept = None if anchor is not None or self._anchor is None else str(self._anchor)
        with self.reading():
            verification = verify(self._database, self.key, anchor or kept)
        if anchor is None and self._distrust is not None:
            return replace(verification, problems=(str(self._distrust), *verification.problems))
        return verification

    @property
    def anchor_place(self) -> Path | None:
        path = self._kept.path
        return path if path is not None and path.exists() else None
