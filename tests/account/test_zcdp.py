"""Zero-concentrated accounting, against a grid of orders, an independent library, the exact Gaussian and exact laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.account.zcdp import (
    choice_rho,
    composed_rho,
    delta_of_rho,
    epsilon_of_rho,
    gaussian_rho,
    pure_rho,
    repeated_rho,
    rho_of_epsilon,
)
from tacit.arrays import Floats
from tacit.errors import BadParameterError
from tacit.noise.choice import exponential_probabilities, rounding_slack

RHOS = st.floats(1e-8, 200.0)
DELTAS = st.floats(-25.0, -0.5).map(math.exp)


def grid_epsilon(rho: float, delta: float) -> float:
    """The bound at 200,000 orders."""
    order = 1.0 + np.exp(np.linspace(-20.0, 25.0, 200_000))
    return float((order * rho + np.log1p(-1 / order) - (math.log(delta) + np.log(order)) / (order - 1)).min())


@settings(max_examples=40, deadline=None)
@given(RHOS, DELTAS)
def test_epsilon_is_the_optimum_over_orders(rho: float, delta: float) -> None:
    best = max(0.0, grid_epsilon(rho, delta))
    assert best - 1e-6 <= epsilon_of_rho(rho, delta) <= best * (1 + 1e-6) + 1e-9


@settings(max_examples=60, deadline=None)
@given(RHOS, DELTAS)
def test_it_is_never_worse_than_the_textbook_conversion(rho: float, delta: float) -> None:
    """epsilon = rho + 2 sqrt(rho ln(1 / delta)), proposition 1.3 of Bun & Steinke."""
    assert epsilon_of_rho(rho, delta) <= (rho + 2 * math.sqrt(rho * -math.log(delta))) * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(RHOS, DELTAS)
def test_the_two_conversions_agree_on_the_safe_side(rho: float, delta: float) -> None:
    epsilon = epsilon_of_rho(rho, delta)
    if epsilon > 1e-6:
        assert delta_of_rho(rho, epsilon) == pytest.approx(delta, rel=1e-4)
        assert rho_of_epsilon(epsilon, delta) == pytest.approx(rho, rel=1e-5)
        assert epsilon_of_rho(rho_of_epsilon(epsilon, delta), delta) <= epsilon


@pytest.mark.parametrize("multiplier", [0.4, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_it_holds_for_the_gaussian_whose_delta_is_known_exactly(multiplier: float, epsilon: float) -> None:
    """Balle & Wang 2018, theorem 5: the bound lies above, and where delta is small within a factor of 20."""
    from scipy.stats import norm

    mean = 1 / multiplier
    exact = norm.cdf(mean / 2 - epsilon / mean) - math.exp(epsilon) * norm.cdf(-mean / 2 - epsilon / mean)
    bound = delta_of_rho(gaussian_rho(multiplier), epsilon)
    assert exact <= bound
    if 1e-30 < exact < 1e-2:
        assert bound <= 20 * exact


@pytest.mark.parametrize("rho", [0.001, 0.05, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_against_an_independent_library(rho: float, delta: float) -> None:
    rdp = pytest.importorskip("dp_accounting.rdp")
    from dp_accounting import dp_event

    orders = 1.0 + np.exp(np.linspace(-6.0, 12.0, 20_000))
    accountant = rdp.RdpAccountant(orders=orders.tolist()).compose(dp_event.ZCDpEvent(rho=rho))
    assert epsilon_of_rho(rho, delta) == pytest.approx(accountant.get_epsilon(delta), rel=1e-4)


def divergence(p: Floats, q: Floats, order: float) -> float:
    return float(np.log((p**order * q ** (1 - order)).sum()) / (order - 1))


def test_a_choice_has_an_eighth_of_its_range_squared() -> None:
    """All scores in {0, 1}^4, moved by every vector of {-1, 0, 1}^4: no order breaks e^2 / 8, most of it is used."""
    width = 1.5
    worst = 0.0
    for scores in itertools.product((0.0, 1.0), repeat=4):
        p = exponential_probabilities(scores, epsilon=width, sensitivity=1.0)
        for moves in itertools.product((-1.0, 0.0, 1.0), repeat=4):
            q = exponential_probabilities(np.add(scores, moves), epsilon=width, sensitivity=1.0)
            for order in (1.001, 1.5, 2.0, 8.0, 64.0):
                worst = max(worst, divergence(p, q, order) / order / choice_rho(width + rounding_slack(4)))
    assert 0.9 < worst <= 1.0


def test_the_price_of_a_choice_is_not_enough_for_a_randomized_answer() -> None:
    """Two outcomes with pure epsilon 1.5 have a range of 3: taking epsilon for the range must be refuted."""
    truth = math.exp(1.5) / (1 + math.exp(1.5))
    p, q = np.array([truth, 1 - truth]), np.array([1 - truth, truth])
    assert divergence(p, q, 1.001) / 1.001 > choice_rho(1.5)
    assert divergence(p, q, 1.001) / 1.001 <= choice_rho(3.0) <= pure_rho(3.0)
    assert pure_rho(8.0) == pytest.approx(8.0)
    assert all(divergence(p, q, order) / order <= pure_rho(1.5) for order in (1.001, 1.1, 2.0, 8.0))


@pytest.mark.parametrize(
    ("batch", "tokens", "printed"),
    [(100, 100, 2.75), (100, 1000, 9.56), (250, 1000, 3.52), (1000, 100, 0.26), (1000, 10_000, 2.75)],
)
def test_tokens_of_a_batch_known_answers(batch: int, tokens: int, printed: float) -> None:
    """Clip 10, temperature 2, delta 1e-6: the textbook conversion gives the printed numbers, ours a little less."""
    rho = repeated_rho(choice_rho(2 * 10 / (batch * 2)), tokens)
    assert rho + 2 * math.sqrt(rho * math.log(1e6)) == pytest.approx(printed, abs=0.006)
    assert 0.75 * printed < epsilon_of_rho(rho, 1e-6) < printed


def test_rhos_add_up_and_are_rounded_up() -> None:
    assert composed_rho([0.1, 0.2, 0.3]) >= 0.6
    assert repeated_rho(0.1, 7) >= 0.7
    assert repeated_rho(0.1, 0) == composed_rho([]) == 0.0
    assert epsilon_of_rho(0.0, 1e-6) == 0.0
    assert delta_of_rho(0.0, 1.0) == 0.0


@pytest.mark.parametrize("rho", [-1.0, math.nan, math.inf])
def test_a_rho_that_means_nothing_is_refused(rho: float) -> None:
    with pytest.raises(BadParameterError):
        epsilon_of_rho(rho, 1e-6)
    with pytest.raises(BadParameterError):
        composed_rho([0.1, rho])
