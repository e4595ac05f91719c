"""Angular noise: the law of the angle, its density, and that no direction is preferred."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from tacit.errors import BadParameterError
from tacit.noise.source import Source, new_source
from tacit.noise.sphere import CELLS, AngularNoise, angular_noise, orthogonal_directions

FALSE_ALARM = 1e-4
"""Of each statistical test in this file; the seeds are fixed."""


def exact_distribution(epsilon: float, dimension: int):
    """The distribution function of the angle by adaptive quadrature, around the mode so that nothing underflows."""
    mode = math.atan2(dimension - 2, epsilon) if dimension > 2 else 0.0
    power = dimension - 2

    def density(t: float) -> float:
        if power == 0:
            return math.exp(-epsilon * (t - mode))
        if not 0 < t < math.pi:
            return 0.0
        return math.exp(power * (math.log(math.sin(t)) - math.log(math.sin(mode))) - epsilon * (t - mode))

    grid = np.linspace(0, math.pi, 1501)
    parts = [quad(density, a, b)[0] for a, b in itertools.pairwise(grid)]
    sums = np.concatenate([[0.0], np.cumsum(parts)])
    return lambda t: np.interp(t, grid, sums / sums[-1])


@pytest.mark.parametrize(("dimension", "epsilon"), [(2, 3.0), (3, 5.0), (16, 10.0), (384, 50.0)])
def test_angles_follow_their_density(dimension, epsilon):
    angles = AngularNoise(epsilon, dimension).angles(6_000, new_source(3))
    assert kstest(angles, exact_distribution(epsilon, dimension)).pvalue > FALSE_ALARM


def test_the_wrong_density_is_noticed():
    """Without the factor sin^(d - 2), the surface of the sphere at this angle, the test above must fail."""
    angles = AngularNoise(10.0, 2).angles(6_000, new_source(3))
    assert kstest(angles, exact_distribution(10.0, 16)).pvalue < FALSE_ALARM


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 20.0])
def test_the_density_ratio_keeps_the_bound_everywhere(dimension, epsilon):
    """On a grid of outputs and many pairs of inputs: |ln p(y | u) - ln p(y | u')| <= epsilon angle(u, u') + slack. The
    density on the sphere is that of the angle divided by the surface, sin^(d - 2)."""
    noise = AngularNoise(epsilon, dimension)
    generator = np.random.default_rng(1)
    if dimension == 2:
        turns = np.linspace(0, 2 * math.pi, 20_000, endpoint=False)
        outputs = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    else:
        heights = np.linspace(-1, 1, 20_000)
        turns = np.arange(20_000) * math.pi * (3 - math.sqrt(5))  # a spiral that covers the sphere evenly
        ring = np.sqrt(1 - heights**2)
        outputs = np.stack([ring * np.cos(turns), ring * np.sin(turns), heights], axis=1)
    inputs = generator.standard_normal((12, dimension))
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    inputs[1] = -inputs[0]  # the farthest pair
    angles = np.arccos(np.clip(outputs @ inputs.T, -1, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = noise.log_density(angles) - (dimension - 2) * np.log(np.sin(angles))
    worst = 0.0
    for first in range(len(inputs)):
        for second in range(first):
            allowed = epsilon * math.acos(np.clip(inputs[first] @ inputs[second], -1, 1))
            excess = np.nanmax(np.abs(logarithms[:, first] - logarithms[:, second])) - allowed
            assert excess <= noise.slack + 1e-9
            worst = max(worst, excess)
    assert worst > -0.02 * epsilon  # the bound is reached: it could not be smaller


@pytest.mark.parametrize(("dimension", "epsilon"), [(2, 1.0), (3, 10.0), (16, 30.0), (384, 10.0)])
def test_whole_weights_are_the_integrals(dimension, epsilon):
    """The cells' weights against independent quadrature, where that does not underflow; slack is an honest bound."""
    noise = AngularNoise(epsilon, dimension)
    weights = np.diff([0, *noise.cell_ends])
    total = noise.cell_ends[-1]
    assert all(weight > 0 for weight in weights)  # no angle is impossible
    chosen = [place for place in range(0, CELLS, 97) if weights[place] / total > 1e-250]
    assert len(chosen) > 10
    reference = chosen[len(chosen) // 2]
    top = noise.log_density(np.array([(reference + 0.5) * noise.width]))[0]

    def integral(place: int) -> float:
        low = place * noise.width
        return quad(
            lambda t: math.exp(noise.log_density(np.array([t]))[0] - top), low, low + noise.width, epsrel=1e-13
        )[0]

    for place in chosen:
        if weights[place] / weights[reference] > 1e-200:
            ratio = weights[place] / weights[reference] * integral(reference) / integral(place)
            assert abs(math.log(ratio)) <= noise.slack + 1e-10


def test_directions_are_isotropic_and_orthogonal():
    units = np.zeros((20_000, 5))
    units[:, 2] = 1.0
    drawn = orthogonal_directions(units, new_source(7))
    assert np.abs(drawn[:, 2]).max() < 1e-12
    assert np.abs(np.linalg.norm(drawn, axis=1) - 1).max() < 1e-12
    rest = drawn[:, [0, 1, 3, 4]]
    # Means and products of uniform directions have variances 1/4 and at most 1/16 in four dimensions.
    assert np.abs(rest.mean(axis=0)).max() < 5 * math.sqrt(1 / 4 / len(rest))
    assert np.abs(rest.T @ rest / len(rest) - np.eye(4) / 4).max() < 5 * math.sqrt(1 / 16 / len(rest))


def test_released_vectors_have_length_one_and_the_mean_cosine_of_the_law():
    units = np.zeros((4_000, 16))
    units[:, 0] = 1.0
    released = angular_noise(10.0, 16).around(units, new_source(2))
    assert np.abs(np.linalg.norm(released, axis=1) - 1).max() < 1e-12
    assert released[:, 0].mean() == pytest.approx(0.54, abs=0.02)


def test_one_dimension_is_refused_and_streams_are_used():
    with pytest.raises(BadParameterError):
        AngularNoise(1.0, 1)
    first, second = (angular_noise(5.0, 8).angles(50, Source(bytes(32), secure=False)) for _ in range(2))
    assert (first == second).all()
