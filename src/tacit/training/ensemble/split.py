"""Which shard a user or a record belongs to: a keyed hash of its name alone, so that nobody moves anybody else.

A user with all rows, or a record, is in one shard, whatever else is in the data: adding or removing it changes that
shard and no other. The key is secret only so that nobody can write many texts that all land beside one person.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from tacit.text.identity import user_name
from tacit.training.users import group_by_user


def shard_of(owner: str, shards: int, key: bytes) -> int:
    """The shard of a user's name, or of the text of a record."""
    digest = hashlib.blake2b(
        owner.encode("utf-8", "surrogatepass"), key=key, digest_size=16, person=b"tacit-shard"
    ).digest()
    return int.from_bytes(digest, "little") % shards


def rows_of_shards(owners: Sequence[str], shards: int, key: bytes) -> list[list[int]]:
    """The numbers of the rows of each shard, in the order of the data."""
    rows: list[list[int]] = [[] for _ in range(shards)]
    for number, owner in enumerate(owners):
        rows[shard_of(owner, shards, key)].append(number)
    return rows


def names_of_users(names: Sequence[str], column: str) -> list[str]:
    """The names by which users are known, one for each row; a row that belongs to nobody is refused."""
    group_by_user(names, column)
    return [user_name(name) for name in names]
