"""Private rows as an audit handles them: few, in memory, with and without a target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Ids
from tacit.errors import BadInputError
from tacit.matching.sums import RowSource, rows_in_memory
from tacit.noise.source import public_generator


@dataclass(frozen=True)
class AuditedRows:
    """Texts, the values of their label column (none with public topics), and their users, if the promise is made to
    users."""

    texts: Sequence[str]
    labels: Sequence[object] = ()
    users: Sequence[str] = ()

    def __post_init__(self) -> None:
        for column in (self.labels, self.users):
            if len(column) not in (0, len(self.texts)):
                raise BadInputError("uneven-columns", "there must be as many labels and users as texts")

    def __len__(self) -> int:
        return len(self.texts)

    def at(self, places: Iterable[int]) -> AuditedRows:
        """The rows at these places."""
        chosen = list(places)
        return AuditedRows(
            [self.texts[row] for row in chosen],
            [self.labels[row] for row in chosen] if len(self.labels) else (),
            [self.users[row] for row in chosen] if len(self.users) else (),
        )

    def with_rows(self, added: AuditedRows) -> AuditedRows:
        """These rows and then the others."""
        return AuditedRows([*self.texts, *added.texts], [*self.labels, *added.labels], [*self.users, *added.users])

    def source(self) -> RowSource:
        """The rows as the release reads them."""
        return rows_in_memory(self.texts, list(self.labels) or None, list(self.users) or None)


def sample_of(rows: AuditedRows, count: int, seed: int, without: Iterable[int] = ()) -> AuditedRows:
    """So many of the rows, drawn by a public seed, none of them at the places `without`; with users, all rows of the
    users that are drawn, until there are that many."""
    order = public_generator(seed).permutation(len(rows))
    left_out = set(without)
    if not len(rows.users):
        return rows.at([row for row in order.tolist() if row not in left_out][:count])
    gone = {rows.users[row] for row in left_out}
    chosen: list[int] = []
    for user in dict.fromkeys(rows.users[row] for row in order.tolist()):
        if user in gone:
            continue
        if len(chosen) >= count:
            break
        chosen += rows_of_user(rows, user).tolist()
    return rows.at(sorted(chosen))


def rows_of_user(rows: AuditedRows, user: str) -> Ids:
    """The places of the rows of a user."""
    return np.flatnonzero(np.array([other == user for other in rows.users], dtype=bool))
