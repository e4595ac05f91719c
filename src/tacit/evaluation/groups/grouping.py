"""The groups of test rows, and who wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.arrays import Integers
from tacit.errors import BadInputError

MOST_GROUPS = 100
WITHOUT_NAME = "(empty)"


@dataclass(frozen=True)
class RowGroups:
    """The group of each row.

    column  what the groups are called
    names   the groups, in the order of their codes
    codes   the group of each row
    users   the user of each row, numbered from 0; None where every row is on its own
    """

    column: str
    names: tuple[str, ...]
    codes: Integers = field(repr=False)
    users: Integers | None = field(repr=False, default=None)


def groups_of_column(column: str, values: Sequence[str], users: Sequence[str] | None = None) -> RowGroups:
    """The groups that a column of the test rows names; empty cells are a group of their own."""
    named = [value.strip() or WITHOUT_NAME for value in values]
    names, codes = np.unique(np.array(named, dtype=object), return_inverse=True)
    if len(names) < 2:
        raise BadInputError(
            "one-group",
            "all test rows have the same value in '{column}': a comparison of groups needs at least two",
            column=column,
        )
    if len(names) > MOST_GROUPS:
        raise BadInputError(
            "too-many-groups",
            "'{column}' has {groups:,} different values, and at most {most} groups can be compared: name a column that "
            "says which group a row belongs to",
            column=column,
            groups=len(names),
            most=MOST_GROUPS,
        )
    return RowGroups(column, tuple(map(str, names)), codes.astype(np.int64), numbered(users))


def numbered(users: Sequence[str] | None) -> Integers | None:
    """Users as numbers from 0."""
    if users is None:
        return None
    return np.unique(np.array(list(users), dtype=object), return_inverse=True)[1].astype(np.int64)
