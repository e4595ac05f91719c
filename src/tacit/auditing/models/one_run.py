"""One-run auditing: a lower bound on epsilon from a single training run.

Steinke, Nasr & Jagielski, "Privacy auditing with one (1) training run" (NeurIPS 2023). Each of m canaries is put into
the training data or left out by its own fair coin. After training an auditor, who may use everything that was released
and may abstain, guesses r of the coins. If training is (epsilon, delta)-DP, then for every v (Theorem 5.2)

    Pr[at least v correct]  <=  beta + 2 m delta alpha,        q = e**epsilon / (1 + e**epsilon),
    beta = Pr[W >= v],   alpha = max over i >= 1 of Pr[v > W >= v - i] / i,   W ~ Binomial(r, q).

Where the right side is below 1 - confidence, this (epsilon, delta) is refuted with that confidence; the lower bound is
where that ends. Proven for any mechanism and any guesses. What has to hold: the coins are fair, independent of each
other and of everything else, and the guesses see the coins through the release only.

What one coin changes must match the neighbors of the claim. `changes` counts the records in which the two training
sets differ: k for a canary that is inserted k times; the claim is then widened by group privacy,
(k epsilon, delta (e**(k epsilon) - 1) / (e**epsilon - 1)).

Random split instead of coins. Members and non-members are often a random split of one pool, of fixed sizes. Draw
K ~ Binomial(m, 1/2), then K members and m - K non-members at random: seen alone, these m records have independent fair
coins, and flipping one moves another record of the pool the other way, because the size is fixed. So one coin replaces
one record: `changes` is 1 for a claim about replacing one record and 2 for one about adding or removing one.
(`fair_subset` does this.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from tacit.arrays import Floats, Mask
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Adjacency
from tacit.noise.source import public_generator
from tacit.report import AtLeast, AtMost, Finding, Light, Section, Table
from tacit.rounding import rounded_down, rounded_up

SMALLEST_GUESSES = 8
"""Guessing fewer coins than this cannot reach 95 % confidence after the correction for several rules."""

LARGEST_EPSILON = 60.0


# The theorem ------------------------------------------------------------------------------------------------------


def p_value(canaries: int, guesses: int, correct: int, epsilon: float, delta: float = 0.0) -> float:
    """Largest probability of so many correct guesses if training is (epsilon, delta)-DP (Theorem 5.2)."""
    if not 0 <= correct <= guesses <= canaries:
        raise BadParameterError(
            "impossible-guesses", "an audit has at most as many correct guesses as guesses, and guesses as canaries"
        )
    if epsilon < 0 or not 0 <= delta <= 1:
        raise BadParameterError(
            "impossible-claim",
            "a claim has epsilon >= 0 and delta from 0 to 1, not {epsilon:g} and {delta:g}",
            epsilon=epsilon,
            delta=delta,
        )
    q = 1.0 / (1.0 + math.exp(-epsilon))
    beta = float(binom.sf(correct - 1, guesses, q))
    if delta == 0 or correct == 0:
        return min(1.0, beta)
    below = binom.pmf(np.arange(correct - 1, -1, -1), guesses, q)  # Pr[W = v - 1], Pr[W = v - 2], ...
    alpha = float(np.max(np.cumsum(below) / np.arange(1, correct + 1)))
    return min(1.0, beta + 2 * canaries * delta * alpha)


def widened(epsilon: float, delta: float, changes: int) -> tuple[float, float]:
    """Group privacy: what (epsilon, delta)-DP for one record promises for `changes` records."""
    if changes < 1:
        raise BadParameterError(
            "impossible-count", "at least one record changes with a coin, not {changes}", changes=changes
        )
    if changes == 1 or delta == 0 or epsilon == 0:
        return changes * epsilon, min(1.0, changes * delta)
    with np.errstate(over="ignore"):
        factor = float(np.expm1(changes * epsilon) / np.expm1(epsilon))
    return changes * epsilon, min(1.0, factor * delta)


def epsilon_lower_bound(
    canaries: int, guesses: int, correct: int, delta: float = 0.0, confidence: float = 0.95, changes: int = 1
) -> float:
    """The largest epsilon so that it and every smaller one is refuted with this confidence; 0 if none is."""
    level = 1.0 - check_confidence(confidence)

    def refuted(epsilon: float) -> bool:
        return p_value(canaries, guesses, correct, *widened(epsilon, delta, changes)) < level

    low, high = 0.0, 0.0
    while refuted(high):
        low, high = high, high + 0.25 / changes
        if high > LARGEST_EPSILON:
            return low
    if high == 0.0:
        return 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def check_coins(coins: Mask) -> None:
    """Refuse coins that all fell on one side."""
    if not coins.any() or coins.all():
        raise BadInputError("canaries-on-one-side", "all coins fell on the same side: audit with more canaries")


def check_confidence(confidence: float) -> float:
    if not 0.5 <= confidence < 1:
        raise BadParameterError(
            "impossible-confidence",
            "a confidence lies between 0.5 and 1, such as 0.95, not {confidence:g}",
            confidence=confidence,
        )
    return confidence


# From scores to a bound -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Observations:
    """Scores of canaries after training, higher the more a canary looks included; all that an audit needs."""

    included: Floats
    excluded: Floats

    def __post_init__(self) -> None:
        for name in ("included", "excluded"):
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if values.ndim != 1 or np.isnan(values).any():
                raise BadInputError(
                    "not-finite",
                    "the scores of {name} canaries are one number each, and none may be missing",
                    name=name,
                )
            object.__setattr__(self, name, values)
        if not len(self.included) or not len(self.excluded):
            raise BadInputError(
                "canaries-on-one-side", "an audit needs canaries that were included and canaries that were left out"
            )

    @property
    def canaries(self) -> int:
        return len(self.included) + len(self.excluded)


@dataclass(frozen=True)
class Rule:
    """Guess "in" for the highest scores, "out" for the lowest, and abstain between."""

    guessed_in: int
    guessed_out: int


@dataclass(frozen=True)
class OneRunAudit:
    """The result of an audit in one run.

    epsilon      lower bound for one record at `delta`, with `confidence` over all rules tried together
    correct      of `guesses` guesses, by the best rule
    changes      records that one coin changes
    """

    canaries: int
    rule: Rule
    guesses: int
    correct: int
    rules_tried: int
    delta: float
    changes: int
    confidence: float
    epsilon: float

    @property
    def accuracy(self) -> float:
        return self.correct / self.guesses if self.guesses else math.nan

    def claim_p_value(self, epsilon: float) -> float:
        """The chance of what was seen under the claim, corrected for the number of rules tried."""
        single = p_value(self.canaries, self.guesses, self.correct, *widened(epsilon, self.delta, self.changes))
        return min(1.0, self.rules_tried * single)

    def refutes(self, epsilon: float) -> bool:
        """Whether (epsilon, delta) is refuted: the lower bound lies above it."""
        return self.epsilon > epsilon and self.claim_p_value(epsilon) < 1 - self.confidence


def standard_rules(canaries: int) -> tuple[Rule, ...]:
    """Rules fixed before looking: all coins, nearly all, half of them, a quarter ..., on both sides and on the included
    side alone."""
    sides = [canaries // 2]
    while 2 * (sides[-1] // 2) >= SMALLEST_GUESSES:
        sides.append(sides[-1] // 2)
    # Fair coins miss an even split by more than this once in 700 runs: beyond it, guesses have to be wrong.
    even = int(canaries / 2 - 1.6 * math.sqrt(canaries))
    if 2 * even >= SMALLEST_GUESSES:
        sides.insert(1, even)
    return tuple(rule for side in sides for rule in (Rule(side, side), Rule(side, 0)))


def correct_guesses(observations: Observations, rule: Rule, seed: int = 0) -> int:
    """The number of right guesses of a rule. Equal scores are put in an order that does not know the coins."""
    scores = np.concatenate([observations.included, observations.excluded])
    coins = np.concatenate([np.ones(len(observations.included)), np.zeros(len(observations.excluded))])
    shuffled = public_generator(seed).permutation(len(scores))
    order = shuffled[np.argsort(-scores[shuffled], kind="stable")]
    right = coins[order]
    correct = right[: rule.guessed_in].sum()
    if rule.guessed_out:
        correct += (1 - right[-rule.guessed_out :]).sum()
    return int(correct)


def audit_observations(
    observations: Observations,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    changes: int = 1,
    rules: Sequence[Rule] | None = None,
    seed: int = 0,
) -> OneRunAudit:
    """The best lower bound over a fixed set of rules, each tried with its share of the error (Bonferroni)."""
    check_confidence(confidence)
    m = observations.canaries
    tried = standard_rules(m) if rules is None else tuple(rules)
    if not tried or any(rule.guessed_in + rule.guessed_out > m for rule in tried):
        raise BadParameterError(
            "impossible-guesses",
            "a rule guesses at most all {canaries} canaries, and at least one rule is needed",
            canaries=m,
        )
    each = 1 - (1 - confidence) / len(tried)
    best: OneRunAudit | None = None
    for rule in tried:
        guesses, correct = rule.guessed_in + rule.guessed_out, correct_guesses(observations, rule, seed)
        bound = epsilon_lower_bound(m, guesses, correct, delta, each, changes)
        if best is None or bound > best.epsilon:
            best = OneRunAudit(m, rule, guesses, correct, len(tried), delta, changes, confidence, bound)
    assert best is not None
    return best


def fair_subset(members: int, non_members: int, seed: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of members and of non-members whose coins are fair and independent, out of a random split of fixed sizes.

    Their number depends on the two sizes only.
    """
    generator = public_generator(seed)
    smaller = min(members, non_members)
    m = _surely_found(smaller)
    k = int(generator.binomial(m, 0.5))
    if k > smaller or m - k > smaller:  # once in a billion draws
        k = m // 2
    chosen_in = generator.permutation(members)[:k]
    chosen_out = generator.permutation(non_members)[: m - k]
    return np.sort(chosen_in), np.sort(chosen_out)


