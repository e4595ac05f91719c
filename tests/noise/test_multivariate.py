"""Multivariate Laplace noise: Gamma length, uniform direction."""

from __future__ import annotations

import math
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import gamma, kstest, laplace

from tacit.errors import BadParameterError
from tacit.noise import Source, multivariate_laplace


@pytest.mark.parametrize(("dimension", "epsilon"), [(300, 10.0), (89, 0.1), (2, 1.0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norms_are_gamma(dimension, epsilon, dtype):
    """Kolmogorov-Smirnov at 1e-7 each, mean within 6 standard errors: false-alarm rate below 1e-6 in all."""
    count = 4000
    noise = multivariate_laplace(count, dimension, epsilon, Source.from_test_seed(dimension), dtype)
    assert noise.dtype == dtype
    assert noise.shape == (count, dimension)
    norms = np.linalg.norm(noise.astype(np.float64), axis=1)
    assert kstest(norms, gamma(dimension, scale=1 / epsilon).cdf).pvalue > 1e-7
    sd = math.sqrt(dimension) / epsilon
    assert abs(norms.mean() - dimension / epsilon) < 6 * sd / math.sqrt(count)
    assert norms.std() == pytest.approx(sd, rel=0.1)


def test_norm_at_dimension_300_and_epsilon_10():
    norms = np.linalg.norm(multivariate_laplace(20_000, 300, 10.0, Source.from_test_seed(0)), axis=1)
    assert norms.mean() == pytest.approx(30, abs=0.08)
    assert norms.std() == pytest.approx(1.73, abs=0.05)


def test_direction_is_uniform():
    """Mean of the unit vectors within 6 standard errors in every one of 20 coordinates."""
    noise = multivariate_laplace(20_000, 20, 1.0, Source.from_test_seed(1), np.float64)
    unit = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    assert np.abs(unit.mean(axis=0)).max() < 6 / math.sqrt(20 * 20_000)
    assert np.abs((unit**2).mean(axis=0) - 1 / 20).max() < 6 * math.sqrt(2 / 20**2 / 20_000)


def test_one_dimension_is_laplace():
    """Kolmogorov-Smirnov, false-alarm rate 1e-6; also: no division by a zero direction."""
    noise = multivariate_laplace(200_000, 1, 2.0, Source.from_test_seed(2))[:, 0]
    assert np.isfinite(noise).all()
    assert kstest(noise[:20_000].astype(np.float64), laplace(scale=0.5).cdf).pvalue > 1e-6


def test_calibrated_noise_is_noise_at_another_epsilon():
    """Scale sensitivity / epsilon is the same sampler at epsilon / sensitivity: identical draws under one seed."""
    plain = multivariate_laplace(5, 7, 2.0, Source.from_test_seed(3), np.float64)
    calibrated = 4 * multivariate_laplace(5, 7, 8.0, Source.from_test_seed(3), np.float64)
    np.testing.assert_allclose(plain, calibrated, rtol=1e-12)


def test_the_univariate_variant_is_rejected():
    """A wrong variant, independent Laplace noise per coordinate, has other norms: the test above tells them apart."""
    wrong = Source.from_test_seed(4).generator.laplace(scale=0.1, size=(4000, 300))
    assert kstest(np.linalg.norm(wrong, axis=1), gamma(300, scale=0.1).cdf).pvalue < 1e-9


def test_no_needless_copies():
    tracemalloc.start()
    try:
        noise = multivariate_laplace(5000, 300, 1.0, Source.from_test_seed(5))
        assert tracemalloc.get_traced_memory()[1] < 1.1 * noise.nbytes
    finally:
        tracemalloc.stop()


def test_bad_parameters():
    source = Source.from_test_seed(0)
    assert multivariate_laplace(0, 3, 1.0, source).shape == (0, 3)
    for count, dimension, epsilon in ((1, 0, 1.0), (-1, 3, 1.0), (1, 3, 0.0)):
        with pytest.raises(BadParameterError):
            multivariate_laplace(count, dimension, epsilon, source)
    with pytest.raises(BadParameterError, match="float32 or float64"):
        multivariate_laplace(1, 3, 1.0, source, np.float16)


class ZerosFirst:
    """A generator whose first normal numbers are zero in every second row, as one dimension in float32 can be."""

    def __init__(self) -> None:
        self._generator = np.random.default_rng(7)
        self.redrawn: list[tuple[int, int]] = []

    def standard_normal(
        self, size: tuple[int, int] = (0, 0), dtype: type = np.float32, out: np.ndarray | None = None
    ) -> np.ndarray:
        if out is None:
            self.redrawn.append(size)
            return self._generator.standard_normal(size, dtype=dtype)
        self._generator.standard_normal(out=out, dtype=dtype)
        out[::2] = 0
        return out

    def standard_gamma(self, shape: float, size: int) -> np.ndarray:
        return self._generator.standard_gamma(shape, size)


def test_noise_without_a_direction_is_drawn_again() -> None:
    """Otherwise it would be no number at all, or zero: the word itself would be released."""
    generator = ZerosFirst()
    noise = multivariate_laplace(2_001, 1, 1.0, SimpleNamespace(generator=generator))  # type: ignore[arg-type]
    assert generator.redrawn[0] == (1_001, 1)
    assert np.isfinite(noise).all()
    assert (noise != 0).all()
    assert kstest(noise[::2, 0], laplace(scale=1.0).cdf).pvalue > 1e-6
