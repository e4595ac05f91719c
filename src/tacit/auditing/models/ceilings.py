"""The limits of an attack on membership: what needs no model at all, and what a claim allows at most.

(epsilon, delta)-DP bounds every attack (Kairouz, Oh & Viswanath 2015):

    TPR <= min(e**epsilon FPR + delta, 1 - (1 - delta - FPR) / e**epsilon),

and so the area under its ROC curve. Both hold on average over training; a single run may lie above by chance, within
the intervals of its rates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tacit.auditing.models.blind import Blind
from tacit.auditing.models.membership import FALSE_ALARMS, MembershipAttack
from tacit.auditing.models.one_run import widened
from tacit.report import AtMost, Table


def allowed_rate(false_alarm: float, epsilon: float, delta: float) -> float:
    """The largest true-positive rate at this false-positive rate."""
    rising = math.exp(min(epsilon, 700.0)) * false_alarm + delta
    falling = 1 - math.exp(-epsilon) * (1 - delta - false_alarm)
    return min(1.0, rising, falling)


def allowed_auc(epsilon: float, delta: float) -> float:
    """The area under that curve: two lines that meet where they cross, and 1 in the last delta."""
    meeting = (1 - delta) * math.exp(-epsilon) / (1 + math.exp(-epsilon))
    height = 1 - math.exp(-epsilon) * (1 - delta - meeting)
    return min(1.0, meeting * (delta + height) / 2 + (1 - delta - meeting) * (height + 1) / 2 + delta)


def ceiling_table(
    attacks: Sequence[MembershipAttack], blind_test: Blind, claim: tuple[float, float] | None, changes: int
) -> Table:
    """Guessing, words alone, the best attack, and what the claimed epsilon and delta allow for one text, which changes
    so many records."""
    best = max(attacks, key=lambda attack: attack.auc)
    rows: list[tuple[object, ...]] = [
        ("guessing (floor)", 0.5, *FALSE_ALARMS),
        ("words alone, without the model (floor)", blind_test.auc, *(None for _ in FALSE_ALARMS)),
        (f"best attack: {best.name}", best.auc, *(caught.rate.share for caught in best.caught)),
    ]
    if claim is not None:
        wide = widened(*claim, changes)
        limits = (allowed_auc(*wide), *(allowed_rate(level, *wide) for level in FALSE_ALARMS))
        rows.append(("allowed by the claim (ceiling)", *(AtMost(limit) for limit in limits)))
    return Table(
        "Floors and ceilings",
        ("", "AUC", *(f"caught at {level:.1%} false alarms" for level in FALSE_ALARMS)),
        rows,
        note="The ceiling holds on average over training runs; the proven comparison with the claim is the lower bound "
        "on epsilon.",
    )
