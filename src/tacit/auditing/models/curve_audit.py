"""One-run auditing of a whole trade-off curve: a tighter lower bound on epsilon, for an assumed shape of the curve.

Mahloujifar, Melis & Chaudhuri, "Auditing f-differential privacy in one run" (2024). As in `one_run`, m canaries have
fair independent coins, and an auditor guesses r of them from the release. Let C be the number of correct guesses,
p_i = Pr[C = i]. If flipping a coin changes the release within a trade-off curve f (`trade_offs`), then for every i

    R(i + 1) <= 1 - f(H(i)),      R(i) = sum over k >= i of k p_k / m,   H(i) = sum over k >= i of (r - k) p_k / m.

Proof. Fix a canary j and all other coins. S: "the guess of j is right, and C > i". Seen from the data with coin j
flipped, the same release has j guessed wrong and one correct guess less: "wrong, and C >= i". So the probability of S
is at most 1 - f of the other one. The function 1 - f is concave, so the inequality also holds for averages over all
coins and all j (a canary that was not guessed is neither right nor wrong), and these averages are R(i + 1) and H(i).

The largest tail. Suppose Pr[C >= c] >= t. Moving probability from i to i - 1 lowers R(i) and H(i), and for all k < i
lowers R(k) by as much as it raises H(k). From the top downward, as long as the constraint at i has room, this breaks
none of them and keeps the total at 1. So there is also a law that keeps all constraints with p_c = t, none above c, and
from c - 1 down to 1 no more probability than the constraint there asks for. That law is what `_total` builds:

    R(c) = t c / m,   H(c) = t (r - c) / m,
    H(i) = max(H(i + 1), least(R(i + 1))),   R(i) = R(i + 1) + (H(i) - H(i + 1)) i / (r - i),

where least(y) is the smallest x with 1 - f(x) >= y. Its probabilities add up to (R(0) + H(0)) m / r. If that is more
than 1, no such law exists, and Pr[C >= c] < t: the curve is refuted with confidence 1 - t.

What is assumed. Steinke's bound tests (epsilon, delta) and nothing else. Here a curve is tested, and the epsilon of a
one-parameter family of curves is a bound *only for training whose curve is of this family*: for Gaussian curves, DP-SGD
with full batches exactly, and long runs with sampling approximately. A claim on a card is a pair (epsilon, delta), so
this bound alone never refutes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy.optimize import brentq
from scipy.special import ndtr

from tacit.auditing.models.one_run import (
    LARGEST_EPSILON,
    SMALLEST_GUESSES,
    Observations,
    Rule,
    check_confidence,
    correct_guesses,
)
from tacit.auditing.models.trade_offs import GaussianCurve, TradeOff, gaussian_curve_of
from tacit.errors import BadParameterError
from tacit.report import AtLeast, AtMost, Finding, Light, Section, Table
from tacit.rounding import rounded_down, rounded_up

MARGIN = 1e-9
"""Totals are compared with room for rounding, so that nothing is refuted by it."""

LARGEST_MU = 40.0


# The theorem ------------------------------------------------------------------------------------------------------


def curve_refuted(canaries: int, guesses: int, correct: int, curve: TradeOff, level: float) -> bool:
    """Whether so many correct guesses have a probability below `level` under this curve."""
    if not 0 <= correct <= guesses <= canaries or guesses < 1:
        raise BadParameterError(
            "impossible-guesses", "an audit has at most as many correct guesses as guesses, and guesses as canaries"
        )
    return correct > 0 and _total(canaries, guesses, correct, curve, level) > 1 + MARGIN


def curve_p_value(canaries: int, guesses: int, correct: int, curve: TradeOff) -> float:
    """An upper bound on the probability of so many correct guesses under this curve, rounded up."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if curve_refuted(canaries, guesses, correct, curve, middle):
            high = middle
        else:
            low = middle
    return high


