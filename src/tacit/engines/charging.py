"""Whom a block is charged to in the ledger, before any of its noise is drawn.

The subjects of a block are its documents and, where a column tells them, its users. A document is recognized by its
text, so that the same text adds up in whatever file it comes (what makes two texts the same: `tacit.text.identity`), or
by its value in a column of names, which are names within the data set.

The token of a block is made of the job's key, the number of the block and its texts, as its noise is: a block that is
repeated after a crash has the same noise and the same token, and is counted once.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tacit.account.ledger import Ledger, Reservation, Subject, open_ledger
from tacit.engines.blocks import Block
from tacit.engines.users import UserRule
from tacit.errors import BadInputError
from tacit.guarantee import Guarantee
from tacit.mechanism import Mechanism
from tacit.noise.source import StreamKey
from tacit.text.files import ColumnSelection, TableReader, check_column


@dataclass(frozen=True)
class Charging:
    """Where a job is written down, and under which name its releases add up."""

    ledger: Ledger
    dataset: str
    document_column: str | None = None
    place: str | None = None
    """Where the ledger is, for workers of a cluster, who open it for themselves."""

    def describe(self) -> dict[str, object]:
        return {"ledger": self.ledger.id, "data set": self.dataset, "document column": self.document_column}

    def check(self, table: TableReader, selection: ColumnSelection, users: UserRule | None) -> None:
        if self.document_column is None:
            return
        check_column(self.document_column, table.columns)
        if self.document_column in selection.texts:
            raise BadInputError(
                "rewritten-and-document",
                "'{column}' cannot be rewritten and name a document: choose another column",
                column=self.document_column,
            )
        if users is not None and users.mode == "concatenate":
            raise BadInputError(
                "named-documents-of-joined-rows",
                "{option.document_column} does not go with {option.user_mode[concatenate]}: the rows of a user become "
                "one text",
            )


@dataclass(frozen=True)
class LedgerPlace:
    """A ledger that a job opens when all that can be checked before is checked."""

    place: str
    dataset: str
    document_column: str | None = None

    @contextlib.contextmanager
    def opened(self) -> Iterator[Charging]:
        """The ledger, open while the job runs."""
        with open_ledger(self.place) as ledger:
            yield Charging(ledger, self.dataset, self.document_column, self.place)


class Reserved(NamedTuple):
    """The budget that is set aside for one block."""

    parts: list[Reservation]

    def commit(self) -> None:
        for part in self.parts:
            part.commit()


class BlockCharges:
    """Reserves each block of a job when it is handed out, and commits it when it is written."""

    def __init__(
        self,
        charging: Charging,
        mechanism: Mechanism,
        guarantee: Guarantee,
        key: StreamKey,
        command: str,
        width: int,
        label: Guarantee | None = None,
    ) -> None:
        self._charging = charging
        self._mechanism = mechanism
        self._guarantee = guarantee
        self._job = job_name(key)
        self._command = command
        self._width = width
        self._label = label
        self._open: dict[int, Reserved] = {}

    def reserved(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The same blocks, each only when its budget is set aside."""
        for block in blocks:
            self._open[block.index] = self.reserve(block)
            yield block

    def reserve(self, block: Block) -> Reserved:
        """The budget of the texts and, where labels are randomized, that of one label for each row."""
        dataset = self._charging.dataset
        units = self._mechanism.count_units(block.texts)
        texts = self._reserve(self._guarantee, block, subjects_of(block, units, self._width, dataset), "")
        if self._label is None:
            return Reserved([texts])
        labels = self._reserve(self._label, block, label_subjects_of(block, self._width, dataset), ":labels")
        return Reserved([texts, labels])

    def _reserve(self, guarantee: Guarantee, block: Block, subjects: list[Subject], kind: str) -> Reservation:
        # A job charges its data set once, with the largest of its blocks; labels add to that, so they are their own.
        return self._charging.ledger.reserve(
            guarantee,
            dataset=self._charging.dataset,
            subjects=subjects,
            token=f"{self._job}{kind}:{block.index}:{block.content.hex()}",
            command=self._command,
            job=f"{self._job}{kind}",
        )

    def commit(self, block: Block) -> None:
        self._open.pop(block.index).commit()


def subjects_of(block: Block, units: Sequence[int], width: int, dataset: str) -> list[Subject]:
    """Documents and users of a block whose rows have `width` texts each."""
    rows = units if width == 1 else [sum(units[start : start + width]) for start in range(0, len(units), width)]
    if block.documents:
        subjects = [
            Subject("document", f"{dataset}\0{name}", count) for name, count in zip(block.documents, rows, strict=True)
        ]
    else:
        subjects = [text_subject(text, count) for text, count in zip(block.texts, units, strict=True)]
    if block.users:
        of_user: Counter[str] = Counter()
        for user, count in zip(block.users, rows, strict=True):
            of_user[user] += count
        subjects += [Subject("user", user, count) for user, count in of_user.items()]
    if width > 1:
        subjects.append(Subject("dataset", dataset, max(rows, default=0)))  # a row is the sum of its texts
    return subjects


def text_subject(text: str, units: int) -> Subject:
    """The document that a text is. A zero in it would make the ledger take it for a name."""
    return Subject("document", text.replace("\0", ""), units)


def label_subjects_of(block: Block, width: int, dataset: str) -> list[Subject]:
    """Documents and users of a block, each with the labels of its rows: one for a row, however many texts it has.

    Each text of a row is charged with the label, since whoever recognizes one of them knows whose label it is.
    """
    if block.documents:
        subjects = [Subject("document", f"{dataset}\0{name}", 1) for name in block.documents]
    else:
        rows = (block.texts[start : start + width] for start in range(0, len(block.texts), width))
        subjects = [text_subject(text, 1) for row in rows for text in dict.fromkeys(row)]
    return [*subjects, *(Subject("user", user, rows) for user, rows in Counter(block.users).items())]


def job_name(key: StreamKey) -> str:
    """A name for the job from which its key cannot be found."""
    return hashlib.blake2b(key.key, digest_size=16, person=b"tacit-job").hexdigest()
