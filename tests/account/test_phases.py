"""Accounting of phases: against quadrature over two steps, against one phase, and against the Renyi bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("dp_accounting")

from tacit.account.phases import Phase, phased_epsilon, phased_noise_multiplier
from tacit.account.renyi import renyi_epsilon_of_phases
from tacit.account.sgd import sgd_epsilon
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency

SIGMA, DELTA = 0.9, 1e-3


def mixture(points: NDArray[np.float64], rate: float, shift: float) -> NDArray[np.float64]:
    normal = (
        np.exp(-((points - mean) ** 2) / (2 * SIGMA**2)) / (SIGMA * math.sqrt(2 * math.pi)) for mean in (0, shift)
    )
    without, with_record = normal
    mixed: NDArray[np.float64] = (1 - rate) * without + rate * with_record
    return mixed


def quadrature_delta(epsilon: float, rates: tuple[float, float], adjacency: Adjacency) -> float:
    """The exact delta of two steps at two rates, by a sum over the plane of their outputs."""
    points, width = np.linspace(-9.0, 10.0, 2_401, retstep=True)
    left = [mixture(points, rate, 1.0) for rate in rates]
    away = 0.0 if adjacency is Adjacency.ADD_REMOVE else -1.0
    right = [mixture(points, rate, away) for rate in rates]
    p, q = (np.outer(*laws) * width**2 for laws in (left, right))
    return max(float(np.clip(a - math.exp(epsilon) * b, 0, None).sum()) for a, b in ((p, q), (q, p)))


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE])
@pytest.mark.parametrize("rates", [(0.1, 0.4), (0.5, 0.05), (0.3, 1.0)])
def test_two_steps_at_two_rates_cost_what_the_plane_says(rates: tuple[float, float], adjacency: Adjacency) -> None:
    epsilon = phased_epsilon(
        phases=[Phase(rate, 1) for rate in rates], noise_multiplier=SIGMA, delta=DELTA, adjacency=adjacency
    )
    assert quadrature_delta(epsilon, rates, adjacency) <= DELTA * (1 + 1e-6), "never below the truth"
    assert quadrature_delta(epsilon - 0.005, rates, adjacency) > DELTA, "and not far above it"


def test_phases_of_one_rate_are_one_run() -> None:
    run = sgd_epsilon(sampling_rate=0.02, noise_multiplier=1.1, steps=120, delta=1e-5)
    cut = phased_epsilon(phases=[Phase(0.02, 50), Phase(0.02, 70)], noise_multiplier=1.1, delta=1e-5)
    assert cut == pytest.approx(run, abs=2e-3)
    assert cut >= run - 1e-6
    full = phased_epsilon(phases=[Phase(1.0, 3), Phase(1.0, 6)], noise_multiplier=6.0, delta=1e-5)
    assert full == pytest.approx(sgd_epsilon(sampling_rate=1.0, noise_multiplier=6.0, steps=9, delta=1e-5))


def test_the_order_of_phases_does_not_matter_and_the_renyi_bound_is_above() -> None:
    phases = [Phase(0.01, 100), Phase(0.04, 25)]
    there, back = (
        phased_epsilon(phases=order, noise_multiplier=1.0, delta=1e-5, coarse=True) for order in (phases, phases[::-1])
    )
    assert there == pytest.approx(back, abs=1e-6)
    assert there < renyi_epsilon_of_phases(phases, 1.0, 1e-5, Adjacency.ADD_REMOVE)
    tiny = phased_epsilon(phases=phases, noise_multiplier=1.0, delta=1e-14)
    assert tiny == renyi_epsilon_of_phases(phases, 1.0, 1e-14, Adjacency.ADD_REMOVE)


def test_the_multiplier_keeps_epsilon_and_wastes_little() -> None:
    phases = [Phase(0.05, 20), Phase(0.2, 20)]
    multiplier = phased_noise_multiplier(epsilon=2.0, phases=phases, delta=1e-5)
    assert 1.99 < phased_epsilon(phases=phases, noise_multiplier=multiplier, delta=1e-5) <= 2.0


def test_what_is_no_run_is_refused() -> None:
    with pytest.raises(BadParameterError):
        phased_epsilon(phases=[], noise_multiplier=1.0, delta=1e-5)
    with pytest.raises(BadParameterError):
        phased_epsilon(phases=[Phase(0.1, 5), Phase(1.1, 5)], noise_multiplier=1.0, delta=1e-5)
