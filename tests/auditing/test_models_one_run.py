"""One-run auditing: the published numbers, never above the truth, and useful shares of it."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from tacit.account.sgd import sgd_epsilon
from tacit.auditing.models.gradient_canaries import observe_steps
from tacit.auditing.models.one_run import (
    Observations,
    Rule,
    audit_observations,
    changed_records,
    correct_guesses,
    epsilon_lower_bound,
    fair_subset,
    one_run_section,
    p_value,
    standard_rules,
    widened,
)
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Adjacency
from tacit.noise.source import new_source
from tacit.report import Light


@pytest.mark.parametrize(
    ("canaries", "guesses", "correct", "delta", "published"),
    [(1_000, 100, 75, 1e-4, 0.673), (100_000, 1_510, 1_439, 1e-5, 2.675)],
)
def test_the_numbers_of_the_paper(canaries, guesses, correct, delta, published):
    """Appendix D and section 7 of arXiv:2305.08846; the second one is truncated there, not rounded."""
    assert epsilon_lower_bound(canaries, guesses, correct, delta, 0.95) == pytest.approx(published, abs=1e-3)


def test_the_p_value_is_the_formula_of_theorem_5_2():
    m, r, v, epsilon, delta = 60, 25, 19, 0.7, 1e-3
    q = math.exp(epsilon) / (1 + math.exp(epsilon))
    pmf = [math.comb(r, k) * q**k * (1 - q) ** (r - k) for k in range(r + 1)]
    beta = sum(pmf[v:])
    alpha = max(sum(pmf[v - i : v]) / i for i in range(1, v + 1))
    assert p_value(m, r, v, epsilon, delta) == pytest.approx(beta + 2 * m * delta * alpha, rel=1e-9)
    assert p_value(m, r, v, epsilon) == pytest.approx(beta, rel=1e-9)
    assert p_value(m, r, 0, epsilon, delta) == 1.0


def test_perfect_guessing_without_delta_is_known_in_closed_form():
    for m in (10, 100, 1_000):
        exact = -math.log(0.05 ** (-1 / m) - 1)  # q**m = 0.05
        assert epsilon_lower_bound(m, m, m, 0.0, 0.95) == pytest.approx(exact, abs=1e-6)
    assert epsilon_lower_bound(1_000, 1_000, 500, 0.0, 0.95) == 0.0
    assert epsilon_lower_bound(1_000, 1_000, 520, 1e-5, 0.95) == 0.0  # within chance


def test_randomized_response_is_never_accused_more_often_than_stated():
    """The tight case: guesses are right with probability e**epsilon / (1 + e**epsilon). At confidence 0.95 at most 5 %
    of runs may exceed the truth; 500 runs exceed 43 with probability below 1 in 1,000."""
    generator = np.random.default_rng(0)
    runs, m = 500, 200
    assert binom.sf(43, runs, 0.05) < 1e-3
    for epsilon in (0.5, 2.0):
        right = generator.binomial(m, 1 / (1 + math.exp(-epsilon)), size=runs)
        bounds = {int(v): epsilon_lower_bound(m, m, int(v), 0.0, 0.95) for v in np.unique(right)}
        result = np.array([bounds[int(v)] for v in right])
        assert (result > epsilon).sum() <= 43
        assert np.median(result) > 0.5 * epsilon


def test_abstention_and_rules_keep_the_confidence():
    """Scores that are randomized responses of continuous strength, all standard rules tried: still at most 5 %."""
    generator = np.random.default_rng(1)
    exceeded = 0
    for _ in range(200):
        coins = generator.random(100) < 0.5
        answers = np.where(generator.random(100) < 1 / (1 + math.exp(-1.0)), coins, ~coins)
        scores = np.where(answers, 1.0, -1.0) * generator.random(100)
        exceeded += audit_observations(Observations(scores[coins], scores[~coins])).epsilon > 1.0
    assert exceeded <= 21  # P[Binomial(200, 0.05) > 21] < 1e-3
    assert binom.sf(21, 200, 0.05) < 1e-3


def test_equal_scores_do_not_give_the_coins_away():
    same = Observations(np.zeros(500), np.zeros(500))
    assert 400 < correct_guesses(same, Rule(500, 500)) < 600
    assert audit_observations(same).epsilon == 0.0
    perfect = audit_observations(Observations(np.ones(500), np.zeros(500)))
    assert perfect.accuracy == 1.0
    assert perfect.epsilon > 4.0


def test_a_claim_is_refuted_exactly_below_the_bound():
    generator = np.random.default_rng(2)
    audit = audit_observations(Observations(generator.normal(2, 1, 400), generator.normal(0, 1, 400)), delta=1e-5)
    assert 0.5 < audit.epsilon < 4
    assert audit.refutes(0.9 * audit.epsilon)
    assert not audit.refutes(1.001 * audit.epsilon)
    assert audit.claim_p_value(0.9 * audit.epsilon) < 0.05 < audit.claim_p_value(1.1 * audit.epsilon)


def test_changes_widen_the_claim():
    assert widened(1.0, 0.0, 3) == (3.0, 0.0)
    epsilon, delta = widened(1.0, 1e-6, 3)
    assert epsilon == 3.0
    assert delta == pytest.approx(1e-6 * (1 + math.e + math.e**2))  # the sum over a group, one record at a time
    single = epsilon_lower_bound(500, 500, 480, 0.0, 0.95)
    assert epsilon_lower_bound(500, 500, 480, 0.0, 0.95, changes=2) == pytest.approx(single / 2, abs=1e-6)
    assert changed_records(Adjacency.ADD_REMOVE, coins=True, repeats=4) == 4
    assert changed_records(Adjacency.ADD_REMOVE, coins=False) == 2
    assert changed_records(Adjacency.REPLACE_ONE, coins=False) == 1
    with pytest.raises(BadParameterError, match="random split"):
        changed_records(Adjacency.REPLACE_ONE, coins=True)
    with pytest.raises(BadParameterError, match="any two inputs"):
        changed_records(Adjacency.ANY_TWO, coins=False)


def test_a_random_split_becomes_fair_coins():
    """Number of heads over 2,000 draws: mean and variance of a binomial law; false alarm about 1 in 1,000."""
    heads: dict[int, list[int]] = {}
    for seed in range(2_000):
        into, out = fair_subset(400, 300, seed)
        assert len(set(into.tolist())) == len(into)
        heads.setdefault(len(into) + len(out), []).append(len(into))
    ((m, counts),) = heads.items()  # m is decided before any coin
    assert 300 < m <= 600
    values = np.array(counts)
    assert abs(values.mean() - m / 2) < 3.3 * math.sqrt(m / 4 / len(values))
    assert values.var() == pytest.approx(m / 4, rel=0.11)
    assert max(map(len, fair_subset(5, 5))) <= 5


def test_rules_are_fixed_by_the_number_of_canaries():
    rules = standard_rules(100)
    assert rules[:4] == (Rule(50, 50), Rule(50, 0), Rule(34, 34), Rule(34, 0))
    assert all(2 * rule.guessed_in >= 8 for rule in rules)
    assert standard_rules(2) == (Rule(1, 1), Rule(1, 0))


# DP-SGD -------------------------------------------------------------------------------------------------------------


def private_training(noise_multiplier: float, clip: float | None, seed: int, records: int = 50, dimension: int = 1_200):
    """DP-SGD for a linear model on made-up records, in torch: full batches, clipped gradients, one noise per step."""
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(seed)
    data = torch.randn(records, dimension, generator=generator) / math.sqrt(dimension)
    labels = torch.sign(torch.randn(records, generator=generator))
    weights = torch.zeros(dimension)

    def step(canaries):
        nonlocal weights
        margin = labels * (data @ weights)
        gradients = -(labels * torch.sigmoid(-margin))[:, None] * data
        everything = torch.cat([gradients, canaries])
        if clip is not None:
            norms = everything.norm(dim=1, keepdim=True)
            everything = everything * (clip / norms.clamp(min=clip))
        noise = torch.randn(dimension, generator=generator) * noise_multiplier * (clip or 1.0)
        released = everything.sum(dim=0) + noise
        weights = weights - 0.1 * released / records
        return released

    return step


@pytest.mark.parametrize(("noise", "steps", "share"), [(1.0, 1, 0.2), (2.0, 20, 0.2)])
def test_dp_sgd_is_not_accused_and_much_of_its_epsilon_is_found(noise, steps, share):
    claimed = sgd_epsilon(sampling_rate=1.0, noise_multiplier=noise, steps=steps, delta=1e-5)
    results = []
    for seed in range(8):
        seen = observe_steps(
            private_training(noise, 1.0, seed), dimension=1_200, canaries=1_000, steps=steps, norm=5.0,
            source=new_source(seed),
        )  # fmt: skip
        results.append(audit_observations(seen, delta=1e-5, confidence=0.95).epsilon)
    assert max(results) < claimed  # Gaussian noise lies far below what the theorem allows
    assert np.median(results) > share * claimed


@pytest.mark.parametrize(("noise", "clip"), [(0.0, 1.0), (2.0, None), (0.1, 1.0)])
def test_broken_dp_sgd_is_refuted(noise, clip):
    """No noise, no clipping, or twenty times too little noise, all under the claim of noise multiplier 2."""
    claimed = sgd_epsilon(sampling_rate=1.0, noise_multiplier=2.0, steps=1, delta=1e-5)
    seen = observe_steps(
        private_training(noise, clip, 0), dimension=1_200, canaries=1_000, steps=1, norm=40.0, source=new_source(0)
    )
    audit = audit_observations(seen, delta=1e-5, confidence=0.99)
    assert audit.refutes(claimed)
    assert audit.epsilon > 1.5 * claimed
    honest = observe_steps(
        private_training(2.0, 1.0, 0), dimension=1_200, canaries=1_000, steps=1, norm=40.0, source=new_source(0)
    )
    assert not audit_observations(honest, delta=1e-5, confidence=0.99).refutes(claimed)


def test_a_step_that_returns_nonsense():
    options = {"dimension": 10, "canaries": 8, "steps": 1, "source": new_source(0), "tensors": False}
    for wrong in (lambda g: g, lambda g: np.full(10, np.nan)):
        with pytest.raises(BadInputError, match="must return 10 finite numbers"):
            observe_steps(wrong, **options)
    with pytest.raises(BadParameterError, match="needs a coordinate"):
        observe_steps(lambda g: g.sum(axis=0), **{**options, "canaries": 11})
    with pytest.raises(BadParameterError, match="at least one step"):
        observe_steps(lambda g: g.sum(axis=0), **{**options, "steps": 0})
    seen = observe_steps(lambda g: g.sum(axis=0), **options)
    assert seen.included.min() == 1.0
    assert seen.excluded.max() == 0.0


# The report ---------------------------------------------------------------------------------------------------------


def test_only_proven_bounds_refute():
    audit = audit_observations(Observations(np.ones(300), np.zeros(300)), delta=1e-5)
    (finding,) = one_run_section(audit, 1.0).findings
    assert finding.refuted
    assert finding.light is Light.RED
    assert "confidence 0.95" in finding.sentence
    (finding,) = one_run_section(audit, 1.0, proven=False, condition="the split was random").findings
    assert not finding.refuted
    assert finding.light is Light.AMBER
    assert "If the split was random" in finding.sentence
    (finding,) = one_run_section(audit, 50.0).findings
    assert finding.light is Light.GREEN
    assert "not refuted" in finding.sentence
    (finding,) = one_run_section(audit).findings
    assert "No epsilon was claimed" in finding.sentence


def test_bad_input():
    for arguments in ((5, 6, 1, 1.0), (5, 4, 5, 1.0), (5, 4, 3, -1.0)):
        with pytest.raises(BadParameterError):
            p_value(*arguments)
    with pytest.raises(BadParameterError, match="confidence"):
        epsilon_lower_bound(10, 10, 10, 0.0, 1.0)
    with pytest.raises(BadInputError, match="left out"):
        Observations(np.ones(3), np.ones(0))
    with pytest.raises(BadInputError, match="none may be missing"):
        Observations(np.array([np.nan]), np.ones(1))
    with pytest.raises(BadParameterError, match="at most all 4"):
        audit_observations(Observations(np.ones(2), np.ones(2)), rules=[Rule(3, 3)])


def test_the_theorem_holds_for_every_two_coin_mechanism_of_this_kind():
    """Exact: two coins through randomized response, every guess right with probability q; the bound is its own law."""
    epsilon = 0.8
    q = 1 / (1 + math.exp(-epsilon))
    exact = sum(q ** sum(right) * (1 - q) ** (2 - sum(right)) for right in product((0, 1), repeat=2) if sum(right) >= 1)
    assert p_value(2, 2, 1, epsilon) == pytest.approx(exact)
