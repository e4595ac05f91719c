"""Shares and areas under ROC curves with intervals that are never degenerate.

Shares: Clopper-Pearson. AUC: Newcombe's interval (Statistics in Medicine 2006, method 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm, rankdata

from tacit.arrays import Floats
from tacit.auditing.binomial import interval
from tacit.auditing.models.one_run import check_confidence
from tacit.errors import BadParameterError


@dataclass(frozen=True)
class HitRate:
    """A share with its Clopper-Pearson interval."""

    hits: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.hits / self.of


def clopper_pearson(count: int, of: int, confidence: float = 0.95) -> HitRate:
    """The exact interval of a share."""
    if not 0 <= count <= of or of < 1:
        raise BadParameterError(
            "impossible-share", "a share counts from 0 to all of at least one, not {found} of {of}", found=count, of=of
        )
    tail = (1 - check_confidence(confidence)) / 2
    return HitRate(count, of, *interval(count, of, 2 * tail))


def auc(members: Floats, non_members: Floats) -> float:
    """Probability that a member has the higher signal, ties counting half."""
    ranks = rankdata(np.concatenate([members, non_members]))
    m, n = len(members), len(non_members)
    return float((ranks[:m].sum() - m * (m + 1) / 2) / (m * n))


def auc_interval(measured: float, members: int, non_members: int, confidence: float = 0.95) -> tuple[float, float]:
    """Newcombe's method 5: all values theta with |found - theta| <= z sqrt(V(theta)), V of Hanley & McNeil 1982."""
    z = float(norm.isf((1 - check_confidence(confidence)) / 2))
    star = (members + non_members) / 2 - 1

    def excess(theta: float) -> float:
        variance = theta * (1 - theta) * (1 + star * (1 - theta) / (2 - theta) + star * theta / (1 + theta))
        return abs(measured - theta) - z * math.sqrt(variance / (members * non_members))

    # At 0 and 1 themselves the variance vanishes: the root that counts lies inside.
    low = 0.0 if measured <= 0 else float(brentq(excess, 0.0, min(measured, 1 - 1e-9)))
    high = 1.0 if measured >= 1 else float(brentq(excess, max(measured, 1e-9), 1.0))
    return low, high
