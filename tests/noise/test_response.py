"""Randomized response: exact law, exact epsilon, unbiased estimators."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tacit.errors import BadParameterError
from tacit.noise import (
    Source,
    estimate_frequencies,
    estimate_share,
    flip_bits,
    respond,
    response_epsilon,
    response_matrix,
    response_p,
)
from tacit.noise.response import response_shares


def test_two_coins_are_ln_3():
    assert response_epsilon(0.25) == pytest.approx(math.log(3))
    assert response_p(math.log(3)) == pytest.approx(0.25)
    np.testing.assert_allclose(response_matrix(math.log(3)), [[0.75, 0.25], [0.25, 0.75]], atol=1e-12)


@settings(max_examples=300)
@given(epsilon=st.floats(1e-12, 2000), categories=st.integers(2, 2**30))
def test_epsilon_is_never_exceeded(epsilon, categories):
    """The law is rational, so the ratio can be compared exactly; the bound for e**epsilon from below is safe."""
    truth, lie = response_shares(epsilon, categories)
    assert truth >= lie >= 1
    assert truth + (categories - 1) * lie < 2**62
    if epsilon < 700:
        assert Fraction(truth, lie) <= max(Fraction(1), Fraction(math.exp(epsilon)))
    if epsilon < 20:
        assert truth / lie == pytest.approx(math.exp(epsilon), rel=1e-6 * max(1, categories / 2**20))


@pytest.mark.parametrize("categories", [2, 5])
def test_matrix(categories):
    matrix = response_matrix(1.3, categories)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    ratio = np.log(matrix[:, None, :] / matrix[None, :, :]).max()
    assert ratio <= 1.3 + 1e-15
    assert ratio == pytest.approx(1.3)


def test_samples_follow_the_matrix():
    """Chi-square at 2e-7 for each of four true categories and two bits: false-alarm rate about 1e-6."""
    source = Source.from_test_seed(0)
    count = 30_000
    for true in range(4):
        answers = respond(np.full(count, true), 4, 1.0, source)
        assert chisquare(np.bincount(answers, minlength=4), response_matrix(1.0, 4)[true] * count).pvalue > 2e-7
    for bit in (0, 1):
        flipped = flip_bits(np.full(count, bit), 1.0, source)
        assert flipped.dtype == bool
        assert chisquare(np.bincount(flipped, minlength=2), response_matrix(1.0)[bit] * count).pvalue > 2e-7


def test_estimators_are_unbiased_exactly():
    """Put the expected answers in: the true frequencies come out."""
    truth = np.array([0.1, 0.2, 0.7])
    expected = truth @ response_matrix(0.8, 3)
    answers = np.repeat(np.arange(3), np.rint(expected * 10**6).astype(int))
    np.testing.assert_allclose(estimate_frequencies(answers, 3, 0.8), truth, atol=1e-5)


def test_binary_estimator_is_the_thesis_formula():
    answers = np.array([1, 0, 1, 1, 0, 0, 0, 1, 1, 1])
    epsilon = math.log(3)
    assert estimate_share(answers, epsilon) == pytest.approx(((answers - 0.5 + 0.25) / 0.5).mean())


def test_estimates_from_samples():
    """Within 6 standard errors; sqrt(1 / (16 n p**2)) is the largest standard error."""
    count = 100_000
    bits = np.arange(count) % 10 < 3
    answers = flip_bits(bits, math.log(3), Source.from_test_seed(1))
    assert abs(estimate_share(answers, math.log(3)) - 0.3) < 6 * math.sqrt(1 / (16 * count * 0.25**2))


def test_the_missing_logarithm_is_rejected():
    """A wrong variant: reading the ratio 3 itself as epsilon would lie far too rarely for ln 3."""
    assert response_matrix(3.0)[0, 0] > 0.95
    assert response_matrix(math.log(3))[0, 0] < 0.7501


def test_huge_epsilon_still_lies_sometimes():
    assert response_matrix(1e5)[0, 1] > 0
    assert response_matrix(1e5, 1000)[0, 1] > 0


def test_shapes_and_bad_values():
    source = Source.from_test_seed(2)
    assert flip_bits(np.zeros((2, 3), bool), 1.0, source).shape == (2, 3)
    assert respond([[0, 1], [2, 0]], 3, 1.0, source).shape == (2, 2)
    with pytest.raises(BadParameterError, match="only 0 and 1"):
        flip_bits([0, 2], 1.0, source)
    with pytest.raises(BadParameterError, match="whole numbers"):
        respond([0, 3], 3, 1.0, source)
    with pytest.raises(BadParameterError, match="whole numbers"):
        respond([0.5], 3, 1.0, source)
    with pytest.raises(BadParameterError, match="categories"):
        respond([0], 1, 1.0, source)
    with pytest.raises(BadParameterError, match="at least one"):
        estimate_share([], 1.0)
    with pytest.raises(BadParameterError, match="pure chance"):
        estimate_share([1, 0], 1e-18)
    for p in (0.0, 0.5, -0.1):
        with pytest.raises(BadParameterError, match="between 0 and 1/2"):
            response_epsilon(p)
