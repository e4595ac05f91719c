"""The Renyi bound of sampled examples of users: above the exact divergences of both directions, and near them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("dp_accounting")

from scipy.special import logsumexp

from tacit.account.group_renyi import RatioGrid, epsilon_of_curve, mixture_curve
from tacit.account.groups import MixturePair, binomial_law, group_epsilon, group_noise_multiplier
from tacit.account.renyi import renyi_divergence


def law(group: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    drawn, probabilities = binomial_law(group, rate)
    return np.array(drawn, dtype=float), np.array(probabilities)


def exact_moment(group: int, rate: float, sigma: float, order: int) -> float:
    """ln E_Q r^order for a whole number: the product of mixtures written out, a sum of positive numbers."""
    drawn, probabilities = law(group, rate)
    weights = np.log(probabilities) - drawn**2 / (2.0 * sigma**2)
    logs, totals = weights, drawn
    for _ in range(order - 1):
        logs = (logs[:, None] + weights).ravel()
        totals = (totals[:, None] + drawn).ravel()
    return float(logsumexp(logs + totals**2 / (2.0 * sigma**2)))


def integrated(pair: MixturePair, power: float) -> float:
    """ln E_Q r^power by the trapezoidal rule, which has all digits for functions as smooth as this."""
    x = np.linspace(-60.0 * pair.sigma, 60.0 * pair.sigma + abs(power) * pair.drawn[-1], 200_001)
    return float(logsumexp(power * pair.loss(x) - x**2 / (2.0 * pair.sigma**2)) + math.log(x[1] - x[0])) - math.log(
        pair.sigma * math.sqrt(2.0 * math.pi)
    )


@given(group=st.integers(1, 6), rate=st.floats(1e-4, 0.99), sigma=st.floats(0.5, 40.0), order=st.integers(2, 5))
@settings(max_examples=25, deadline=None)
def test_the_bound_of_removing_a_user_is_just_above_the_exact_sum(group, rate, sigma, order):
    grid = RatioGrid.of(*law(group, rate), sigma)
    exact = exact_moment(group, rate, sigma, order)
    bound = grid._moment(grid._removing(float(order)), float(order))
    assert exact * (1.0 - 1e-9) <= bound <= 1.1 * exact + 1e-9


@pytest.mark.parametrize(("group", "rate", "sigma"), [(3, 0.2, 1.5), (16, 0.05, 8.0), (8, 0.001, 1.0), (5, 0.9, 2.0)])
@pytest.mark.parametrize("order", [1.25, 2.0, 6.0, 20.0])
def test_both_directions_are_just_above_the_integral(group, rate, sigma, order):
    pair = MixturePair.binomial(group, rate, sigma)
    grid = RatioGrid.of(pair.drawn, pair.probabilities, sigma)
    for parts, power in ((grid._removing(order), order), (grid._adding(order), 1.0 - order)):
        exact, bound = integrated(pair, power), grid._moment(parts, order)
        assert exact - 1e-9 <= bound <= 1.03 * exact + 1e-8


@pytest.mark.parametrize(("rate", "sigma"), [(0.01, 1.0), (0.2, 3.0)])
def test_a_group_of_one_is_a_record(rate, sigma):
    curve = mixture_curve(*law(1, rate), sigma)
    for order in (2, 4, 16, 64):
        exact = renyi_divergence(rate, sigma, order)
        assert exact * (1.0 - 1e-9) <= curve[float(order)] <= 1.03 * exact


def test_forgetting_what_lies_outside_of_the_grid_is_refuted():
    """High orders live far to the right, where the grid does not reach: without its bound there they would be free."""
    pair = MixturePair.binomial(4, 0.3, 0.5)
    grid = RatioGrid.of(pair.drawn, pair.probabilities, 0.5)
    cut = RatioGrid(grid.sigma, grid.drawn, grid.logs, *(v[:900] for v in (grid.x, grid.excess, grid.sizes)),
                    grid.losses[:900], grid.pieces[:899])  # fmt: skip
    order = 20.0
    whole, within, beyond = grid._moment(grid._removing(order), order), cut._within(order, order), cut._removing(order)
    assert within < whole - 1.0
    assert cut._moment(beyond, order) >= whole - 1e-6


def test_a_tiny_delta_is_accounted_and_never_below_a_larger_one():
    """Where privacy-loss distributions end, the bound takes over: it is above them where both hold."""
    options = {"sampling_rate": 0.02, "group": 8, "noise_multiplier": 8.0, "steps": 50}
    spent = [group_epsilon(delta=delta, coarse=True, **options) for delta in (1e-9, 1e-14, 1e-20, 1e-30)]
    assert all(before < after for before, after in itertools.pairwise(spent))
    assert spent[0] < epsilon_of_curve(mixture_curve(*law(8, 0.02), 8.0), 50, 1e-9) < 1.3 * spent[0]
    multiplier = group_noise_multiplier(epsilon=2.0, sampling_rate=0.02, group=8, steps=50, delta=1e-20)
    again = group_epsilon(**{**options, "noise_multiplier": multiplier}, delta=1e-20)
    assert 1.98 < again <= 2.0