@cache
def _surely_found(smaller: int) -> int:
    """The largest m, in steps of a hundredth, so that Binomial(m, 1/2) fits both sides but once in a billion draws: a
    draw that does not fit would have to be repeated, which bends the coins."""
    m = 2 * smaller
    while m > 0 and 2 * binom.sf(smaller, m, 0.5) > 1e-9:
        m -= max(1, m // 100)
    return m


def changed_records(adjacency: Adjacency, *, coins: bool, repeats: int = 1) -> int:
    """The number of neighbor steps that one coin takes, for a claim with this adjacency.

    coins    each record was included by its own coin; otherwise the split has fixed sizes
    """
    if adjacency is Adjacency.REPLACE_ONE and coins:
        raise BadParameterError(
            "adjacency-not-audited",
            "a claim about replacing one record says nothing about adding one: audit it as a random split of fixed "
            "size",
        )
    if adjacency not in (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE):
        raise BadParameterError(
            "adjacency-not-audited",
            "a trained model cannot be audited for the neighbors '{adjacency}'",
            adjacency=adjacency.value,
        )
    return repeats * (1 if coins or adjacency is Adjacency.REPLACE_ONE else 2)


# For a report -----------------------------------------------------------------------------------------------------


def one_run_section(
    audit: OneRunAudit, claim: float | None = None, *, title: str = "Lower bound on epsilon", proven: bool = True,
    condition: str = "",
) -> Section:  # fmt: skip
    """The bound beside the claimed epsilon. `proven` says whether the coins are known to be fair and independent;
    otherwise `condition` says what would have to hold, and no claim is refuted."""
    neighbors = "" if audit.changes == 1 else f"; one coin changes {audit.changes} records, which is accounted for"
    seen = (
        f"{audit.correct:,} of {audit.guesses:,} guesses about {audit.canaries:,} records were right"
        f" ({audit.accuracy:.1%})"
    )
    bound = (
        f"epsilon is at least {rounded_down(audit.epsilon, 3)} at delta {rounded_up(audit.delta)}, with confidence "
        f"{audit.confidence:g}"
    )
    claimed = "" if claim is None else rounded_up(claim)
    refuted = proven and claim is not None and audit.refutes(claim)
    numbers = {
        "epsilon_lower_bound": audit.epsilon, "delta": audit.delta, "confidence": audit.confidence,
        "canaries": audit.canaries, "guesses": audit.guesses, "correct": audit.correct, "changes": audit.changes,
        "claimed_epsilon": claim, "proven": proven,
    }  # fmt: skip
    why = (
        "Theorem 5.2 of Steinke, Nasr & Jagielski 2023, corrected for "
        f"{audit.rules_tried} rules of guessing{neighbors}. Red: the bound is above the claimed epsilon. Green: it is "
        "not, which does not prove the claim."
    )
    if not proven:
        light = Light.AMBER if audit.epsilon > (claim or 0.0) else Light.NONE
        sentence = f"{seen}. If {condition}, then {bound}; as this is not known, no claim is refuted by it."
    elif refuted:
        light = Light.RED
        sentence = f"{seen}, so {bound}. The claimed epsilon {claimed} is refuted."
    elif claim is not None:
        light = Light.GREEN
        sentence = f"{seen}, so {bound}. The claimed epsilon {claimed} is not refuted by {audit.canaries:,} records."
    else:
        light = Light.AMBER if audit.epsilon > 0 else Light.NONE
        sentence = f"{seen}, so {bound}. No epsilon was claimed."
    finding = Finding(title, light, sentence, why, refuted=refuted, numbers=numbers)
    table = Table(
        "What was guessed",
        ("records", "guessed in", "guessed out", "correct", "epsilon at least", "claimed"),
        [
            (
                audit.canaries,
                audit.rule.guessed_in,
                audit.rule.guessed_out,
                audit.correct,
                AtLeast(audit.epsilon),
                None if claim is None else AtMost(claim),
            )
        ],
    )
    return Section(title, findings=(finding,), tables=(table,))
