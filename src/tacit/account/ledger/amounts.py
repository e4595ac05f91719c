"""Amounts of spent budget as they are shown: sums that a proof allows, accounts that are kept apart, and the lines of
the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.account.ledger.books import Balance
from tacit.account.ledger.charges import NOTHING, PLAIN, PRESENCE
from tacit.guarantee import Guarantee
from tacit.rounding import rounded_up


@dataclass(frozen=True)
class Account:
    """Costs of one notion and metric that has no plain epsilon: `epsilon` times the distance, plus `added`."""

    measure: str
    epsilon: float
    added: float
    delta: float
    releases: int


@dataclass(frozen=True)
class Spent:
    """The spending of a subject: the plain sum, and beside it, never added, what has no plain epsilon.

    presence   whether the sum is that of adding or removing a record, which all releases promise; otherwise it is that
               of replacing one
    """

    epsilon: float
    delta: float
    releases: int
    apart: tuple[Account, ...] = ()
    presence: bool = False

    def __str__(self) -> str:
        delta = f", delta {rounded_up(self.delta, 3)}" if self.delta else ""
        count = "1 release" if self.releases == 1 else f"{self.releases:,} releases"
        apart = "".join(f"; beside it {account.releases:,} of {account.measure}" for account in self.apart)
        return f"epsilon {rounded_up(self.epsilon)}{delta} ({count}){apart}"


@dataclass(frozen=True)
class ReleaseRecord:
    """One line of the ledger. `epsilon` and `delta` are what it cost one document of the data set, if that is plain."""

    id: int
    token: str
    job: str | None
    dataset: str
    unit: str
    guarantee: Guarantee
    command: str
    version: str
    created: str
    state: str
    subjects: int
    epsilon: float | None
    delta: float | None


def sum_of(balances: Sequence[Balance]) -> Spent:
    """The sum of the plain accounts, and the others each for itself."""
    plain = [balance for balance in balances if balance.measure == PLAIN]
    presence = [balance for balance in balances if balance.measure == PRESENCE]
    all_presence = bool(presence) and sum(b.releases for b in presence) == sum(b.releases for b in plain)
    if all_presence:
        plain = presence  # all of them hide whether a record is there at all
    total = NOTHING
    for balance in plain:
        total = total.plus(balance.charge)
    apart: dict[str, Account] = {}
    for balance in balances:
        if balance.measure not in (PLAIN, PRESENCE) and balance.releases:
            before = apart.get(balance.measure, Account(balance.measure, 0.0, 0.0, 0.0, 0))
            charge = balance.charge.plus(
                NOTHING._replace(epsilon=before.epsilon, added=before.added, delta=before.delta)
            )
            apart[balance.measure] = Account(balance.measure, *charge, before.releases + balance.releases)
    releases = sum(balance.releases for balance in plain)
    return Spent(total.epsilon + total.added, min(1.0, total.delta), releases, tuple(apart.values()), all_presence)
