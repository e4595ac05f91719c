"""The Gaussian mechanism: calibration against known answers and its own definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr
from scipy.stats import kstest

from tacit.errors import BadParameterError
from tacit.noise import (
    Source,
    add_gaussian,
    analytic_gaussian_sigma,
    classical_gaussian_sigma,
    gaussian_delta,
    gaussian_epsilon,
)

EPSILONS = (1, 10, 50, 100, 250, 500, 750, 1000, 2500)
CLV = 2 * 0.1 * math.sqrt(20 * 768)
PR = 2 * 0.1 * math.sqrt(20 * 182)


@pytest.mark.parametrize(
    ("sensitivity", "delta", "sigmas"),
    [
        (CLV, 1e-5, (92.4715, 12.3908, 3.7121, 2.3466, 1.3371, 0.8957, 0.7138, 0.6093, 0.3722)),
        (CLV, 1e-7, (115.9705, 14.3660, 4.0399, 2.4983, 1.3928, 0.9223, 0.7311, 0.6221, 0.3772)),
        (PR, 1e-5, (45.0156, 6.0319, 1.8071, 1.1423, 0.6509, 0.4360, 0.3475, 0.2966, 0.1812)),
        (PR, 1e-7, (56.4550, 6.9935, 1.9667, 1.2162, 0.6780, 0.4490, 0.3559, 0.3028, 0.1836)),
    ],
)
def test_known_answers_of_dp_bart(sensitivity, delta, sigmas):
    for epsilon, sigma in zip(EPSILONS, sigmas, strict=True):
        assert analytic_gaussian_sigma(epsilon, delta, sensitivity) == pytest.approx(sigma, abs=5.1e-5)


def test_sensitivities_of_dp_bart():
    assert pytest.approx(24.787, abs=5e-4) == CLV
    assert pytest.approx(12.066, abs=5e-4) == PR


def test_known_answers():
    assert analytic_gaussian_sigma(1, 1e-5, 1) == pytest.approx(3.7306, abs=5e-5)
    assert analytic_gaussian_sigma(0.5, 1e-5, 1) == pytest.approx(7.0318, abs=5e-5)
    assert classical_gaussian_sigma(0.5, 1e-5, 1) == pytest.approx(9.6896, abs=5e-5)
    assert classical_gaussian_sigma(1 - 1e-12, 1e-5, 1) == pytest.approx(4.8448, abs=5e-5)


def test_worked_example_of_200_traits():
    """The thesis prints 166 for the classical rule; its own formula gives 68.58."""
    assert classical_gaussian_sigma(0.999, 1e-5, math.sqrt(200)) == pytest.approx(68.58, abs=0.005)
    assert analytic_gaussian_sigma(0.999, 1e-5, math.sqrt(200)) == pytest.approx(52.81, abs=0.005)


@pytest.mark.parametrize(("epsilon", "real_delta"), [(10, 2.3e-5), (50, 0.59), (100, 1.0)])
def test_the_classical_rule_is_wrong_beyond_one(epsilon, real_delta):
    """The wrong variant: the classical formula where it is not proven misses its delta of 1e-5."""
    sigma = math.sqrt(2 * math.log(1.25 / 1e-5)) / epsilon
    assert gaussian_delta(epsilon, sigma, 1) == pytest.approx(real_delta, rel=0.02)
    assert gaussian_delta(epsilon, sigma, 1) > 1e-5
    with pytest.raises(BadParameterError, match="analytic_gaussian_sigma"):
        classical_gaussian_sigma(epsilon, 1e-5, 1)


def test_the_classical_rule_is_refused_at_exactly_one():
    with pytest.raises(BadParameterError, match="below 1 only"):
        classical_gaussian_sigma(1.0, 1e-5, 1)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 3])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_delta_is_the_formula_where_it_does_not_overflow(epsilon, sigma):
    a, b = 1 / (2 * sigma), epsilon * sigma
    naive = math.exp(log_ndtr(a - b)) - math.exp(epsilon) * math.exp(log_ndtr(-a - b))
    assert gaussian_delta(epsilon, sigma, 1) == pytest.approx(naive, rel=1e-9, abs=1e-15)


def test_delta_by_numerical_integration():
    """delta = integral of max(0, p - e**epsilon p'), the definition, without any formula."""
    epsilon, sigma = 1.5, 0.8
    x = np.linspace(-12, 13, 2_000_001)
    p = np.exp(-((x - 1) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    q = np.exp(-(x**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    integral = float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * (x[1] - x[0]))
    assert gaussian_delta(epsilon, sigma, 1) == pytest.approx(integral, rel=1e-6)


extremes = {
    "epsilon": st.floats(1e-4, 1e4),
    "delta": st.floats(-290, -0.01).map(lambda power: 10.0**power),
    "sensitivity": st.floats(1e-3, 1e3),
}


@settings(max_examples=150)
@given(**extremes)
def test_sigma_delta_and_epsilon_are_inverse(epsilon, delta, sensitivity):
    sigma = analytic_gaussian_sigma(epsilon, delta, sensitivity)
    assert gaussian_delta(epsilon, sigma, sensitivity) == pytest.approx(delta, rel=1e-6)
    if delta < 0.5:
        assert gaussian_epsilon(sigma, delta, sensitivity) == pytest.approx(epsilon, rel=1e-6)


@settings(max_examples=100)
@given(**extremes)
def test_more_privacy_needs_more_noise(epsilon, delta, sensitivity):
    sigma = analytic_gaussian_sigma(epsilon, delta, sensitivity)
    assert analytic_gaussian_sigma(epsilon * 1.1, delta, sensitivity) < sigma
    assert analytic_gaussian_sigma(epsilon, delta / 2, sensitivity) > sigma
    assert analytic_gaussian_sigma(epsilon, delta, 2 * sensitivity) == pytest.approx(2 * sigma)


@settings(max_examples=60)
@given(epsilon=st.floats(1e-3, 0.999), delta=st.floats(1e-12, 1e-2))
def test_analytic_is_never_worse_than_classical(epsilon, delta):
    assert analytic_gaussian_sigma(epsilon, delta, 1) <= classical_gaussian_sigma(epsilon, delta, 1)


def test_enough_noise_needs_no_epsilon():
    assert gaussian_epsilon(1e6, 0.01, 1) == 0.0


def test_releases_lie_on_a_public_grid():
    sigma = 3.0
    values = np.array([0.1, 1 / 3, math.pi, -1e-9])
    release = add_gaussian(values, sigma=sigma, source=Source.from_test_seed(0)) / 2.0 ** (1 - 20)
    np.testing.assert_array_equal(release, np.rint(release))


def test_release_is_normal_around_the_values():
    """Kolmogorov-Smirnov, false-alarm rate 1e-6."""
    values = np.linspace(-5, 5, 20_000)
    release = add_gaussian(values, sigma=2.0, source=Source.from_test_seed(1))
    assert kstest((release - values) / 2.0, "norm").pvalue > 1e-6


def test_shapes_and_huge_values():
    assert add_gaussian(1.0, sigma=1, source=Source.from_test_seed(0)).shape == ()
    assert add_gaussian(np.zeros((2, 3), np.float32), sigma=1, source=Source.from_test_seed(0)).shape == (2, 3)
    assert add_gaussian(1e300, sigma=1, source=Source.from_test_seed(0)) > 0


@pytest.mark.parametrize("delta", [0, 1, -0.1, math.nan])
def test_bad_delta(delta):
    with pytest.raises(BadParameterError, match="delta"):
        analytic_gaussian_sigma(1, delta, 1)


def test_bad_sigma():
    with pytest.raises(BadParameterError, match="sigma"):
        gaussian_delta(1, 0, 1)
    with pytest.raises(BadParameterError, match="sigma"):
        add_gaussian([1.0], sigma=-1, source=Source.from_test_seed(0))
    with pytest.raises(BadParameterError, match="epsilon"):
        gaussian_delta(-1, 1, 1)
    with pytest.raises(BadParameterError, match="rescale"):
        add_gaussian([1.0], sigma=1e-300, source=Source.from_test_seed(0))
