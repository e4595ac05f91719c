"""The price of choosing: the theorems against exact laws of the best of K, and two published mistakes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.account.selection import (
    Trial,
    TrialLaw,
    search_epsilon,
    search_noise_multiplier,
    selected_curve,
)
from tacit.account.sgd import sgd_epsilon
from tacit.auditing.published.tuning import best_of_a_secret_number, best_of_many_runs
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency
from tacit.noise.gaussian import analytic_gaussian_sigma, gaussian_epsilon
from tacit.noise.source import Source

ORDERS = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 50.0)
LAWS = [TrialLaw(kind, mean) for kind in ("poisson", "geometric") for mean in (1.0, 3.0, 20.0)]


def best_of(law: TrialLaw, probabilities: np.ndarray) -> np.ndarray:
    """The exact law of the best of K outcomes, which stand from worst to best; the last entry is no trial at all."""
    reached = np.minimum(np.concatenate([[0.0], np.cumsum(probabilities)]), 1.0)
    below = np.array([law.generating(float(share)) for share in reached])
    return np.append(np.diff(below), law.none)


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    both = (p > 0) & (q > 0)
    terms = order * np.log(p[both]) + (1 - order) * np.log(q[both])
    return float(np.logaddexp.reduce(terms)) / (order - 1)


def excess(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def check_theorem(law: TrialLaw, p: np.ndarray, q: np.ndarray) -> float:
    """The largest share of the bound that the exact divergence reaches; never above 1."""
    curve = {order: max(divergence(p, q, order), divergence(q, p, order)) for order in ORDERS}
    bound = selected_curve(law, curve, lambda epsilon: max(excess(p, q, epsilon), excess(q, p, epsilon)))
    chosen, neighbor = best_of(law, p), best_of(law, q)
    assert chosen.sum() == pytest.approx(1.0)
    exact = {order: max(divergence(chosen, neighbor, order), divergence(neighbor, chosen, order)) for order in ORDERS}
    assert all(exact[order] <= bound[order] + 1e-9 for order in ORDERS)
    return max(exact[order] / max(bound[order], 1e-12) for order in ORDERS)


weights = st.lists(st.floats(0.001, 1.0), min_size=5, max_size=5)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.label)
@given(weights, weights)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_the_exact_law_of_the_best_keeps_the_theorem(law: TrialLaw, p: Sequence[float], q: Sequence[float]) -> None:
    check_theorem(law, np.array(p) / sum(p), np.array(q) / sum(q))


def test_the_theorems_are_not_far_from_the_truth() -> None:
    """The toy run of three models: the exact divergence reaches most of what the theorem allows."""
    p, q = (
        np.array([1 - 0.5 - 1e-6, 1e-6, 0.5]),
        np.array([1 - 0.5 / math.e - math.e * 1e-6, math.e * 1e-6, 0.5 / math.e]),
    )
    assert check_theorem(TrialLaw("geometric", 1_000.0), q, p) > 0.5
    assert check_theorem(TrialLaw("poisson", 1.0), q, p) > 0.5


def test_the_epsilon_of_the_best_run_alone_is_refuted() -> None:
    many = best_of_many_runs(epsilon=1.0, runs=10, delta=1e-6)
    assert many.refutes
    assert many.spent == pytest.approx(10.0, abs=1e-3)
    secret = best_of_a_secret_number(epsilon=1.0)
    assert secret.refutes
    assert 2.9 < secret.spent <= 3.0


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.label)
def test_numbers_of_trials_follow_their_law(law: TrialLaw) -> None:
    """4,000 draws against their exact probabilities; the mean is within 5 standard deviations (false alarm 6e-7)."""
    source = Source.from_test_seed(7)
    drawn = np.array([law.draw(source) for _ in range(4_000)])
    spread = math.sqrt(law.mean if law.kind == "poisson" else law.mean * (law.mean - 1.0))
    assert abs(drawn.mean() - law.mean) <= 5 * spread / math.sqrt(len(drawn))
    probabilities = list(islice(law.probabilities(), 400))
    assert sum(probabilities) == pytest.approx(1.0, abs=1e-8)
    assert sum(p * 0.5**k for k, p in enumerate(probabilities)) == pytest.approx(law.generating(0.5))
    assert law.generating(0.0) == pytest.approx(law.none)


def test_one_sure_trial_costs_about_what_a_run_costs() -> None:
    """A geometric number of mean 1 is always 1: the bound is the Renyi one of the run itself."""
    sigma = analytic_gaussian_sigma(1.0, 1e-6, 1.0)
    chosen = search_epsilon(Trial(1.0, 1), TrialLaw("geometric", 1.0), noise_multiplier=sigma, delta=1e-6)
    assert gaussian_epsilon(sigma, 1e-6, 1.0) <= chosen < 1.2


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE])
def test_noise_is_found_and_costs_grow(adjacency: Adjacency) -> None:
    pytest.importorskip("dp_accounting")
    law = TrialLaw("poisson", 10.0)
    trial = Trial(0.05, 50)
    noise = search_noise_multiplier(trial, law, epsilon=3.0, delta=1e-5, adjacency=adjacency)
    spent = search_epsilon(trial, law, noise_multiplier=noise, delta=1e-5, adjacency=adjacency)
    assert 2.95 < spent <= 3.0
    alone = sgd_epsilon(sampling_rate=0.05, noise_multiplier=noise, steps=50, delta=1e-5, adjacency=adjacency)
    assert alone < spent < 10 * alone
    scored = Trial(0.05, 50, score_noise=20.0)
    more = search_epsilon(scored, law, noise_multiplier=noise, delta=1e-5, adjacency=adjacency)
    assert spent < more < spent + 0.2
    few = search_epsilon(trial, TrialLaw("poisson", 2.0), noise_multiplier=noise, delta=1e-5, adjacency=adjacency)
    assert few < spent


def test_sampled_and_whole_steps_meet() -> None:
    """A rate next to 1 costs next to what a rate of 1 costs, whose delta has a closed form."""
    pytest.importorskip("dp_accounting")
    law = TrialLaw("poisson", 5.0)
    whole = search_epsilon(Trial(1.0, 4, 10.0), law, noise_multiplier=5.0, delta=1e-5)
    nearly = search_epsilon(Trial(0.9999, 4, 10.0), law, noise_multiplier=5.0, delta=1e-5)
    assert nearly == pytest.approx(whole, rel=2e-3)


def test_bad_numbers_are_refused() -> None:
    for mean in (0.5, math.nan, 1e6):
        with pytest.raises(BadParameterError):
            TrialLaw("poisson", mean)
    with pytest.raises(BadParameterError) as refused:
        search_noise_multiplier(Trial(1.0, 1, score_noise=1.0), TrialLaw(), epsilon=0.5, delta=1e-5)
    assert refused.value.code == "search-out-of-reach"
    with pytest.raises(BadParameterError):
        search_epsilon(Trial(1.0, 1), TrialLaw(), noise_multiplier=1.0, delta=1e-13)
