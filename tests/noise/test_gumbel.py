"""Gumbel, truncated Gumbel and truncated Poisson."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import chisquare, gumbel_r, kstest, poisson

from tacit.errors import BadParameterError
from tacit.noise import (
    Source,
    gumbel,
    gumbel_cdf,
    gumbel_density,
    truncated_gumbel,
    truncated_gumbel_cdf,
    truncated_gumbel_density,
    truncated_poisson,
    truncated_poisson_pmf,
)


def test_gumbel():
    """Kolmogorov-Smirnov, false-alarm rate 1e-6."""
    x = np.linspace(-10, 30, 41)
    np.testing.assert_allclose(gumbel_cdf(x, 2.5), gumbel_r(scale=2.5).cdf(x), rtol=1e-12)
    np.testing.assert_allclose(gumbel_density(x, 2.5), gumbel_r(scale=2.5).pdf(x), rtol=1e-12)
    assert gumbel_cdf(-1e6, 1.0) == gumbel_density(-1e6, 1.0) == 0
    drawn = gumbel(2.5, 20_000, Source.from_test_seed(0))
    assert kstest(drawn, gumbel_r(scale=2.5).cdf).pvalue > 1e-6


@pytest.mark.parametrize(("scale", "bound"), [(21.6, 18.42), (1.0, 0.5), (0.3, 1.0), (1.0, 4.0)])
def test_truncated_law_is_the_conditioned_one(scale, bound):
    x = np.linspace(-bound, bound, 33)
    base = gumbel_r(scale=scale)
    mass = base.cdf(bound) - base.cdf(-bound)
    np.testing.assert_allclose(
        truncated_gumbel_cdf(x, scale, bound), (base.cdf(x) - base.cdf(-bound)) / mass, atol=1e-12
    )
    np.testing.assert_allclose(truncated_gumbel_density(x, scale, bound), base.pdf(x) / mass, rtol=1e-10)


@pytest.mark.parametrize("ratio", [1e-9, 1e-3, 0.5, 0.999, 1.0, 1.001, 3.0, 40.0, 1e3, 1e6])
def test_truncated_samples_at_all_ratios(ratio):
    """Kolmogorov-Smirnov at 1e-7 for each of ten ratios of bound to scale: false-alarm rate 1e-6."""
    scale = 2.0
    bound = ratio * scale
    drawn = truncated_gumbel(scale, bound, 5000, Source.from_test_seed(7))
    assert np.isfinite(drawn).all()
    assert np.abs(drawn).max() <= bound
    assert kstest(drawn, lambda x: truncated_gumbel_cdf(x, scale, bound)).pvalue > 1e-7


def test_a_sliver_is_nearly_uniform_and_a_wide_range_nearly_gumbel():
    x = np.linspace(-1e-9, 1e-9, 5)
    np.testing.assert_allclose(truncated_gumbel_cdf(x, 1.0, 1e-9), [0, 0.25, 0.5, 0.75, 1], atol=1e-8)
    np.testing.assert_allclose(truncated_gumbel_cdf([-1, 0, 2], 1.0, 1e4), gumbel_cdf([-1, 0, 2], 1.0), rtol=1e-12)


def test_clamping_instead_of_conditioning_is_rejected():
    """The wrong variant puts atoms on the ends."""
    wrong = np.clip(gumbel(1.0, 5000, Source.from_test_seed(1)), -0.5, 0.5)
    assert (wrong == 0.5).mean() > 0.1
    assert kstest(wrong, lambda x: truncated_gumbel_cdf(x, 1.0, 0.5)).pvalue < 1e-9
    assert (truncated_gumbel(1.0, 0.5, 5000, Source.from_test_seed(1)) == 0.5).sum() == 0


@settings(max_examples=40)
@given(scale=st.floats(0.1, 10), bound=st.floats(0.1, 30))
def test_density_integrates_to_the_distribution_function(scale, bound):
    assert truncated_gumbel_cdf(-bound, scale, bound) == pytest.approx(0, abs=1e-12)
    assert truncated_gumbel_cdf(bound, scale, bound) == 1
    upper = bound / 3
    integral = quad(lambda x: float(truncated_gumbel_density(x, scale, bound)), -bound, upper, limit=200)[0]
    assert integral == pytest.approx(float(truncated_gumbel_cdf(upper, scale, bound)), abs=1e-6)


def test_outside_the_bound():
    assert truncated_gumbel_density([-3, 3], 1.0, 2.0).tolist() == [0, 0]
    assert truncated_gumbel_cdf([-3, 3], 1.0, 2.0).tolist() == [0, 1]


@pytest.mark.parametrize(("rate", "upper"), [(10.45, 34_573), (0.01, 5), (3.0, 2), (50.0, 10), (1.0, 1)])
def test_truncated_poisson(rate, upper):
    """Chi-square at 1e-7 for each of five cases."""
    pmf = truncated_poisson_pmf(rate, upper)
    assert pmf.sum() == pytest.approx(1)
    base = poisson(rate)
    few = np.arange(1, min(upper, 60) + 1)
    np.testing.assert_allclose(pmf[: few.size], base.pmf(few) / (base.cdf(upper) - base.pmf(0)), rtol=1e-8, atol=1e-300)
    count = 20_000
    drawn = truncated_poisson(rate, upper, count, Source.from_test_seed(9))
    assert drawn.min() >= 1
    assert drawn.max() <= upper
    common = np.flatnonzero(pmf * count >= 5)
    observed = np.bincount(drawn, minlength=upper + 1)[1:]
    rest = count - observed[common].sum(), count * (1 - pmf[common].sum())
    seen, expected = np.append(observed[common], rest[0]), np.append(pmf[common] * count, rest[1])
    if rest[1] < 5:
        assert rest[0] < 30
        seen, expected = seen[:-1], expected[:-1] * seen[:-1].sum() / expected[:-1].sum()
    if seen.size > 1:
        assert chisquare(seen, expected).pvalue > 1e-7


def test_sizes():
    source = Source.from_test_seed(0)
    assert truncated_gumbel(1.0, 2.0, (3, 4), source).shape == (3, 4)
    assert truncated_poisson(3.0, 9, (3, 4), source).shape == (3, 4)
    assert truncated_poisson(0.001, 9, (3, 4), source).shape == (3, 4)


def test_bad_parameters():
    for bad in (0.0, -1.0, math.nan):
        with pytest.raises(BadParameterError):
            truncated_gumbel(bad, 1.0, 1, Source.from_test_seed(0))
        with pytest.raises(BadParameterError):
            truncated_gumbel_cdf(0.0, 1.0, bad)
    with pytest.raises(BadParameterError, match="at least 1"):
        truncated_poisson_pmf(1.0, 0)
