"""Which rows belong to whom."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.errors import BadInputError
from tacit.text.identity import user_name


@dataclass(frozen=True)
class Users:
    """The numbers of the rows of each user, users in the order of their first row."""

    rows: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def longest(self) -> int:
        """Rows of the user who has most of them. Private."""
        return max(len(mine) for mine in self.rows)

    def with_more_than(self, most: int) -> int:
        """How many users have more rows than this. Private."""
        return sum(len(mine) > most for mine in self.rows)

    def fingerprint(self) -> str:
        return hashlib.blake2b(repr(self.rows).encode(), digest_size=16).hexdigest()


def group_by_user(names: Sequence[str], column: str = "user") -> Users:
    """The users of a column, named by `user_name`."""
    rows_of_user: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        cleaned = user_name(name)
        if not cleaned:
            raise BadInputError(
                "user-not-named",
                "row {row} has no value in '{column}': every row must belong to a user, so name them or leave such "
                "rows out",
                row=number + 1,
                column=column,
            )
        rows_of_user.setdefault(cleaned, []).append(number)
    if not rows_of_user:
        raise BadInputError("no-rows", "there are no rows to train on")
    if len(rows_of_user) == 1:
        raise BadInputError(
            "one-user-only",
            "all rows have the same value in '{column}': one user cannot be hidden among others, so choose another "
            "column",
            column=column,
        )
    return Users(tuple(tuple(mine) for mine in rows_of_user.values()))
