"""Group accounting of sampled examples against laws that are integrated numerically, for gradients of any direction."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

pytest.importorskip("dp_accounting")

from scipy.stats import norm

from tacit.account.groups import (
    MixturePair,
    binomial_law,
    group_epsilon,
    group_noise_multiplier,
    losses_of_step,
)
from tacit.account.sgd import accounting_library, sgd_epsilon
from tacit.errors import BadParameterError

POINTS = np.linspace(-14.0, 18.0, 400_001)


def densities(group: int, rate: float, sigma: float, points=POINTS):
    """The density of the step with the user whose gradients all agree, and without."""
    counts, weights = binomial_law(group, rate)
    with_user = sum(w * norm.pdf(points, loc=j, scale=sigma) for j, w in zip(counts, weights, strict=True))
    return with_user, norm.pdf(points, scale=sigma)


def hockey_stick(p, q, epsilon: float, width: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum() * width)


@pytest.mark.parametrize(("group", "rate", "sigma"), [(2, 0.1, 1.0), (3, 0.3, 1.5), (3, 0.02, 0.8)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
def test_one_step_is_the_integral_of_its_laws_in_both_directions(group, rate, sigma, epsilon):
    p, q = densities(group, rate, sigma)
    width = POINTS[1] - POINTS[0]
    removing, adding = hockey_stick(p, q, epsilon, width), hockey_stick(q, p, epsilon, width)
    pair = MixturePair.binomial(group, rate, sigma)
    assert pair.removing(np.array([epsilon]))[0] == pytest.approx(removing, abs=1e-9)
    assert pair.adding(np.array([epsilon]))[0] == pytest.approx(adding, abs=1e-9)
    released = losses_of_step(group, rate, sigma, 1e-3).get_delta_for_epsilon(epsilon)
    assert max(removing, adding) - 1e-9 <= released <= max(removing, adding) + 1e-4


@pytest.mark.parametrize("group", [2, 3])
def test_two_steps_are_the_integral_over_the_plane(group):
    rate, sigma = 0.2, 1.2
    points = np.linspace(-9.0, 12.0, 1_401)
    p, q = densities(group, rate, sigma, points)
    width = (points[1] - points[0]) ** 2
    two = losses_of_step(group, rate, sigma, 1e-3).self_compose(2)
    for epsilon in (0.5, 1.5):
        exact = max(
            hockey_stick(np.outer(*pair[0]), np.outer(*pair[1]), epsilon, width)
            for pair in (((p, p), (q, q)), ((q, q), (p, p)))
        )
        assert exact - 1e-6 <= two.get_delta_for_epsilon(epsilon) <= exact + 2e-4


def test_the_library_has_the_same_numbers_for_the_same_mixture():
    library = accounting_library()
    drawn, weights = binomial_law(4, 0.1)
    theirs = library.pld.privacy_loss_distribution.from_mixture_gaussian_mechanism(
        2.0, list(map(float, drawn)), list(weights), value_discretization_interval=1e-2
    )
    ours = losses_of_step(4, 0.1, 2.0, 1e-2)
    for steps, epsilon in itertools.product((1, 20), (0.2, 1.0)):
        expected = theirs.self_compose(steps).get_delta_for_epsilon(epsilon)
        assert ours.self_compose(steps).get_delta_for_epsilon(epsilon) == pytest.approx(expected, rel=1e-5, abs=1e-12)


def test_gradients_in_any_directions_spend_no_more_than_gradients_that_agree():
    """The claim of the proof, by integration over the plane: two examples whose gradients have any angle, or less than
    full length."""
    rate, sigma, points = 0.3, 1.0, np.linspace(-7.0, 9.0, 641)
    width = (points[1] - points[0]) ** 2
    plane = np.stack(np.meshgrid(points, points), axis=-1)

    def density(means):
        total = 0.0
        for drawn in itertools.product((0, 1), repeat=2):
            weight = np.prod([rate if d else 1.0 - rate for d in drawn])
            center = sum(d * mean for d, mean in zip(drawn, means, strict=True))
            total = total + weight * norm.pdf(plane - center, scale=sigma).prod(axis=-1)
        return total

    without = norm.pdf(plane, scale=sigma).prod(axis=-1)
    pair = MixturePair.binomial(2, rate, sigma)
    for angle, length in itertools.product((0.0, 0.7, math.pi / 2, math.pi), (1.0, 0.6)):
        first, second = np.array([1.0, 0.0]), length * np.array([math.cos(angle), math.sin(angle)])
        with_user = density((first, second))
        for epsilon in (0.1, 0.8, 1.6):
            at = np.array([epsilon])
            assert hockey_stick(with_user, without, epsilon, width) <= pair.removing(at)[0] + 1e-5
            assert hockey_stick(without, with_user, epsilon, width) <= pair.adding(at)[0] + 1e-5


def test_a_group_of_one_is_a_record_and_more_costs_more_but_less_than_adding_up():
    options = {"sampling_rate": 0.05, "noise_multiplier": 3.0, "steps": 100, "delta": 1e-5}
    single = sgd_epsilon(**options)
    assert group_epsilon(group=1, **options) == single
    two, four = (group_epsilon(group=group, coarse=True, **options) for group in (2, 4))
    assert single < two < four
    # Group privacy of the whole run: epsilon of the group is k epsilon, at a delta that is larger by far.
    assert two < 2.0 * sgd_epsilon(**{**options, "delta": 1e-7})


def test_all_examples_in_every_step_are_one_gaussian_of_their_whole_reach():
    options = {"sampling_rate": 1.0, "steps": 4, "delta": 1e-5}
    multiplier = group_noise_multiplier(epsilon=1.0, group=5, **options)
    assert multiplier == pytest.approx(5.0 * group_noise_multiplier(epsilon=1.0, group=1, **options), rel=1e-6)
    assert group_epsilon(group=5, noise_multiplier=multiplier, **options) <= 1.0 + 1e-9


def test_the_multiplier_keeps_epsilon_and_wastes_little():
    options = {"sampling_rate": 0.02, "group": 8, "steps": 60, "delta": 1e-6}
    multiplier = group_noise_multiplier(epsilon=2.0, **options)
    assert 1.99 < group_epsilon(noise_multiplier=multiplier, **options) <= 2.0


def test_unlikely_numbers_of_examples_are_never_left_out():
    drawn, weights = binomial_law(1_000, 1e-4)
    assert drawn[-1] == 1_000
    assert weights[-1] > 0.0
    assert math.fsum(weights) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(("group", "rate"), [(50, 0.6), (20, 0.9), (1_000, 0.04), (3, 0.2), (8, 1e-6)])
def test_a_small_probability_that_nothing_is_drawn_is_not_lost_in_rounding(group, rate):
    """Taken as what the others leave of 1 it was 3e-16 in place of 1e-20 (too little was then spent), or negative."""
    drawn, weights = binomial_law(group, rate)
    assert drawn[0] == 0
    assert weights[0] == pytest.approx((1.0 - rate) ** group, rel=1e-9, abs=0.0)
    assert min(weights) > 0.0
    assert math.fsum(weights) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("delta", [1e-6, 1e-25])
def test_a_user_of_whom_something_is_nearly_always_drawn_is_accounted(delta):
    spent = group_epsilon(sampling_rate=0.6, group=50, noise_multiplier=100.0, steps=1, delta=delta, coarse=True)
    exact = {1e-6: 1.303311722, 1e-25: 3.130722431}[delta]
    assert exact <= spent <= 1.05 * exact


def test_what_cannot_be_accounted_is_refused():
    for group in (0, 1_001):
        with pytest.raises(BadParameterError, match="between 1 and 1,000"):
            group_epsilon(sampling_rate=0.1, group=group, noise_multiplier=1.0, steps=1, delta=1e-5)
