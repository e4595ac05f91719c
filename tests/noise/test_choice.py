"""Exponential choice with integer thresholds: exact weights, exact law, and the promised slack."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tacit.errors import BadParameterError
from tacit.noise import (
    Source,
    draw_rows,
    exponent_cap,
    exponential_choice,
    exponential_probabilities,
    integer_weights,
    probabilities,
    rounding_slack,
    weight_bits,
)
from tacit.noise.choice import MANY_DRAWS


@given(st.integers(1, 2**41 - 1))
def test_the_sum_of_all_weights_fits(outcomes):
    bits = weight_bits(outcomes)
    assert outcomes * 2**bits < 2**62 <= outcomes * 2 ** (bits + 1)
    assert bits > 20


def test_too_many_or_no_outcomes_are_refused():
    with pytest.raises(BadParameterError, match="not empty"):
        weight_bits(0)
    with pytest.raises(BadParameterError, match="too many"):
        weight_bits(2**41)


def test_weights_are_the_formula():
    exponents = np.array([[0.0, 0.5, 3.0, 10.0, 1e6, np.inf]])
    bits, cap = weight_bits(6), exponent_cap(6)
    weights = integer_weights(exponents.copy())
    ideal = 2.0**bits * np.exp(-np.minimum(exponents, cap))
    np.testing.assert_allclose(weights, ideal, rtol=2.0**-44, atol=1)
    assert weights[0, 4] == weights[0, 5] >= 2**20 - 1


def test_weights_are_computed_in_place_or_into_out():
    exponents = np.abs(Source.from_test_seed(0).generator.normal(size=(300, 900))) * 5
    scratch = exponents.copy()
    in_place = integer_weights(scratch)
    assert np.shares_memory(in_place, scratch)
    out = np.empty(exponents.shape, dtype=np.int64)
    assert integer_weights(exponents.copy(), out) is out
    np.testing.assert_array_equal(in_place, out)


def test_no_hidden_copy_of_a_block():
    exponents = np.ones((64, 15_000))
    tracemalloc.start()
    try:
        weights = integer_weights(exponents)
        draw_rows(weights, np.full(64, 3), Source.from_test_seed(0))
        assert tracemalloc.get_traced_memory()[1] < exponents.nbytes / 8
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("bad", [-0.1, np.nan, -np.inf])
def test_impossible_exponents_are_refused(bad):
    with pytest.raises(BadParameterError, match="negative or not a number"):
        integer_weights(np.array([[0.0, bad, 1.0]]))


def test_rounding_below_zero_is_tolerated():
    assert integer_weights(np.array([[-1e-12, 1.0]])).min() > 0


def test_wrong_shapes_are_refused():
    with pytest.raises(BadParameterError, match="float64"):
        integer_weights(np.zeros((2, 3), dtype=np.float32))  # type: ignore[arg-type]
    with pytest.raises(BadParameterError, match="out"):
        integer_weights(np.zeros((2, 3)), np.zeros((3, 2), dtype=np.int64))
    with pytest.raises(BadParameterError, match="one count per row"):
        draw_rows(np.ones((2, 3), dtype=np.int64), [1], Source.from_test_seed(0))
    with pytest.raises(BadParameterError, match="negative"):
        draw_rows(np.ones((1, 3), dtype=np.int64), [-1], Source.from_test_seed(0))
    with pytest.raises(BadParameterError, match="nothing"):
        draw_rows(np.zeros((1, 3), dtype=np.int64), [1], Source.from_test_seed(0))


def worst_excess(exponents: np.ndarray, bound: np.ndarray) -> float:
    """Largest log-ratio over all outcomes and pairs of inputs, beyond the bound of the pair."""
    logs = np.log(probabilities(integer_weights(exponents.copy())))
    ratios = np.abs(logs[:, None, :] - logs[None, :, :]).max(axis=2)
    return float((ratios - bound).max())


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    words=st.integers(2, 60),
    spread=st.floats(1e-3, 1e3),
    epsilon=st.floats(1e-3, 1e3),
)
def test_metric_privacy_holds_with_slack(seed, words, spread, epsilon):
    """ln(P[y|x] / P[y|x']) <= epsilon * d(x, x') + slack for all words x, x', y: the definition, exactly."""
    points = np.random.Generator(np.random.PCG64(seed)).normal(scale=spread, size=(words, 3))
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    excess = worst_excess(epsilon * distance / 2, epsilon * distance)
    # The last term: the distances of the test itself are rounded to double precision.
    assert excess <= rounding_slack(words) + 1e-12 * (1 + epsilon * distance.max())


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32), outcomes=st.integers(2, 50), epsilon=st.floats(1e-3, 200.0))
def test_pure_privacy_of_the_textbook_mechanism_holds_with_slack(seed, outcomes, epsilon):
    """Also with the cap and the shift by the largest score, which depend on the data."""
    generator = np.random.Generator(np.random.PCG64(seed))
    scores = generator.integers(0, 200, size=outcomes).astype(float)
    neighbor = scores + generator.integers(-1, 2, size=outcomes)
    ratio = np.log(exponential_probabilities(scores, epsilon=epsilon, sensitivity=1)) - np.log(
        exponential_probabilities(neighbor, epsilon=epsilon, sensitivity=1)
    )
    assert np.abs(ratio).max() <= epsilon + rounding_slack(outcomes) + 1e-12


