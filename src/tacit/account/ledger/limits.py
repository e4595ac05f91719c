"""Limits, and the one question asked before a release: would anybody have spent more than allowed?

A limit is a plain (epsilon, delta) for each subject of a kind, or for one named subject, whose own limit then counts in
place of the general one. With a data set it only counts releases of that data set; a limit over all data sets and one
within a data set must both hold.

A subject about which anything was released without a plain epsilon has no sum to compare, so every limit refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tacit.account.ledger.charges import DATASET, NOTHING, Charge
from tacit.errors import TacitError
from tacit.rounding import rounded_down, rounded_up

TOLERANCE: Final = 1e-9
"""Sums of epsilons are compared up to one part in a billion: room for their rounding."""
ARITHMETIC: Final = 1e-3
"""What finite arithmetic adds at most (some 1e-6 per token) is not held against a limit below this share of it."""


class BudgetExceededError(TacitError):
    """A release would break a limit. Nothing was drawn, and nothing was counted.

    kind       whose limit it is, such as "document"
    of_others  the sentence tells what earlier releases have spent, which may be somebody else's: whoever answers
               strangers must not pass it on
    """

    def __init__(self, code: str, sentence: str, /, *, kind: str = "", of_others: bool = True, **fields: Any) -> None:
        super().__init__(code, sentence, kind=kind, **fields)
        self.kind = kind
        self.of_others = of_others


class Limit(NamedTuple):
    """`name` is the hash of the one subject it is for, or empty; `dataset` the one data set, or empty."""

    kind: str
    name: str
    dataset: str
    epsilon: float
    delta: float

    def allows(self, total: Charge) -> bool:
        room = 1.0 + TOLERANCE
        negligible = total.added <= self.epsilon * ARITHMETIC
        return negligible and total.epsilon <= self.epsilon * room and total.delta <= self.delta * room

    def __str__(self) -> str:
        delta = f" and delta {rounded_up(self.delta)}" if self.delta else ""
        scope = f" of '{self.dataset}'" if self.dataset else ""
        return f"epsilon {rounded_up(self.epsilon)}{delta} per {called(self.kind)}{scope}"


@dataclass
class Standing:
    """The standing of one subject: its plain charges by data set, and where it has others."""

    plain: dict[str, Charge] = field(default_factory=dict)
    apart: dict[str, str] = field(default_factory=dict)

    def total(self, datasets: Iterable[str]) -> Charge:
        total = NOTHING
        for dataset in datasets:
            total = total.plus(self.plain.get(dataset, NOTHING))
        return total

    @property
    def datasets(self) -> set[str]:
        return {*self.plain, *self.apart}


UNKNOWN: Final = Standing()


class Rules:
    """The limits of one kind of subject within one scope."""

    def __init__(self, limits: Iterable[Limit], kind: str, scope: str) -> None:
        self.scope = scope
        self.general: Limit | None = None
        self.named: dict[bytes, Limit] = {}
        for limit in limits:
            if limit.kind == kind and limit.dataset == scope:
                if limit.name:
                    self.named[bytes.fromhex(limit.name)] = limit
                else:
                    self.general = limit

    def __bool__(self) -> bool:
        return self.general is not None or bool(self.named)

    def limit_of(self, subject: bytes) -> Limit | None:
        return self.named.get(subject, self.general)


def check(
    rules: Rules,
    dataset: str,
    new: Mapping[bytes, Charge],
    standings: Mapping[bytes, Standing],
    everybody: Standing,
) -> None:
    """Refuse if the charges `new` would take any subject over its limit.

    `everybody` is what releases about whole data sets (trained models) cost each of their documents or users; it counts
    for the subjects that are known to be in those data sets.
    """
    over: list[tuple[Limit, Charge, Charge]] = []
    nothing_about_all = not everybody.datasets
    for subject, charge in new.items():
        limit = rules.limit_of(subject)
        if limit is None:
            continue
        standing = standings.get(subject, UNKNOWN)
        if standing is UNKNOWN and nothing_about_all:  # the usual case, and the fast one
            if not limit.allows(charge):
                over.append((limit, NOTHING, charge))
            continue
        seen = {dataset, *standing.datasets}
        if rules.scope:
            seen &= {rules.scope}
        for place in seen:
            if reason := standing.apart.get(place) or everybody.apart.get(place):
                raise BudgetExceededError(
                    "limit-cannot-be-kept",
                    "the limit of {limit} cannot be kept: one of them was part of a release without a plain epsilon "
                    "({reason}), so there is no sum to compare; remove the limit, or leave it out",
                    limit=str(limit),
                    reason=reason,
                    kind=limit.kind,
                )
        spent = standing.total(seen).plus(everybody.total(seen))
        if not limit.allows(spent.plus(charge)):
            over.append((limit, spent, charge))
    if over:
        raise _broken(over, len(new))


def _broken(over: list[tuple[Limit, Charge, Charge]], subjects: int) -> BudgetExceededError:
    """The refusal of a release that would break these limits; each comes with what was spent and what is added."""
    limit, spent, charge = max(over, key=lambda item: item[1].plus(item[2]).epsilon)
    if limit.kind == DATASET:
        who = f": the data set '{limit.dataset}'"
    elif subjects == 1:
        who = f": one {limit.kind}"
    else:
        who = f" for {len(over):,} of {subjects:,} {limit.kind}s: the one with the most"
    return BudgetExceededError(
        "limit-broken",
        "the limit of {limit} would be broken{who} has spent {spent}, {left} is left, and this release adds {added}; "
        "nothing of it was drawn: raise the limit, or release less",
        limit=str(limit),
        who=who,
        spent=shown(spent),
        left=_left(limit, spent),
        added=shown(charge),
        kind=over[0][0].kind,
    )


def _left(limit: Limit, spent: Charge) -> str:
    """The rest of a limit, rounded down: so much is certainly allowed."""
    delta = f" and delta {rounded_down(max(0.0, limit.delta - spent.delta), 3)}" if limit.delta else ""
    return f"epsilon {rounded_down(max(0.0, limit.epsilon - spent.epsilon))}{delta}"


def called(kind: str) -> str:
    """A kind of subject in words; a limit per data set is about one document of it."""
    return "document" if kind == DATASET else kind


def shown(charge: Charge) -> str:
    delta = f" and delta {rounded_up(charge.delta, 3)}" if charge.delta else ""
    return f"epsilon {rounded_up(charge.epsilon)}{delta}"
