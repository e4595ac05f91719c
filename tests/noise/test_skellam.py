"""Skellam noise: the law of its sampler, sums of shares, and the bound on its divergence against the exact one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ive, logsumexp
from scipy.stats import chi2

from tacit.errors import BadParameterError
from tacit.noise.skellam import skellam, skellam_divergence
from tacit.noise.source import Source


def log_law(mean: int, variance: float, places: np.ndarray) -> np.ndarray:
    """ln Pr[mean + Skellam = k] = ln I_|k - mean|(variance) - variance."""
    return np.asarray(np.log(ive(np.abs(places - mean), variance)))


def exact_divergence(order: float, variance: float, moved: int) -> float:
    reach = int(12 * math.sqrt(variance) + 40 + 3 * moved + order * moved)
    places = np.arange(-reach, reach + 1)
    first, second = log_law(moved, variance, places), log_law(0, variance, places)
    kept = np.isfinite(first) & np.isfinite(second)
    return float(logsumexp(order * first[kept] + (1 - order) * second[kept])) / (order - 1)


@pytest.mark.parametrize("variance", [5.0, 20.0, 100.0, 1000.0])
@pytest.mark.parametrize("moved", [1, 2, 4])
@pytest.mark.parametrize("order", [2, 3, 8, 16])
def test_the_bound_is_never_below_the_exact_divergence(variance: float, moved: int, order: int) -> None:
    exact = exact_divergence(order, variance, moved)
    bound = skellam_divergence(order, variance, moved, moved)
    assert exact <= bound * (1 + 1e-9)
    if variance == 1000.0 and order * moved < 10:
        assert bound < exact * 1.005  # and hardly above it
    assert skellam_divergence(order, variance, moved) >= bound


def test_shares_of_clients_that_dropped_out_are_missed() -> None:
    """The mistake that planning for the smallest cohort avoids: half of the shares, and the claim is broken."""
    claimed = skellam_divergence(4, 1000.0, 3, 3)
    assert exact_divergence(4, 1000.0, 3) <= claimed < exact_divergence(4, 500.0, 3)


@pytest.mark.parametrize("shares", [1, 10])
def test_the_sampler_and_a_sum_of_shares_have_the_law(shares: int) -> None:
    """40,000 numbers against the exact probabilities: chi-square (false alarm 1 in 1,000)."""
    source = Source.from_test_seed(11)
    drawn = np.sum([skellam(12.0 / shares, 40_000, source) for _ in range(shares)], axis=0)
    places = np.arange(-12, 13)
    expected = 40_000 * np.exp(log_law(0, 12.0, places))
    observed = np.array([(drawn == place).sum() for place in places])
    statistic = ((observed - expected) ** 2 / expected).sum()
    rest, rest_expected = 40_000 - observed.sum(), 40_000 - expected.sum()
    statistic += (rest - rest_expected) ** 2 / rest_expected
    assert statistic < chi2.ppf(0.999, len(places))


def test_large_noise_has_its_variance() -> None:
    """20,000 numbers of variance 10^12: within 4 standard errors (false alarm below 1 in 10,000)."""
    drawn = skellam(1e12, 20_000, Source.from_test_seed(2)).astype(np.float64)
    assert abs(drawn.var() / 1e12 - 1) < 4 * math.sqrt(2 / 20_000)


def test_impossible_noise_is_refused() -> None:
    for variance in (0.0, 2.0**61, math.nan):
        with pytest.raises(BadParameterError):
            skellam(variance, 3, Source.from_test_seed(0))
    with pytest.raises(BadParameterError):
        skellam_divergence(1.5, 1.0, 1.0)
