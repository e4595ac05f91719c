"""Federated rounds in whole numbers: a length that nothing can exceed, sums that come back, and their accounting."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency
from tacit.jobs.federate import CONFIGS, FederateConfig
from tacit.jobs.training.users import plan_for_users
from tacit.noise.gaussian import gaussian_epsilon
from tacit.noise.source import Source, public_generator
from tacit.training.federated.integers import LEAST_VARIANCE, IntegerCode, SkellamPlan, hadamard, skellam_epsilon


def length(numbers: np.ndarray) -> int:
    return sum(int(number) ** 2 for number in numbers)


@given(
    size=st.integers(1, 40),
    scale=st.sampled_from([0.5, 4.0, 64.0, 1024.0]),
    factor=st.sampled_from([0.0, 0.5, 1.0, 1.000001, 3.0, 1e12, math.inf, math.nan]),
    seed=st.integers(0, 100),
)
@settings(max_examples=120, deadline=None)
def test_no_update_is_longer_than_promised(size: int, scale: float, factor: float, seed: int) -> None:
    """Whatever comes in, too long or not a number at all: the integers are at most D2 long, checked exactly."""
    code = IntegerCode(size, 1.0, scale)
    update = public_generator(seed).normal(size=size)
    with np.errstate(invalid="ignore"):
        update *= factor / np.linalg.norm(update)
        whole = code.encode(update, seed, Source.from_test_seed(seed))
    assert length(whole) <= code.longest_square
    assert np.abs(whole).sum() <= code.longest_square  # D1 <= D2^2, which the bound on the divergence takes


def test_updates_within_the_bound_are_not_lost() -> None:
    code = IntegerCode(300, 1.0, 64.0)
    update = public_generator(1).normal(size=300)
    update /= np.linalg.norm(update)
    source = Source.from_test_seed(1)
    assert all(code.encode(update, 0, source).any() for _ in range(50))


def test_a_sum_comes_back_without_bias() -> None:
    """2,000 roundings of one vector: the mean within 5 standard errors of it."""
    code = IntegerCode(20, 1.0, 4.0)
    update = np.linspace(-0.3, 0.2, 20)
    source = Source.from_test_seed(3)
    mean = np.mean([code.decode(code.encode(update, 7, source), 7) for _ in range(2_000)], axis=0)
    assert np.abs(mean - update).max() < 5 * 0.5 / 4.0 / math.sqrt(2_000) * math.sqrt(2)


def test_sums_modulo_a_power_of_two_are_sums() -> None:
    code = IntegerCode.fitting(500, 1.0, 1.2, 40, bits=24)
    generator, source = public_generator(5), Source.from_test_seed(5)
    updates = [generator.normal(size=500) for _ in range(40)]
    updates = [update / np.linalg.norm(update) for update in updates]
    plain = sum(code.encode(update, 2, source) for update in updates)
    wrapped = code.wrapped(np.asarray(plain) + (1 << 24) * generator.integers(-3, 3, code.dimension))
    assert (wrapped == plain).all()
    assert np.abs(code.decode(wrapped, 2) - np.sum(updates, axis=0)).max() < 40 / code.scale
    assert code.wrap_probability(1.2, 40) <= 1e-9
    assert code.variance(1.2) >= LEAST_VARIANCE


def test_too_few_bits_are_refused() -> None:
    with pytest.raises(BadParameterError) as raised:
        IntegerCode.fitting(1_000, 1.0, 1.0, 1_000, bits=10)
    assert raised.value.code == "too-few-bits"


def test_the_rotation_keeps_lengths_and_spreads_a_peak() -> None:
    peak = np.zeros(256)
    peak[3] = 5.0
    assert np.linalg.norm(hadamard(peak) / 16.0) == pytest.approx(5.0)
    assert np.abs(hadamard(peak) / 16.0).max() == pytest.approx(5.0 / 16.0)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_plans_stay_within_epsilon_and_near_normal_noise(epsilon: float) -> None:
    plan = SkellamPlan.planned(epsilon=epsilon, users=1_000, cohort=100, epochs=5, delta=1e-5)
    assert plan.epsilon() <= epsilon
    assert plan.visits == 5
    normal = gaussian_epsilon(plan.multiplier / math.sqrt(5), 1e-5, 1.0)
    assert normal <= plan.epsilon() < 1.35 * normal  # what the Renyi bound loses against the exact curve
    assert plan.epsilon(20) < plan.epsilon(50)


def test_a_user_who_is_replaced_moves_twice_as_much() -> None:
    plans = [
        SkellamPlan.planned(epsilon=2.0, users=1_000, cohort=100, epochs=2, delta=1e-5, adjacency=adjacency)
        for adjacency in (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE)
    ]
    assert plans[1].multiplier == pytest.approx(2 * plans[0].multiplier, rel=1e-6)


def test_the_accounting_is_that_of_the_bound_at_any_variance() -> None:
    """More noise in absolute terms at the same multiplier never costs more: the plan needs no dimension."""
    from tacit.account.renyi import ORDERS, epsilon_of_order
    from tacit.noise.skellam import skellam_divergence

    claimed = skellam_epsilon(1.5, 4, 1e-6)
    for variance in (LEAST_VARIANCE, 1e6, 1e12):
        longest = math.sqrt(variance) / 1.5
        real = min(epsilon_of_order(4 * skellam_divergence(a, variance, longest), a, 1e-6) for a in ORDERS)
        assert real <= claimed * (1 + 1e-12)


def test_bits_and_the_smallest_cohort_are_options(tmp_path: Path) -> None:
    def config(**options: Any) -> FederateConfig:
        return CONFIGS["classify"](
            data=[{"text": "x", "label": "a", "who": "u"}], output=tmp_path / "m", epsilon=8, user_column="who",
            algorithm="ftrl", cohort=50, **options,
        )  # fmt: skip

    plan = plan_for_users(config(noise="skellam", sum_bits=24, smallest_cohort=40), 500)
    assert isinstance(plan, SkellamPlan)
    assert (plan.bits, plan.smallest_cohort) == (24, 40)
    assert "40 users of a round, of a cohort of 50" in str(plan._noise_parameters(1)["shares of noise"])
    usual = plan_for_users(config(noise="skellam"), 500)
    assert isinstance(usual, SkellamPlan)
    assert (usual.bits, usual.smallest_cohort) == (32, 25)
    assert usual.multiplier == plan.multiplier, "how shares are split does not change what is promised"
    for options in ({"sum_bits": 24}, {"smallest_cohort": 4}, {"noise": "skellam", "smallest_cohort": 51}):
        with pytest.raises(BadParameterError):
            config(**options)


def test_the_assumptions_say_what_is_simulated() -> None:
    plan = SkellamPlan.planned(epsilon=2.0, users=1_000, cohort=100, epochs=2)
    promise = plan.guarantee(steps=plan.steps, secure=True, what="x", parameters={})
    text = " ".join(promise.assumptions)
    assert "simulated" in text
    assert "Gaussian" not in text
    assert "no amplification" in str(promise.parameters["visits"])
