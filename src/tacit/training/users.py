"""Which rows belong to whom."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from tacit.errors import BadInputError
from tacit.text.identity import name_identity


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


def user_name(name: str) -> str:
    """The same for all spellings of one user, and "" where no user is named.

    Names are compared as everywhere (`tacit.text.identity`): white space around them, and how Unicode composes their
    letters, make no second person. Nor does it how a number was stored: a column with a missing value becomes one of
    floating-point numbers in some libraries. Taking two names for one protects both.

    >>> user_name("7.0"), user_name(" 7 "), user_name("1e3"), user_name("nan")
    ('7', '7', '1000', '')
    """
    cleaned = name_identity(name)
    if cleaned == "nan":
        return ""
    if not WRITTEN_AS_FLOAT.fullmatch(cleaned):
        return cleaned
    whole = Decimal(cleaned)
    return str(int(whole)) if whole == whole.to_integral_value() else cleaned


WRITTEN_AS_FLOAT: Final = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30}([eE][+-]?[0-9]{1,2})?|[eE][+-]?[0-9]{1,2})")


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