def _total(canaries: int, guesses: int, correct: int, curve: TradeOff, tail: float) -> float:
    """The least total probability of a law of correct guesses that keeps the curve and has this tail at `correct`; as
    soon as it is above 1, the rest is left out."""
    right = tail * correct / canaries
    wrong = tail * (guesses - correct) / canaries
    whole = guesses / canaries
    for place in range(correct - 1, -1, -1):
        needed = curve.least(min(1.0, right))
        if needed <= wrong:
            break  # nothing is added, and further down nothing changes
        right += (needed - wrong) * place / (guesses - place)
        wrong = needed
        if right + wrong > whole * (1 + 2 * MARGIN):
            break
    return (right + wrong) / whole


# From scores to a bound -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CurveAudit:
    """The largest parameter of a family of curves that one run refutes, with all smaller ones.

    parameter    of the family, for one record; 0 if nothing is refuted
    epsilon      of the curve with this parameter, at `delta`
    """

    canaries: int
    rule: Rule
    guesses: int
    correct: int
    rules_tried: int
    delta: float
    changes: int
    confidence: float
    parameter: float
    epsilon: float


def gaussian_rules(canaries: int, mu: float | None = None) -> tuple[Rule, ...]:
    """Rules fixed before looking: as many guesses of "in" as of "out", for parts of the coins.

    With a claimed mu, the single rule that would give the largest bound if the claim were true and canaries did not
    disturb each other; otherwise a quarter, an eighth and a sixteenth of the canaries on either side.
    """
    parts = (4, 8, 16) if mu is None else (3, 4, 6, 8, 12, 16, 24, 32)
    sides = [canaries // part for part in parts if 2 * (canaries // part) >= SMALLEST_GUESSES]
    rules = [Rule(side, side) for side in sides] or [Rule(max(1, canaries // 2), canaries // 2)]
    if mu is None or mu <= 0:
        return tuple(rules)
    return (max(rules, key=lambda rule: _expected_bound(canaries, rule, mu)),)


def _expected_bound(canaries: int, rule: Rule, mu: float) -> float:
    """The bound at confidence .95 if scores are N(0, 1) and N(mu, 1) and the guesses are right as often as expected."""
    share = rule.guessed_in / canaries
    threshold = brentq(lambda score: (ndtr(-score) + ndtr(mu - score)) / 2 - share, -40.0, 40.0 + mu)
    accuracy = float(ndtr(mu - threshold)) / 2 / share
    guesses = rule.guessed_in + rule.guessed_out
    correct = min(guesses, round(accuracy * guesses))
    return _largest_refuted(
        lambda other: curve_refuted(canaries, guesses, correct, GaussianCurve(other), 0.05), 0.0, LARGEST_MU, 0.01
    )


def audit_curves(
    observations: Observations,
    family: Callable[[float], TradeOff],
    epsilon_of: Callable[[float], float],
    *,
    largest: float,
    delta: float,
    confidence: float = 0.95,
    changes: int = 1,
    rules: Sequence[Rule] | None = None,
    seed: int = 0,
    tolerance: float = 1e-3,
) -> CurveAudit:
    """The lower bound for a family of curves, over a fixed set of rules (Bonferroni).

    family       the curve that one coin has, by the parameter of one record: the larger, the less private
    epsilon_of   a lower bound on the epsilon of one record at delta, by the parameter
    largest      the search for parameters ends there
    tolerance    how near below the truth the parameter is found, relatively
    """
    check_confidence(confidence)
    m = observations.canaries
    tried = gaussian_rules(m) if rules is None else tuple(rules)
    level = (1 - confidence) / len(tried)
    best, chosen, best_correct = 0.0, tried[0], correct_guesses(observations, tried[0], seed)
    for rule in tried:
        guesses, correct = rule.guessed_in + rule.guessed_out, correct_guesses(observations, rule, seed)

        def refuted(parameter: float, guesses: int = guesses, correct: int = correct) -> bool:
            return curve_refuted(m, guesses, correct, family(parameter), level)

        bound = _largest_refuted(refuted, best, largest, tolerance)
        if bound > best:
            best, chosen, best_correct = bound, rule, correct
    return CurveAudit(
        m, chosen, chosen.guessed_in + chosen.guessed_out, best_correct, len(tried), delta, changes, confidence, best,
        min(LARGEST_EPSILON, epsilon_of(best)) if best > 0 else 0.0,
    )  # fmt: skip


def _largest_refuted(refuted: Callable[[float], bool], start: float, largest: float, tolerance: float) -> float:
    """A refuted parameter near the largest one, above `start`; `start` itself if there is none."""
    low, high = start, max(2 * start, largest / 1024)
    if start > 0 and not refuted(start):
        return start
    while refuted(high):
        low, high = high, 2 * high
        if high > largest:
            return low
    while high - low > tolerance * high:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def audit_gaussian(
    observations: Observations,
    *,
    delta: float,
    confidence: float = 0.95,
    changes: int = 1,
    claim: float | None = None,
    rules: Sequence[Rule] | None = None,
    seed: int = 0,
) -> CurveAudit:
    """The lower bound for training whose trade-off curve is Gaussian: the parameter is mu. A claimed epsilon chooses
    the rule of guessing, without looking at the scores."""
    if rules is None:
        mu = None if claim is None else min(LARGEST_MU, changes * gaussian_curve_of(claim, delta).mu)
        rules = gaussian_rules(observations.canaries, mu)
    return audit_curves(
        observations,
        lambda mu: GaussianCurve(changes * mu),
        lambda mu: GaussianCurve(mu).epsilon(delta),
        largest=LARGEST_MU,
        delta=delta,
        confidence=confidence,
        changes=changes,
        rules=rules,
        seed=seed,
    )


# For a report -----------------------------------------------------------------------------------------------------


def gaussian_section(audit: CurveAudit, claim: float | None = None, *, title: str, condition: str = "") -> Section:
    """The bound for Gaussian curves beside the claimed epsilon. It refutes nothing by itself: see "What is assumed".
    `condition` says what else would have to hold, where the coins are not known to be fair."""
    above = claim is not None and audit.epsilon > claim
    assumed = "training has a Gaussian trade-off curve" + (f" and {condition}" if condition else "")
    sentence = (
        f"{audit.correct:,} of {audit.guesses:,} guesses about {audit.canaries:,} records were right. If {assumed}, "
        f"then mu is at least {rounded_down(audit.parameter, 3)} and epsilon at least "
        f"{rounded_down(audit.epsilon, 3)} at delta {rounded_up(audit.delta)}, with confidence {audit.confidence:g}."
    )
    if claim is not None:
        sentence += f" That is {'above' if above else 'not above'} the claimed epsilon {rounded_up(claim)}" + (
            ": the claim holds for no Gaussian curve, so look for the mistake." if above else "."
        )
    why = (
        "Mahloujifar, Melis & Chaudhuri 2024, with our own proof, corrected for "
        f"{audit.rules_tried} rules of guessing; one coin changes {audit.changes} records. It assumes the shape of the "
        "trade-off curve: exact for DP-SGD with full batches, approximate for long runs with sampling. The bound of "
        "Steinke, Nasr & Jagielski assumes nothing about it, and only that one refutes a claim. Amber: above the claim."
    )
    numbers = {
        "mu_lower_bound": audit.parameter, "epsilon_lower_bound": audit.epsilon, "delta": audit.delta,
        "confidence": audit.confidence, "canaries": audit.canaries, "guesses": audit.guesses,
        "correct": audit.correct, "changes": audit.changes, "claimed_epsilon": claim, "assumed_curve": "gaussian",
    }  # fmt: skip
    table = Table(
        "What was guessed",
        ("records", "guessed in", "guessed out", "correct", "mu at least", "epsilon at least", "claimed"),
        [
            (
                audit.canaries,
                audit.rule.guessed_in,
                audit.rule.guessed_out,
                audit.correct,
                AtLeast(audit.parameter),
                AtLeast(audit.epsilon),
                None if claim is None else AtMost(claim),
            )
        ],
    )
    finding = Finding(title, Light.AMBER if above else Light.NONE, sentence, why, numbers=numbers)
    return Section(title, findings=(finding,), tables=(table,))
