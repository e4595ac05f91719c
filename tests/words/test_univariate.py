"""Univariate Laplace noise: its promise about any two words, exactly, and the wrong sensitivity that was published."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.guarantee import Notion
from tacit.noise.laplace import laplace_grid
from tacit.noise.source import Source
from tacit.vectors import VectorTable
from tacit.words.univariate_laplace import UnivariateLaplace
from tests.conftest import small_table

EPSILON = 3.0
TOKENS = 7


def largest_loss(mechanism: UnivariateLaplace, l1_sensitivity: float) -> float:
    """The largest privacy loss over all pairs of words and all outputs, of discrete Laplace noise for this sensitivity.

    The noise of the numbers is independent with density proportional to exp(-|k| / t), so the loss of a pair is the sum
    of its differences in whole numbers, over t: some output has it.
    """
    vectors = np.asarray(mechanism.space, dtype=np.float64)
    grid = laplace_grid(EPSILON, l1_sensitivity, TOKENS * vectors.shape[1])
    steps = np.rint(vectors / grid.step).astype(np.int64)
    differences = np.abs(steps[:, None] - steps[None]).sum(axis=2)
    return float(differences.max() / grid.integer_scale)


@pytest.mark.parametrize("bounding", ["none", "unit", "minus-one-to-one"])
def test_any_two_words_of_the_vocabulary_keep_the_promise(bounding: str):
    mechanism = UnivariateLaplace(epsilon=EPSILON, vectors=small_table(40, 3, seed=1), bounding=bounding)
    promise = mechanism.promise()
    assert (promise.notion, promise.epsilon, promise.delta, promise.metric) == (Notion.PURE, EPSILON, 0.0, None)
    assert largest_loss(mechanism, mechanism.l1_sensitivity) <= EPSILON


def test_the_sensitivity_of_one_number_is_not_that_of_a_vector():
    """Lyu et al. 2020: numbers in [0, 1], and noise for a sensitivity of 1."""
    corners = VectorTable(["a", "b"], np.array([[1e-9] * 4, [1.0] * 4], dtype=np.float32), "corners", "a test")
    mechanism = UnivariateLaplace(epsilon=EPSILON, vectors=corners)
    assert mechanism.l1_sensitivity == pytest.approx(4.0)
    assert largest_loss(mechanism, 1.0) > 3.9 * EPSILON
    assert largest_loss(mechanism, mechanism.l1_sensitivity) <= EPSILON


def test_the_noise_has_the_scale_of_the_promise():
    mechanism = UnivariateLaplace(epsilon=EPSILON, vectors=small_table(40, 3, seed=1))
    ids = np.zeros(4_000, dtype=np.int64)
    noise = mechanism.noisy_vectors(ids, Source.from_test_seed(5)) - mechanism.space[0]
    # The mean of |z| over 12,000 draws is off by 1 / sqrt(12,000) of the scale; six of these: one alarm in 10^9.
    scale = mechanism.l1_sensitivity / EPSILON
    assert np.abs(noise).mean() == pytest.approx(scale, rel=6 / np.sqrt(12_000))
    assert not len(mechanism.noisy_vectors(ids[:0], Source.from_test_seed(5)))
