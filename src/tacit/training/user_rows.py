"""The rows of users that count in a step: at most so many of each user, drawn anew for every step.

Proof obligation: which rows of a user count, and how many, must depend on no other user. Every row gets a number of its
own, drawn independently and uniformly; of a user with more than `most` rows those with the smallest numbers count. So
the rows of a user are a uniform draw among their own, independent of the draws of all others; a user more or less adds
or takes away draws and changes the law of no other.

Drawn anew: each step is private given any choice of rows, so a choice that is random is private too, and no row of a
user is lost for good.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadParameterError
from tacit.noise.source import StreamKey
from tacit.training.users import Users


@dataclass(frozen=True)
class UserRows:
    """Users with their rows, of which at most `most` count in a step."""

    users: Users
    most: int
    _rows: list[NDArray[np.int64]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.most < 1:
            raise BadParameterError(
                "impossible-count", "of each user at least 1 row must count, not {count}", count=self.most
            )
        object.__setattr__(self, "_rows", [np.array(mine, dtype=np.int64) for mine in self.users.rows])

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(len(mine) for mine in self._rows)

    @property
    def counted(self) -> int:
        """How many rows count in a step: at most `most` of each user."""
        return sum(min(len(mine), self.most) for mine in self._rows)

    def of(self, units: NDArray[np.int64], step: int, key: StreamKey) -> list[NDArray[np.int64]]:
        """The rows of each of these users that count in a step, in their order."""
        numbers = key.stream(step, b"rows of users").generator.random(self.rows)
        return [self._chosen(self._rows[unit], numbers) for unit in units.tolist()]

    def all(self, step: int, key: StreamKey) -> NDArray[np.int64]:
        """The rows of all users that count in a step: always as many, `counted`."""
        return np.concatenate(self.of(np.arange(len(self.users)), step, key))

    def _chosen(self, rows: NDArray[np.int64], numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        if len(rows) <= self.most:
            return rows
        chosen: NDArray[np.int64] = np.sort(rows[np.argsort(numbers[rows], kind="stable")[: self.most]])
        return chosen
