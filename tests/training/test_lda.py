"""Topics by noisy sufficient statistics: what a unit adds is bounded, units do not touch each other, noise is there."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.noise.source import StreamKey, public_generator
from tacit.training.plan import TrainingPlan
from tacit.training.topics import lda
from tacit.training.topics.lda import BOUND, STATISTIC_BITS, Bags, clipped_statistics, exact_sum, fitted_lda, noisy_sum

WORDS = 12
UNITS = [[0, 1, 2, 0], [3, 4, 5], [0, 2], [], [5, 5, 5, 4], [1]] * 40


def statistics(units: list[list[int]], logs: np.ndarray) -> list[np.ndarray]:
    bags = Bags.of(units)
    made = clipped_statistics(bags, logs)
    return [made[bags.starts[place] : bags.starts[place + 1]] for place in range(len(bags))]


def test_no_unit_adds_more_than_the_bound_and_units_do_not_touch() -> None:
    """For any weights: the length of each unit's matrix, and that it is the same whoever else is there."""
    for seed in range(20):
        logs = np.log(public_generator(seed).gamma(0.3, 1.0, size=(5, WORDS)) + 1e-12)
        together = statistics(UNITS[:6], logs)
        for place, unit in enumerate(UNITS[:6]):
            assert np.linalg.norm(together[place]) <= BOUND
            np.testing.assert_allclose(statistics([unit], logs)[0], together[place], rtol=1e-12)


def test_a_unit_more_moves_the_sum_by_at_most_the_bound_exactly_and_order_does_not_matter() -> None:
    """All neighbors of a data set, in whole numbers: the squares of what a unit moves add up to at most the bound's."""
    for seed in range(5):
        weights = public_generator(seed).gamma(0.5, 1.0, size=(4, WORDS)) + 1e-3
        everything = exact_sum(Bags.of(UNITS), weights)
        assert (exact_sum(Bags.of(UNITS[::-1]), weights) == everything).all()
        for place in range(6):
            rest = exact_sum(Bags.of(UNITS[:place] + UNITS[place + 1 :]), weights)
            moved = [int(number) for number in (everything - rest).ravel()]
            assert sum(number * number for number in moved) <= (int(BOUND) << STATISTIC_BITS) ** 2


def test_counts_that_were_not_brought_to_one_length_are_clipped(monkeypatch: pytest.MonkeyPatch) -> None:
    bags = Bags(np.arange(WORDS), np.full(WORDS, 1000.0), np.array([0, WORDS]))
    made = clipped_statistics(bags, np.zeros((3, WORDS)))
    assert 0.999 * BOUND < np.linalg.norm(made) <= BOUND


def test_topics_of_two_kinds_of_texts_are_told_apart_with_noise() -> None:
    units = [[0, 1, 2], [3, 4, 5]] * 1_500
    plan = TrainingPlan(3_000, 1_500, 20, 8.0, 1e-5)
    fitted = fitted_lda(Bags.of(units), WORDS, 2, plan, StreamKey.from_test_seed(1))
    groups = fitted.membership(Bags.of(units[:2])).argmax(axis=1)
    assert groups[0] != groups[1]
    assert set(np.argsort(-fitted.weights[groups[0]])[:3].tolist()) == {0, 1, 2}


def test_noise_is_added_to_every_number_with_the_planned_deviation() -> None:
    """A step without any unit: all numbers are noise, of deviation multiplier x bound within 4 standard errors."""
    plan = TrainingPlan(10, 5, 1, 3.0, 1e-3)
    empty = Bags.of([[]])
    noise = noisy_sum(empty, np.ones((40, 500)), plan, 0, StreamKey.from_test_seed(3))
    assert (noise != 0).all()
    assert abs(noise.std() / (3.0 * BOUND) - 1) < 4 / np.sqrt(2 * noise.size)


def test_a_step_takes_the_planned_share_and_divides_by_it() -> None:
    """The division is by what was planned: the number that was drawn is private."""
    plan = TrainingPlan.without_privacy(records=240, batch=120, epochs=0.5)
    key = StreamKey.from_test_seed(2)
    drawn = Bags.of(UNITS).chosen(plan.sample(0, key))
    fitted = fitted_lda(Bags.of(UNITS), WORDS, 2, plan, key)
    start = public_generator(1).gamma(100.0, 0.01, size=(2, WORDS))
    rate = lda.DELAY**-lda.FORGETTING
    total = noisy_sum(drawn, start, plan, 0, key)
    np.testing.assert_allclose(fitted.weights, (1 - rate) * start + rate * (lda.ETA + 2.0 * total))
