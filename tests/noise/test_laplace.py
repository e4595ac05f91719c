"""The Laplace mechanism on a grid."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest, laplace

from tacit.errors import BadParameterError
from tacit.noise import Source, add_laplace, laplace_epsilon, laplace_grid, laplace_noise, laplace_scale
from tacit.noise.laplace import discrete_laplace


def test_scale_of_the_worked_example():
    """200 binary traits, epsilon 0.999: about 200."""
    assert laplace_scale(0.999, 200) == pytest.approx(200.2, abs=0.01)
    assert laplace_epsilon(laplace_scale(0.7, 3), 3) == pytest.approx(0.7)


def test_discrete_laplace_has_the_exact_law():
    """False-alarm rate 1e-6 for the two scales together."""
    for seed, scale in ((0, 1), (1, 5)):
        count = 200_000
        drawn = discrete_laplace(scale, count, Source.from_test_seed(seed))
        reach = 6 * scale
        support = np.arange(-reach, reach + 1)
        base = math.expm1(1 / scale) / (math.exp(1 / scale) + 1)
        law = base * np.exp(-np.abs(support) / scale)
        inside = drawn[np.abs(drawn) <= reach]
        observed = np.append(np.bincount(inside + reach, minlength=support.size), count - inside.size)
        expected = np.append(law, 1 - law.sum()) * count
        assert chisquare(observed, expected).pvalue > 5e-7


def test_zero_is_not_counted_twice():
    """A wrong sampler that keeps minus zero has twice the mass at zero. 6 standard deviations."""
    count = 100_000
    zeros = int((discrete_laplace(2, count, Source.from_test_seed(5)) == 0).sum())
    p = math.expm1(0.5) / (math.exp(0.5) + 1)
    assert abs(zeros - count * p) < 6 * math.sqrt(count * p * (1 - p))


@settings(max_examples=200)
@given(
    epsilon=st.floats(1e-3, 1e4),
    sensitivity=st.floats(1e-6, 1e6),
    dimension=st.integers(1, 10**5),
)
def test_the_grid_keeps_the_claim(epsilon, sensitivity, dimension):
    """Exact rational arithmetic: the enlarged distance over the integer scale never exceeds epsilon."""
    grid = laplace_grid(epsilon, sensitivity, dimension)
    assert math.frexp(grid.step)[0] == 0.5
    distance = Fraction(sensitivity) / Fraction(grid.step) + dimension
    assert distance / grid.integer_scale <= Fraction(epsilon)
    assert 1 <= grid.scale / laplace_scale(epsilon, sensitivity) < 1 + 2.0**-14
    assert grid.step < grid.scale * 2.0**-19


def test_releases_lie_on_the_public_grid():
    source = Source.from_test_seed(0)
    values = np.array([0.1, 1 / 3, math.pi, -1e-9])
    step = laplace_grid(1.0, 1.0, 4).step
    release = add_laplace(values, epsilon=1.0, l1_sensitivity=1.0, source=source) / step
    np.testing.assert_array_equal(release, np.rint(release))
    # The naive sum is off the grid: its last bits depend on the value.
    naive = (values + laplace_noise(1.0, 4, source)) / step
    assert (naive != np.rint(naive)).any()


def test_release_is_distributed_around_the_values():
    """Kolmogorov-Smirnov, false-alarm rate 1e-6."""
    release = add_laplace(
        np.full(20_000, 7.25), epsilon=20_000.0, l1_sensitivity=20_000.0, source=Source.from_test_seed(1)
    )
    assert kstest(release - 7.25, laplace(scale=1.0).cdf).pvalue > 1e-6
    assert kstest(laplace_noise(2.0, 20_000, Source.from_test_seed(3)), laplace(scale=2.0).cdf).pvalue > 1e-6


def test_rounding_and_clamping_never_enlarge_the_distance():
    """Neighboring values at the clamp end up no farther apart; huge values do not wrap around."""
    for value in (1e300, -1e300):
        assert np.sign(add_laplace(value, epsilon=1, l1_sensitivity=1, source=Source.from_test_seed(0))) == np.sign(
            value
        )


def test_shapes():
    source = Source.from_test_seed(0)
    assert add_laplace(3.0, epsilon=1, l1_sensitivity=1, source=source).shape == ()
    assert add_laplace(np.zeros((2, 3)), epsilon=1, l1_sensitivity=1, source=source).shape == (2, 3)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0, 1), (-1, 1), (1, 0), (math.nan, 1), (math.inf, 1)])
def test_bad_parameters(epsilon, sensitivity):
    with pytest.raises(BadParameterError, match="above zero"):
        laplace_scale(epsilon, sensitivity)


def test_bad_values():
    source = Source.from_test_seed(0)
    with pytest.raises(BadParameterError, match="clip"):
        add_laplace([1.0, np.nan], epsilon=1, l1_sensitivity=1, source=source)
    with pytest.raises(BadParameterError, match="nothing to release"):
        add_laplace([], epsilon=1, l1_sensitivity=1, source=source)
    with pytest.raises(BadParameterError, match="too small"):
        add_laplace([1.0], epsilon=1e-15, l1_sensitivity=1, source=source)
