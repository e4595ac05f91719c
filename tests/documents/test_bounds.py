"""Bounds and noise as one typed pair: golden numbers, exactness in floating point, and the published mistake."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.documents.bounds import (
    AnalyticGaussian,
    Bound,
    ClipL1,
    ClipL2,
    ClipValue,
    Laplace,
    bound_from_dict,
    release,
)
from tacit.errors import BadInputError, BadParameterError
from tacit.noise.laplace import laplace_scale
from tacit.noise.source import Source

CLV, PR = 20 * 768, 20 * 182
EPSILONS = (1, 10, 50, 100, 250, 500, 750, 1000, 2500)
GOLDEN = {
    (CLV, 1e-5): (92.4715, 12.3908, 3.7121, 2.3466, 1.3371, 0.8957, 0.7138, 0.6093, 0.3722),
    (CLV, 1e-7): (115.9705, 14.3660, 4.0399, 2.4983, 1.3928, 0.9223, 0.7311, 0.6221, 0.3772),
    (PR, 1e-5): (45.0156, 6.0319, 1.8071, 1.1423, 0.6509, 0.4360, 0.3475, 0.2966, 0.1812),
    (PR, 1e-7): (56.4550, 6.9935, 1.9667, 1.2162, 0.6780, 0.4490, 0.3559, 0.3028, 0.1836),
}


def test_sensitivities_of_dp_bart():
    whole, pruned = ClipValue(0.1), ClipValue(0.1, kept=tuple(range(182)))
    assert whole.count(20, 768) == CLV
    assert pruned.count(20, 768) == PR
    assert whole.l1_sensitivity(CLV) == pytest.approx(3072)
    assert whole.l2_sensitivity(CLV) == pytest.approx(24.787, abs=5e-4)
    assert pruned.l1_sensitivity(PR) == pytest.approx(728)
    assert pruned.l2_sensitivity(PR) == pytest.approx(12.066, abs=5e-4)


@pytest.mark.parametrize(("n", "delta"), GOLDEN)
def test_golden_sigmas(n, delta):
    scales = [AnalyticGaussian(delta).scale(ClipValue(0.1), n, epsilon) for epsilon in EPSILONS]
    assert scales == pytest.approx(GOLDEN[n, delta], abs=5.1e-5)


def test_sensitivities_of_norm_clips():
    assert (ClipL1(5).l1_sensitivity(1024), ClipL1(5).l2_sensitivity(1024)) == (10, 10)
    assert (ClipL2(5).l1_sensitivity(1024), ClipL2(5).l2_sensitivity(1024)) == (320, 10)
    assert Laplace().scale(ClipL2(5), 1024, 1.0) == pytest.approx(320, rel=1e-4)
    assert Laplace().scale(ClipL1(5), 1024, 1.0) == pytest.approx(10, rel=1e-4)


@pytest.mark.parametrize("bound", [ClipL1(0.3), ClipL2(0.3), ClipValue(0.3)])
def test_sensitivities_are_attained_and_never_exceeded(bound: Bound):
    n = 12
    corner = {"l1": np.eye(n)[0], "l2": np.full(n, n**-0.5), "value": np.ones(n)}[bound.kind] * bound.C
    far = bound.apply(np.stack([corner, -corner]).reshape(2, 3, 4)).reshape(2, n)
    widest = {"l1": np.eye(n)[0] * bound.C, "l2": corner, "value": corner}[bound.kind]
    assert np.abs(far[0] - far[1]).sum() == pytest.approx(
        bound.l1_sensitivity(n) if bound.kind != "l1" else 2 * bound.C, rel=1e-9
    )
    assert np.linalg.norm(2 * widest) == pytest.approx(bound.l2_sensitivity(n), rel=1e-9)
    rng = np.random.default_rng(0)
    some = bound.apply(rng.standard_normal((200, 3, 4)) * rng.exponential(1, (200, 1, 1))).reshape(200, n)
    gaps = some[:, np.newaxis] - some[np.newaxis]
    assert np.abs(gaps).sum(axis=2).max() <= bound.l1_sensitivity(n)
    assert np.linalg.norm(gaps, axis=2).max() <= bound.l2_sensitivity(n)


@settings(max_examples=200)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True, width=64), min_size=1, max_size=40),
    st.floats(1e-3, 1e3),
)
def test_clips_are_exact_in_floating_point(values, C):
    latents = np.array(values).reshape(1, 1, -1)
    limit = Fraction(C)
    assert all(abs(Fraction(v)) <= limit for v in ClipValue(C).apply(latents).ravel().tolist())
    assert sum(abs(Fraction(v)) for v in ClipL1(C).apply(latents).ravel().tolist()) <= limit
    assert sum(Fraction(v) ** 2 for v in ClipL2(C).apply(latents).ravel().tolist()) <= limit**2


@pytest.mark.parametrize(("kind", "order"), [(ClipL1, 1), (ClipL2, 2)])
def test_norm_clip_of_large_latents_is_exact_and_tight(kind, order):
    latents = np.random.default_rng(1).standard_normal((1, 20, 192)).astype(np.float32)
    bounded = kind(0.1).apply(latents).ravel().tolist()
    norm = sum(abs(Fraction(v)) ** order for v in bounded)
    assert norm <= Fraction(0.1) ** order
    assert float(norm) == pytest.approx(0.1**order, rel=1e-9)
    inside = (latents * 1e-9).astype(np.float32)
    np.testing.assert_array_equal(kind(0.1).apply(inside), inside.astype(np.float64))


def test_sensitivities_are_rounded_up():
    for n in (3, 7, 3640, 15_360):
        for C in (0.1, 0.3, 1 / 3):
            assert Fraction(ClipValue(C).l1_sensitivity(n)) >= 2 * Fraction(C) * n
            assert Fraction(ClipValue(C).l2_sensitivity(n)) ** 2 >= (2 * Fraction(C)) ** 2 * n
            assert Fraction(ClipL2(C).l1_sensitivity(n)) ** 2 >= (2 * Fraction(C)) ** 2 * n


def test_pruned_columns_are_constant_and_get_no_noise():
    bound = ClipValue(0.5, kept=(3, 1))
    latents = np.random.default_rng(0).standard_normal((4, 5, 6))
    for noise in (None, Laplace(), AnalyticGaussian(1e-5)):
        released = release(latents, bound, noise, 10.0, Source.from_test_seed(1))
        assert not released[:, :, [0, 2, 4, 5]].any()
        assert released[:, :, [1, 3]].all()
    assert bound.kept == (1, 3)


@pytest.mark.parametrize("noise", [Laplace(), AnalyticGaussian(1e-5)])
def test_noise_has_the_stated_scale_and_is_independent_everywhere(noise):
    bound = ClipL2(1.0)
    n = 100
    released = release(np.zeros((400, 10, 10)), bound, noise, 2.0, Source.from_test_seed(5))
    deviation = noise.scale(bound, n, 2.0) * (math.sqrt(2) if noise.kind == "laplace" else 1)
    # 40,000 draws: 5 standard errors, a false alarm in less than one of a million seeds.
    assert released.std() == pytest.approx(deviation, rel=0.05)
    assert len(np.unique(released)) > 39_000  # no row, position or column shares its noise
    assert np.abs(np.corrcoef(released.reshape(400, n)[:, :8].T) - np.eye(8)).max() < 0.3


def test_the_published_adept_cannot_be_written_down_and_loses_root_n():
    """l2 clip with Laplace 2 C: the pair +-(C / sqrt n) (1, ..., 1) has a loss of sqrt(n) epsilon, exactly."""
    C, n, epsilon = 5.0, 1024, 0.5
    published = laplace_scale(epsilon, 2 * C)
    assert Laplace().scale(ClipL2(C), n, epsilon) >= published * math.sqrt(n)
    pair = np.stack([np.full((2, 512), C / math.sqrt(n)), np.full((2, 512), -C / math.sqrt(n))])
    first, second = ClipL2(C).apply(pair)
    np.testing.assert_allclose(first, pair[0], rtol=1e-9)  # clipping leaves both where they are
    loss = (np.abs(first - second) / published).sum()  # of the output y = first, under a product of Laplace laws
    assert loss == pytest.approx(math.sqrt(n) * epsilon, rel=1e-6)
    assert loss == pytest.approx(32 * epsilon, rel=1e-6)
    repaired = (np.abs(first - second) / Laplace().scale(ClipL2(C), n, epsilon)).sum()
    assert repaired <= epsilon


def test_bounds_in_records():
    for bound in (ClipL1(2.0), ClipL2(0.5), ClipValue(0.1), ClipValue(0.1, (0, 5))):
        assert bound_from_dict(bound.to_dict()) == bound
    with pytest.raises(BadInputError, match="train the model again"):
        bound_from_dict({"kind": "box", "C": 1})


def test_bad_parameters():
    for C in (0, -1, math.nan, math.inf):
        with pytest.raises(BadParameterError, match="clipping constant"):
            ClipValue(C)
    for kept in ((), (1, 1), (-1,)):
        with pytest.raises(BadParameterError, match="kept columns"):
            ClipValue(1.0, kept)
    with pytest.raises(BadInputError, match="column 9 is to be kept"):
        ClipValue(1.0, (9,)).apply(np.zeros((1, 1, 4)))
    with pytest.raises(BadParameterError, match="shape"):
        ClipL2(1.0).apply(np.zeros((2, 3)))
    with pytest.raises(BadParameterError, match="delta"):
        AnalyticGaussian(0.0)
    with pytest.raises(BadParameterError, match="at least one number"):
        ClipValue(1.0).l2_sensitivity(0)
    with pytest.raises(AttributeError):
        AnalyticGaussian(1e-5).scale(24.787, 10, 1.0)  # type: ignore[arg-type]  # a sensitivity cannot be passed in


def test_no_documents():
    assert release(np.zeros((0, 2, 3)), ClipL2(1.0), Laplace(), 1.0, Source.from_test_seed(0)).shape == (0, 2, 3)
