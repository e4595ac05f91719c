"""The result of an exact check: a verdict with its witnesses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tacit.auditing.claims.claim import Claim

TOLERANCE = 1e-9


class ClaimVerdict(StrEnum):
    REFUTED = "refuted"
    HOLDS = "holds for everything that was checked"
    OPEN = "open"


@dataclass(frozen=True)
class Witness:
    """Two inputs and an output, with what was found and what was allowed."""

    left: str
    right: str
    output: str | None
    loss: float
    bound: float
    distance: float | None = None
    delta: float | None = None


@dataclass(frozen=True)
class ExactResult:
    """The result of an exact check. `tightest` and `steepest` are largest values over all pairs; where only an interval
    is known, `..._at_most` is its upper end and the witness attains the lower one."""

    claim: Claim
    scope: str
    pairs: int
    worst: Witness
    excess: float
    excess_at_most: float
    largest: Witness
    tightest: float
    tightest_at_most: float
    steepest: float | None = None
    steepest_at_most: float | None = None
    shared_output: Witness | None = None
    tolerance: float = TOLERANCE

    @property
    def verdict(self) -> ClaimVerdict:
        if self.excess > self.tolerance or self.shared_output is not None:
            return ClaimVerdict.REFUTED
        return ClaimVerdict.HOLDS if self.excess_at_most <= self.tolerance else ClaimVerdict.OPEN
