"""Private records in batches, each by a keyed hash of itself alone.

Which batch a record is in must not depend on the other records: with a record more or less, exactly one batch changes,
by exactly that record. Then batches are disjoint releases, and the price of one is the price of all. A batch that is
cut from a list by position would not do: a record at the top of a file moves every other one to the next place.

Copies of the same record are told apart by their number (first, second ...), so that they spread over the batches: one
copy more is the copy with the next number, and the others stay where they are.

A record is computed in the row that its *seat* names, a keyed hash of itself alone as well (`seated`). So a record more
or less moves no other record to another row, whatever their number, and a processor that adds up the numbers of one row
in another order than those of the next changes nothing about the others.

The key is that of the run: it is secret, drawn by the operating system, and erased with the noise.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PrivateRecord:
    """A private text under a public label; `user` is whose it is, where that counts."""

    text: str
    label: str = ""
    user: str = ""


@dataclass(frozen=True)
class SeatedText:
    """The text of a record, and a number that says in which row it is computed."""

    text: str
    seat: int


def keyed_digests(records: Sequence[PrivateRecord], key: bytes, purpose: bytes) -> list[int]:
    """A secret number of 128 bits for each record: of its content and of how many copies of it there are before."""
    copies: dict[PrivateRecord, int] = defaultdict(int)
    digests = []
    for record in records:
        fields = (record.user, record.label, record.text, str(copies[record]))
        copies[record] += 1
        encoded = [field.encode("utf-8", "surrogatepass") for field in fields]
        content = b"".join(len(part).to_bytes(8, "little") + part for part in encoded)
        digest = hashlib.blake2b(content, key=key, digest_size=16, person=purpose.ljust(16)[:16]).digest()
        digests.append(int.from_bytes(digest, "little"))
    return digests


def in_batches(records: Sequence[PrivateRecord], batches: int, key: bytes) -> list[list[PrivateRecord]]:
    """The records in so many batches, in an order that is a function of the content alone."""
    cut: list[list[tuple[int, PrivateRecord]]] = [[] for _ in range(batches)]
    for digest, record in zip(keyed_digests(records, key, b"tacit-batch"), records, strict=True):
        cut[digest % batches].append((digest, record))
    return [[record for _, record in sorted(batch, key=lambda item: item[0])] for batch in cut]


def seated(batch: Sequence[PrivateRecord], key: bytes) -> list[SeatedText]:
    """The records of a batch with their seats.

    Copies in a batch have the numbers 0, 1, 2 ..., so a copy more is one seat more, and the seats of the others stay.
    """
    seats = keyed_digests(batch, key, b"tacit-seat")
    return [SeatedText(record.text, seat) for record, seat in zip(batch, seats, strict=True)]


def first_of_users(records: Sequence[PrivateRecord], key: bytes) -> list[PrivateRecord]:
    """One record of each user, chosen by a keyed hash of that user's records alone."""
    least: dict[str, tuple[int, PrivateRecord]] = {}
    for digest, record in zip(keyed_digests(records, key, b"tacit-user"), records, strict=True):
        if record.user not in least or digest < least[record.user][0]:
            least[record.user] = (digest, record)
    return [record for _, record in least.values()]


def in_sets_of_users(records: Sequence[PrivateRecord], sets: int, key: bytes) -> list[list[PrivateRecord]]:
    """All records of a user in one of so many sets, chosen by a keyed hash of the user alone."""
    users = sorted({record.user for record in records})
    digests = keyed_digests([PrivateRecord("", user=user) for user in users], key, b"tacit-owner")
    place = {user: digest % sets for user, digest in zip(users, digests, strict=True)}
    cut: list[list[PrivateRecord]] = [[] for _ in range(sets)]
    for record in in_batches(records, 1, key)[0]:
        cut[place[record.user]].append(record)
    return cut


def digest_of_records(records: Sequence[PrivateRecord], key: bytes) -> str:
    """A keyed name of these records as a multiset, by which a run knows them again; without the key it says nothing."""
    total = sum(keyed_digests(records, key, b"tacit-known")) % (1 << 128)
    return f"{len(records)}-{total:032x}"
