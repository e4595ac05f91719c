"""The one-run audit of trade-off curves: exact on small mechanisms, never above the truth, tighter than Steinke's."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, norm

from tacit.auditing.models.bounds import BoundSettings, bound_of_members
from tacit.auditing.models.claimed import ModelClaim
from tacit.auditing.models.curve_audit import (
    audit_curves,
    audit_gaussian,
    curve_p_value,
    curve_refuted,
    gaussian_rules,
    gaussian_section,
)
from tacit.auditing.models.one_run import Observations, Rule, audit_observations, correct_guesses, p_value
from tacit.auditing.models.trade_offs import (
    GaussianCurve,
    ProfileCurve,
    gaussian_curve_of,
    profile_of_pair,
    profile_of_training,
)
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency
from tacit.report import Light

DELTA = 1e-5


def gaussian_release(mu: float, canaries: int, seed: int) -> Observations:
    """Independent Gaussian coordinates, one for each coin: every coin has exactly the Gaussian curve of mu."""
    generator = np.random.default_rng(seed)
    coins = generator.random(canaries) < 0.5
    scores = generator.normal(size=canaries) + mu * coins
    return Observations(scores[coins], scores[~coins])


def test_the_gaussian_curve_is_the_power_of_the_best_test():
    curve = GaussianCurve(1.3)
    for x in (1e-6, 0.01, 0.3, 0.9):
        power = norm.sf(norm.isf(x) - 1.3)  # Neyman and Pearson
        assert curve.least(power) == pytest.approx(x, rel=1e-9)
    assert curve.least(0.0) == 0.0
    assert gaussian_curve_of(4.376, DELTA).mu == pytest.approx(1.0, abs=1e-3)
    assert GaussianCurve(1.0).epsilon(DELTA) == pytest.approx(4.377, abs=1e-3)
    assert GaussianCurve(0.0).epsilon(DELTA) == 0.0


def test_every_law_of_three_randomized_responses_is_within_the_bound():
    """Exact: three coins answered truthfully with probability q, all eight outcomes; tails of all strategies that guess
    some fixed coins are at most the bound, and for one coin the bound is the law itself."""
    epsilon = 0.8
    q = 1 / (1 + np.exp(-epsilon))
    curve = profile_of_pair(epsilon, 0.0)
    assert curve_p_value(1, 1, 1, curve) == pytest.approx(q, abs=1e-6)
    for guesses in (1, 2, 3):
        for correct in range(1, guesses + 1):
            exact = sum(
                q ** sum(right) * (1 - q) ** (guesses - sum(right))
                for right in product((0, 1), repeat=guesses)
                if sum(right) >= correct
            )
            assert curve_p_value(3, guesses, correct, curve) >= exact - 1e-9


def test_any_mechanism_of_two_coins_is_within_its_own_curve():
    """Random mechanisms from two coins to five outputs, with random guesses and abstentions: the curve is computed
    from all neighbors exactly, and the tail of correct guesses is never above the bound."""
    generator = np.random.default_rng(5)
    epsilons = np.linspace(0.0, 6.0, 60)
    for _ in range(25):
        law = generator.dirichlet(np.full(5, 0.6), size=4).reshape(2, 2, 5)
        pairs = [(law[a, b], law[1 - a, b]) for a in (0, 1) for b in (0, 1)]
        pairs += [(law[a, b], law[a, 1 - b]) for a in (0, 1) for b in (0, 1)]
        growth = np.exp(epsilons)[:, None]
        deltas = np.max([np.maximum(p - growth * q, 0).sum(axis=1) for p, q in pairs], axis=0)
        curve = ProfileCurve(epsilons, deltas)
        for guessed in ((0, 1), (0,)):
            guess = generator.integers(0, 2, size=(5, 2))
            right = np.zeros(3)
            for a, b in product((0, 1), repeat=2):
                for out in range(5):
                    hits = sum(guess[out, j] == (a, b)[j] for j in guessed)
                    right[hits] += law[a, b, out] / 4
            for correct in range(1, len(guessed) + 1):
                assert curve_p_value(2, len(guessed), correct, curve) >= right[correct:].sum() - 1e-9


def test_abstaining_by_the_release_is_paid_for():
    """The mistake: averages over the r guesses instead of all m canaries. An auditor of Gaussian coordinates who
    guesses only the extreme ones is right more often than that would allow: an honest mechanism would be accused."""
    observed, truth = gaussian_release(1.0, 40_000, 3), GaussianCurve(1.0)
    correct = correct_guesses(observed, Rule(200, 200))
    assert not curve_refuted(40_000, 400, correct, truth, 0.05)
    assert curve_refuted(400, 400, correct, truth, 0.01)  # as if nobody had abstained


def test_the_true_mu_is_not_refuted_more_often_than_stated():
    """Fixed seeds. At confidence 0.95 at most 5 % of runs may exceed the truth: 100 runs exceed 13 with probability
    below 1 in 1,000. Half of mu is refuted in most runs."""
    assert binom.sf(13, 100, 0.05) < 1e-3
    for claim in (None, GaussianCurve(1.5).epsilon(DELTA)):
        bounds = [
            audit_gaussian(gaussian_release(1.5, 400, seed), delta=DELTA, claim=claim).parameter for seed in range(100)
        ]
        assert (np.array(bounds) > 1.5).sum() <= 13
        assert np.median(bounds) > 0.75


def test_it_is_tighter_than_the_bound_without_assumptions():
    """Noise multiplier 1 in one step, 2,000 canaries: of the claimed 4.38, medians of three runs."""
    curves, pairs = [], []
    for seed in range(3):
        observed = gaussian_release(1.0, 2_000, seed)
        curves.append(audit_gaussian(observed, delta=DELTA, claim=4.377).epsilon)
        pairs.append(audit_observations(observed, delta=DELTA).epsilon)
    assert max(curves) < 4.377
    assert np.median(curves) > 2.3
    assert np.median(curves) > np.median(pairs) + 0.5


def test_changes_of_several_records_and_other_families():
    observed = gaussian_release(2.0, 400, 0)
    rules = [Rule(50, 50)]
    single = audit_gaussian(observed, delta=DELTA, rules=rules)
    double = audit_gaussian(observed, delta=DELTA, changes=2, rules=rules)
    assert double.parameter == pytest.approx(single.parameter / 2, rel=3e-3)
    same = audit_curves(
        observed, GaussianCurve, lambda mu: GaussianCurve(mu).epsilon(DELTA), largest=40.0, delta=DELTA, rules=rules
    )
    assert same.parameter == single.parameter
    pure = audit_curves(observed, lambda e: profile_of_pair(e, 0.0), float, largest=60.0, delta=0.0, rules=rules)
    correct = pure.correct
    assert p_value(400, 100, correct, pure.epsilon) < 0.06  # for pure privacy nearly the bound of Steinke et al.


def test_the_curve_of_a_training_plan():
    pytest.importorskip("dp_accounting")
    full = profile_of_training(sampling_rate=1.0, noise_multiplier=1.0, steps=1)
    for probability in (0.02, 0.3, 0.8):
        exact = GaussianCurve(1.0).least(probability)
        assert 0.9 * exact < full.least(probability) <= exact  # more cautious than the truth, and near it
    sampled = profile_of_training(sampling_rate=0.1, noise_multiplier=1.0, steps=1)
    assert sampled.least(0.3) > full.least(0.3)
    twice = profile_of_training(sampling_rate=0.1, noise_multiplier=1.0, steps=1, changes=2)
    assert twice.least(0.3) < sampled.least(0.3)
    honest = gaussian_release(1.0, 1_000, 1)
    rule = Rule(60, 60)
    audit = audit_gaussian(honest, delta=DELTA, rules=[rule])
    assert not curve_refuted(1_000, 120, audit.correct, full, 0.05)
    assert curve_refuted(1_000, 120, audit.correct, sampled, 0.05)


def test_the_rule_depends_on_the_claim_and_not_on_scores():
    assert gaussian_rules(1_000) == (Rule(250, 250), Rule(125, 125), Rule(62, 62))
    (weak,), (strong,) = gaussian_rules(1_000, 0.5), gaussian_rules(1_000, 4.0)
    assert weak.guessed_in < strong.guessed_in
    assert gaussian_rules(8) == (Rule(4, 4),)


def test_perfect_and_useless_guesses():
    perfect = audit_gaussian(Observations(np.ones(300), np.zeros(300)), delta=DELTA)
    assert perfect.epsilon > 4
    useless = audit_gaussian(Observations(np.zeros(300), np.zeros(300)), delta=DELTA)
    assert useless.parameter == useless.epsilon == 0.0
    with pytest.raises(BadParameterError, match="at most as many"):
        curve_refuted(5, 4, 5, GaussianCurve(1.0), 0.05)
    with pytest.raises(BadParameterError, match="one delta"):
        ProfileCurve(np.zeros(2), np.zeros(1))


def test_the_report_names_the_assumption_and_refutes_nothing():
    audit = audit_gaussian(Observations(np.ones(300), np.zeros(300)), delta=DELTA)
    (finding,) = gaussian_section(audit, 1.0, title="bound").findings
    assert finding.light is Light.AMBER
    assert not finding.refuted
    assert "If training has a Gaussian trade-off curve" in finding.sentence
    (finding,) = gaussian_section(audit, 50.0, title="bound", condition="coins were fair").findings
    assert finding.light is Light.NONE
    assert "coins were fair" in finding.sentence


def test_it_stands_beside_the_bound_without_assumptions():
    claim = ModelClaim(4.377, DELTA, Adjacency.ADD_REMOVE, "a test")
    observed = gaussian_release(1.0, 1_000, 0)
    sections = bound_of_members(observed, "coins", BoundSettings(claim, 0.95, 0))
    assert [section.title for section in sections] == [
        "Lower bound on epsilon",
        "Lower bound on epsilon, for Gaussian curves",
    ]
    pure = ModelClaim(4.0, 0.0, Adjacency.ADD_REMOVE, "a test")
    assert len(bound_of_members(observed, "coins", BoundSettings(pure, 0.95, 0))) == 1