def test_the_slack_is_needed():
    """A wrong variant, exact epsilon without slack, is refuted: two inputs on either side of an integer threshold."""
    top = weight_bits(2) * math.log(2)
    near = top - math.log(2**20 + 5.001), top - math.log(2**20 + 4.999)
    excess = worst_excess(np.array([[0.0, near[0]], [0.0, near[1]]]), np.full((2, 2), 2 * (near[1] - near[0])))
    assert 9e-7 < excess <= rounding_slack(2)


def test_halving_the_exponent_is_needed():
    """A wrong variant, exp(-epsilon * d) without the factor 1/2, breaks the bound and is caught."""
    points = np.array([0.0, 1.0, 5.0])
    distance = np.abs(points[:, None] - points[None])
    assert worst_excess(2.0 * distance / 2, 2.0 * distance) <= rounding_slack(3)
    assert worst_excess(2.0 * distance, 2.0 * distance) > 0.1


def test_no_outcome_ever_becomes_impossible():
    """The naive float version gives probability zero at the same place: an infinite privacy loss."""
    exponents = np.array([[0.0, 5e3]])
    assert np.exp(-exponents)[0, 1] == 0.0
    assert probabilities(integer_weights(exponents))[0, 1] > 0


def test_numpy_exp_is_as_accurate_as_the_slack_assumes():
    x = np.linspace(20 * math.log(2), 61 * math.log(2), 100_001)
    exact = np.exp(x.astype(np.longdouble))
    assert float(np.max(np.abs(np.exp(x) / exact - 1))) < 4 * 2.0**-52


def test_draws_follow_the_law():
    """False-alarm rate 1e-6 for the two tests together."""
    weights = integer_weights(np.array([[0.0, 1.0, 2.0, 4.0, 0.5], [3.0, 0.0, 0.0, 1.0, 9.0]]))
    law = probabilities(weights)
    counts = np.array([50_000, 80_000])
    drawn = draw_rows(weights, counts, Source.from_test_seed(11))
    for row, part in enumerate(np.split(drawn, [counts[0]])):
        observed = np.bincount(part, minlength=5)
        assert observed.sum() == counts[row]
        assert chisquare(observed, law[row] * counts[row]).pvalue > 5e-7


@pytest.mark.parametrize("outcomes", [1, 5, 127, 1023, 1024, 1025, 1151, 4000])
def test_a_draw_is_the_first_outcome_whose_running_sum_exceeds_the_uniform_integer(outcomes):
    """Groups of cells only save additions: many and few draws of a row, a short last group, weights up to the limit."""
    generator = np.random.default_rng(outcomes)
    weights = integer_weights(generator.exponential(4.0, (40, outcomes)) * generator.integers(0, 2, (40, outcomes)))
    counts = generator.integers(0, 2 * MANY_DRAWS, 40)
    running = np.cumsum(weights, axis=1)
    uniform = Source.from_test_seed(5).generator.integers(0, np.repeat(running[:, -1], counts))
    rows = np.repeat(np.arange(40), counts)
    expected = (running[rows] <= uniform[:, None]).sum(axis=1).tolist()
    assert draw_rows(weights, counts, Source.from_test_seed(5)).tolist() == expected


def test_rows_come_in_order_and_may_be_empty():
    weights = np.zeros((4, 3), dtype=np.int64)
    weights[[0, 1, 2, 3], [2, 0, 1, 2]] = 1
    assert draw_rows(weights, [2, 0, 1, 3], Source.from_test_seed(0)).tolist() == [2, 2, 1, 2, 2, 2]
    assert draw_rows(np.ones((0, 3), dtype=np.int64), [], Source.from_test_seed(0)).size == 0


def test_order_of_draws_carries_no_pattern():
    """Draws of one row are independent: neighbors are equal as often as chance says. False alarm 6e-7 (5 sd)."""
    count = 40_000
    drawn = draw_rows(np.ones((1, 4), dtype=np.int64), [count], Source.from_test_seed(2))
    equal = int((drawn[1:] == drawn[:-1]).sum())
    assert abs(equal - (count - 1) / 4) < 5 * math.sqrt(count * 3 / 16)


def test_probabilities_are_exact_to_double_precision():
    law = exponential_probabilities([0.0, 1.0, 2.0], epsilon=2.0, sensitivity=1.0)
    np.testing.assert_allclose(law, np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum(), rtol=1e-12)
    assert exponential_probabilities([5.0], epsilon=1, sensitivity=1).tolist() == [1.0]


def test_the_textbook_choice():
    """Every index within 5 standard deviations; false-alarm rate below 2e-6."""
    source = Source.from_test_seed(4)
    scores = [0.0, 1.0, 3.0]
    law = exponential_probabilities(scores, epsilon=1.0, sensitivity=1.0)
    picks = np.bincount(
        [exponential_choice(scores, epsilon=1.0, sensitivity=1.0, source=source) for _ in range(4000)], minlength=3
    )
    assert (np.abs(picks - 4000 * law) < 5 * np.sqrt(4000 * law * (1 - law))).all()


@pytest.mark.parametrize(
    ("scores", "epsilon", "sensitivity"),
    [([1.0, np.nan], 1, 1), ([[1.0]], 1, 1), ([1.0], 0, 1), ([1.0], 1, -1), ([], 1, 1)],
)
def test_bad_choices_are_refused(scores, epsilon, sensitivity):
    with pytest.raises(BadParameterError):
        exponential_probabilities(scores, epsilon=epsilon, sensitivity=sensitivity)
