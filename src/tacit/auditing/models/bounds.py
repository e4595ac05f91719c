"""When members and non-members, or canaries, prove a lower bound on epsilon.

The bound from one training run (`one_run`) needs records that were included by independent fair coins. It is proven

    for canaries, whose coins were tossed when they were made,
    for members and non-members by fair coins, as they are, if the claim is about adding or removing a record,
    for a random split of one pool, after a subset is drawn that fair coins could have given (`fair_subset`).

For a claim about replacing a record, coins are handled like a split: the two records of a pair change together. Files
whose split is not known give a number and refute nothing.

Beside it stands the bound for Gaussian trade-off curves (`curve_audit`): larger, for an assumption that it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.stats import binomtest

from tacit.auditing.models.canaries import Canary, CanaryLosses, observed_canaries
from tacit.auditing.models.claimed import ModelClaim
from tacit.auditing.models.curve_audit import audit_gaussian, gaussian_section
from tacit.auditing.models.one_run import (
    SMALLEST_GUESSES,
    Observations,
    audit_observations,
    changed_records,
    fair_subset,
    one_run_section,
)
from tacit.errors import BadInputError
from tacit.guarantee import Adjacency
from tacit.report import Section

Split = Literal["coins", "random", "unknown"]
"""How it was decided before training which texts are members: a fair coin for each, a random split of one pool, or in
another way."""


USUAL_DELTA = 1e-5
IMPLAUSIBLE = 1e-6
"""Sizes that fair coins give with a smaller probability are not believed to come from coins."""

CONDITION = "members and non-members are a random split of one pool (say so with the option 'split')"


@dataclass(frozen=True)
class BoundSettings:
    """The claim to hold a bound against, if there is one, and how sure the bound is."""

    claim: ModelClaim | None
    confidence: float
    seed: int

    @property
    def adjacency(self) -> Adjacency:
        return Adjacency.ADD_REMOVE if self.claim is None else self.claim.adjacency

    @property
    def delta(self) -> float:
        return USUAL_DELTA if self.claim is None else self.claim.delta

    @property
    def epsilon(self) -> float | None:
        return None if self.claim is None else self.claim.epsilon


def bound_of_members(observed: Observations, split: Split, settings: BoundSettings) -> list[Section]:
    """The lower bound that members and non-members give, proven as far as their split is random; nothing where there
    are too few of them."""
    coins = split == "coins"
    if coins and binomtest(len(observed.included), observed.canaries, 0.5).pvalue < IMPLAUSIBLE:
        raise BadInputError(
            "not-fair-coins",
            "{members:,} members and {non_members:,} non-members cannot come from fair coins: use "
            "{option.split[random]} for a random split of other sizes",
            members=len(observed.included),
            non_members=len(observed.excluded),
        )
    by_coins = coins and settings.adjacency is Adjacency.ADD_REMOVE
    fair = observed if by_coins else _fair(observed, settings.seed)
    if fair is None or (not by_coins and fair.canaries < SMALLEST_GUESSES):
        return []
    changes = changed_records(settings.adjacency, coins=by_coins)
    audit = audit_observations(
        fair, delta=settings.delta, confidence=settings.confidence, changes=changes, seed=settings.seed
    )
    condition = "" if split != "unknown" else CONDITION
    return [
        one_run_section(audit, settings.epsilon, proven=split != "unknown", condition=CONDITION),
        *_gaussian(fair, settings, settings.confidence, changes, "Lower bound on epsilon", condition),
    ]


def bounds_of_canaries(
    losses: CanaryLosses, canaries: Sequence[Canary], settings: BoundSettings, *, baseline: CanaryLosses | None = None
) -> list[Section]:
    """One lower bound for each number of insertions, all of them together at the confidence of the settings."""
    by_coins = settings.adjacency is Adjacency.ADD_REMOVE
    levels = sorted({canary.repeats for canary in canaries})
    sections = []
    for repeats in levels:
        group = [canary for canary in canaries if canary.repeats == repeats]
        if len({canary.included for canary in group}) < 2:
            continue
        observed = observed_canaries(losses, group, baseline=baseline)
        fair = observed if by_coins else _fair(observed, settings.seed)
        if fair is None or fair.canaries < SMALLEST_GUESSES:
            continue
        confidence = 1 - (1 - settings.confidence) / len(levels)
        changes = changed_records(settings.adjacency, coins=by_coins, repeats=repeats)
        audit = audit_observations(
            fair, delta=settings.delta, confidence=confidence, changes=changes, seed=settings.seed
        )
        times = "once" if repeats == 1 else f"{repeats} times"
        title = f"Lower bound on epsilon from canaries inserted {times}"
        sections.append(one_run_section(audit, settings.epsilon, title=title))
        sections += _gaussian(fair, settings, confidence, changes, title)
    return sections


def _gaussian(
    fair: Observations, settings: BoundSettings, confidence: float, changes: int, title: str, condition: str = ""
) -> list[Section]:
    """The bound for Gaussian curves; none for pure claims, which no Gaussian curve keeps."""
    if settings.delta == 0:
        return []
    audit = audit_gaussian(
        fair, delta=settings.delta, confidence=confidence, changes=changes, claim=settings.epsilon, seed=settings.seed
    )
    return [gaussian_section(audit, settings.epsilon, title=f"{title}, for Gaussian curves", condition=condition)]


def _fair(observed: Observations, seed: int) -> Observations | None:
    """A part that fair coins could have given; None if one side of it is empty."""
    into, out = fair_subset(len(observed.included), len(observed.excluded), seed)
    if len(into) < 1 or len(out) < 1:
        return None
    return Observations(observed.included[into], observed.excluded[out])
