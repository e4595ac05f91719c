"""Membership inference: can one tell from the model whether a text was in its training data?

Signals, higher for texts that look trained on:

    loss        -mean loss                                   Yeom et al., CSF 2018
    reference   mean loss of a reference model - mean loss   Sablayrolles 2019; Watson et al. 2022
    zlib        -loss / bytes of the text under zlib         Carlini et al. 2021
    length      -loss / characters of the text
    quantile    how far the loss lies below what is usual for such a text (`difficulty`)
    rmia        against the ratio of other texts to a reference model (`rmia`)
    min-k++     the least expected tokens of a text in a causal language model (`min_k`)
    shadow      ln N(s; in) - ln N(s; out), Gaussians fitted per text to models trained with and without it
                (LiRA, Carlini et al., S&P 2022); offline: only models without it, s in standard deviations of them

Measured (`rates`): the area under the ROC curve with Newcombe's interval; the true-positive rate where at most 0.1 % or
1 % of the non-members are accused, with Clopper-Pearson intervals; the advantage TPR - FPR at a threshold chosen on one
half of the texts and measured on the other.

An epsilon from rates: (epsilon, delta)-DP implies TPR <= e**epsilon FPR + delta (Kairouz, Oh & Viswanath 2015), so
Clopper-Pearson bounds of both rates bound epsilon from below. That is a statement about the training algorithm only
where each text is a trial of its own, from its own training run. Texts of one single run are not independent trials:
for those `tacit.auditing.models.one_run` has a bound that is proven, and it is the one that verdicts use.

A gap between members and non-members may also come from the files themselves: see `blind`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.models.blind import Blind, blind_finding
from tacit.auditing.models.one_run import check_confidence
from tacit.auditing.models.rates import HitRate, auc, auc_interval, clopper_pearson
from tacit.auditing.models.scores import TextLosses
from tacit.errors import BadInputError
from tacit.noise.source import public_generator
from tacit.report import Figure, Finding, Light, Section, Table
from tacit.report.plot import axes, figure

FALSE_ALARMS = (0.001, 0.01)
SMALLEST_SIDE = 10
RED_AUC, RED_RATE = 0.6, 2.0


# Signals ----------------------------------------------------------------------------------------------------------


def loss_signal(losses: TextLosses) -> Floats:
    return -losses.mean


def reference_signal(losses: TextLosses, reference: TextLosses) -> Floats:
    """The amount by which the text is easier for the model than for one that did not see it."""
    return reference.mean - losses.mean


def zlib_signal(losses: TextLosses, texts: Sequence[str]) -> Floats:
    sizes = np.array([len(zlib.compress(text.encode("utf-8", "replace"))) for text in texts], dtype=np.float64)
    return -losses.total / sizes


def length_signal(losses: TextLosses, texts: Sequence[str]) -> Floats:
    return -losses.total / np.array([max(1, len(text)) for text in texts], dtype=np.float64)


# What an attack achieves ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CaughtAt:
    """Members caught by the loosest threshold that accuses at most `false_alarm` of the non-members.

    `resolved` is false where there are too few non-members to see so small a rate; then none is accused.
    """

    false_alarm: float
    rate: HitRate
    resolved: bool


@dataclass(frozen=True)
class MembershipAttack:
    """The success of one signal.

    advantage   TPR - FPR on the half of the texts that did not choose the threshold, with its interval
    epsilon     lower bound from those rates, if each text were a trial of its own
    """

    name: str
    members: int
    non_members: int
    auc: float
    auc_low: float
    auc_high: float
    caught: tuple[CaughtAt, ...]
    advantage: float
    advantage_low: float
    advantage_high: float
    epsilon: float
    delta: float
    confidence: float

    @property
    def works(self) -> bool:
        return self.auc_low > 0.5


def caught_at(members: Floats, non_members: Floats, false_alarm: float, confidence: float) -> CaughtAt:
    """The threshold is a score of a non-member, so members and threshold are independent and the interval is exact."""
    allowed = int(false_alarm * len(non_members) + 1e-9)
    threshold = np.sort(non_members)[::-1][allowed] if allowed < len(non_members) else -np.inf
    caught = int((members > threshold).sum())
    return CaughtAt(false_alarm, clopper_pearson(caught, len(members), confidence), allowed >= 1)


def epsilon_from_rates(
    caught: int, members: int, accused: int, non_members: int, *, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """The epsilon that true and false positives imply, in either direction, if all are independent trials:

    max of ln((TPR_low - delta) / FPR_high) and ln((TNR_low - delta) / FNR_high), each bound with its share of the error
    """
    each = 1 - (1 - check_confidence(confidence)) / 2  # two intervals hold at once
    positive, negative = clopper_pearson(caught, members, each), clopper_pearson(accused, non_members, each)
    best = 0.0
    for above, below in ((positive.low, negative.high), (1 - negative.high, 1 - positive.low)):
        if above > delta and below > 0:
            best = max(best, math.log((above - delta) / below))
    return best


def attack(
    name: str,
    members: Floats,
    non_members: Floats,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    seed: int = 0,
) -> MembershipAttack:
    """All numbers of one signal."""
    check_confidence(confidence)
    inside, outside = np.asarray(members, dtype=np.float64), np.asarray(non_members, dtype=np.float64)
    if min(len(inside), len(outside)) < SMALLEST_SIDE:
        raise BadInputError(
            "too-few-members",
            "membership needs at least {least} members and as many non-members, and there are {members} and "
            "{non_members}: give more texts",
            least=SMALLEST_SIDE,
            members=len(inside),
            non_members=len(outside),
        )
    if np.isnan(inside).any() or np.isnan(outside).any():
        raise BadInputError("not-finite", "a signal is not a number: leave out texts without any token to predict")
    area = auc(inside, outside)
    low, high = auc_interval(area, len(inside), len(outside), confidence)
    generator = public_generator(seed)
    halves = [
        (values[order[: len(values) // 2]], values[order[len(values) // 2 :]])
        for values in (inside, outside)
        for order in (generator.permutation(len(values)),)
    ]
    threshold = _best_threshold(halves[0][0], halves[1][0])
    caught, accused = int((halves[0][1] >= threshold).sum()), int((halves[1][1] >= threshold).sum())
    m, n = len(halves[0][1]), len(halves[1][1])
    each = 1 - (1 - confidence) / 2
    true, false = clopper_pearson(caught, m, each), clopper_pearson(accused, n, each)
    return MembershipAttack(
        name,
        len(inside),
        len(outside),
        area,
        low,
        high,
        tuple(caught_at(inside, outside, level, confidence) for level in FALSE_ALARMS),
        caught / m - accused / n,
        true.low - false.high,
        true.high - false.low,
        epsilon_from_rates(caught, m, accused, n, delta=delta, confidence=confidence),
        delta,
        confidence,
    )


def _best_threshold(members: Floats, non_members: Floats) -> float:
    """The threshold at which TPR - FPR is largest: in the middle between the scores there."""
    scores = np.concatenate([members, non_members])
    places = np.unique(scores)
    true = 1 - np.searchsorted(np.sort(members), places) / len(members)
    false = 1 - np.searchsorted(np.sort(non_members), places) / len(non_members)
    best = int(np.argmax(true - false))
    return float((places[best] + places[max(0, best - 1)]) / 2)


# Without the model ------------------------------------------------------------------------------------------------


# For a report -----------------------------------------------------------------------------------------------------


def membership_section(
    attacks: Sequence[MembershipAttack],
    blind_test: Blind | None = None,
    worst: Sequence[tuple[float, float | None, str]] = (),
) -> Section:
    """Attacks as a table, the best one as a finding. `worst` are loss, reference loss and text of members that stand
    out most."""
    best = max(attacks, key=lambda attack: attack.auc_low)
    sharpest = max(attacks, key=lambda attack: attack.caught[-1].rate.low)
    at = sharpest.caught[-1]
    flattered = blind_test is not None and blind_test.differs
    # Several attacks were tried and the best is shown: its bound must hold for all of them.
    leak = _corrected_low(best, len(attacks)) > 0.5
    if leak and (best.auc > RED_AUC or at.rate.low > RED_RATE * at.false_alarm):
        light = Light.AMBER if flattered else Light.RED
    else:
        light = Light.AMBER if leak else Light.GREEN
    sentence = (
        f"The best of {len(attacks)} attacks ({best.name}) ranks a member above a non-member {best.auc:.1%} of the "
        f"time ({best.auc_low:.1%} to {best.auc_high:.1%} with confidence {best.confidence:g}; guessing: 50 %). With "
        f"false alarms for at most {at.false_alarm:.1%} of the non-members, '{sharpest.name}' catches "
        f"{at.rate.share:.1%} of the members ({at.rate.low:.1%} to {at.rate.high:.1%})"
        + ("." if at.resolved else "; there are too few non-members to see so small a rate, so none was accused.")
    )
    if flattered:
        sentence += (
            " But the two files differ by themselves, so part of this or all of it may have nothing to do with the "
            "model."
        )
    why = (
        f"Green: no attack is above chance at this confidence, corrected for {len(attacks)} attacks. Red: one is, and "
        f"its AUC exceeds {RED_AUC:g} or it catches more than {RED_RATE:g} times what chance does at "
        f"{at.false_alarm:.0%} false alarms. Amber: between, or members and non-members differ without the model."
    )
    findings = [Finding("Membership", light, sentence, why, numbers=_numbers(best))]
    if blind_test is not None:
        findings.append(blind_finding(blind_test))
    rows = [
        (
            a.name,
            a.auc,
            f"{a.auc_low:.3f} to {a.auc_high:.3f}",
            *(f"{c.rate.share:.3f} ({c.rate.low:.3f} to {c.rate.high:.3f})" for c in a.caught),
            f"{a.advantage:.3f} ({a.advantage_low:.3f} to {a.advantage_high:.3f})",
            a.epsilon,
        )
        for a in attacks
    ]
    levels = [f"caught at {level:.1%} false alarms" for level in FALSE_ALARMS]
    tables = [
        Table(
            f"Attacks on {best.members:,} members and {best.non_members:,} non-members",
            ("signal", "AUC", "interval", *levels, "advantage", "epsilon from rates"),
            rows,
            note="The epsilon from rates is a lower bound only if every text were a training run of its own. For one "
            "run read it as a comparison between signals; the bound of the one-run audit is the proven one.",
        )
    ]
    if worst:
        tables.append(
            Table(
                "Members that stand out most",
                ("loss per token", "reference loss", "text"),
                [(loss, reference, text) for loss, reference, text in worst],
                private=True,
            )
        )
    return Section(
        "Membership inference",
        "Whether one can tell from the model if a text was in its training data.",
        findings,
        tables,
    )


def roc_figure(signals: Sequence[tuple[str, Floats, Floats]]) -> Figure:
    """ROC curves on logarithmic axes, where the small false-alarm rates that matter can be seen."""
    canvas, area = axes()
    smallest = 1.0
    for name, members, non_members in signals:
        places = np.unique(np.concatenate([members, non_members]))[::-1]
        true = 1 - np.searchsorted(np.sort(members), places) / len(members)
        false = 1 - np.searchsorted(np.sort(non_members), places) / len(non_members)
        smallest = min(smallest, 1 / len(non_members))
        area.plot(np.maximum(false, smallest / 2), true, label=name, drawstyle="steps-post")
    line = np.geomspace(smallest / 2, 1, 50)
    area.plot(line, line, color="0.5", linestyle=":", label="guessing")
    area.set(xscale="log", yscale="log", xlabel="false alarms among non-members", ylabel="members caught")
    area.set(xlim=(smallest / 2, 1), ylim=(smallest / 2, 1.05))
    area.legend(fontsize=8)
    return figure(canvas, "Members caught against false alarms", "Curves above the dotted line tell members apart.")


def _corrected_low(attack: MembershipAttack, tried: int) -> float:
    corrected = 1 - (1 - attack.confidence) / tried
    return auc_interval(attack.auc, attack.members, attack.non_members, corrected)[0]


def _numbers(attack: MembershipAttack) -> dict[str, object]:
    return {
        "signal": attack.name, "auc": attack.auc, "auc_low": attack.auc_low, "auc_high": attack.auc_high,
        "advantage": attack.advantage, "confidence": attack.confidence,
        "caught": {str(c.false_alarm): [c.rate.low, c.rate.share, c.rate.high] for c in attack.caught},
    }  # fmt: skip
