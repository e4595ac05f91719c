"""Published systems that answer from private models: what they book against what they spend."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tacit.auditing.published.inference import (
    dp_decoding,
    pairs_with_a_secret,
    pmixed_sampling,
    sampled_mixture,
    seqpate_as_coded,
    submix_accounting,
    submix_booked,
    submix_lost,
    submix_with_its_projection,
)
from tacit.auditing.published.result import Refutation
from tacit.training.ensemble.uniform import uniform_mixture, uniform_mixture_epsilon, uniform_mixture_share


@pytest.mark.parametrize("published", [submix_accounting, submix_with_its_projection, seqpate_as_coded])
def test_published_accounting_is_refuted(published: Callable[[], Refutation]) -> None:
    assert published().refutes


def test_numbers_of_submix() -> None:
    """A secret of one pair with a true loss of 10.7 is booked as 1.36."""
    result = submix_accounting()
    assert result.claimed == pytest.approx(1.36, abs=0.005)
    assert result.spent == pytest.approx(10.7, abs=0.01)


def test_submix_books_nothing_of_what_the_others_lack() -> None:
    """The part of the booking that should see the other pairs is next to nothing, whatever leaks."""
    for secret in (0.1, 0.5, 0.9):
        mixes = pairs_with_a_secret(1e-6, secret, 32, 50_257)
        answer = mixes.mean(axis=0)
        rest = (answer - mixes[0] / len(answer)) * (len(answer) / (len(answer) - 1))
        assert abs(float(np.log(rest / answer).max())) < 1e-4
        assert submix_lost(mixes, 0) > 7
        # Rightly divided, the same formula sees it.
        right = (answer - mixes[0] / 32) * (32 / 31)
        assert float(np.log(answer / right).max()) == pytest.approx(submix_lost(mixes, 0), rel=1e-6)
    alike = np.full((4, 6), 1 / 6)
    assert submix_booked(alike, 0) == pytest.approx(submix_lost(alike, 0), abs=1e-9)


def test_noise_that_positions_share_cancels() -> None:
    assert math.isinf(seqpate_as_coded().spent)


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("draws", [1, 2, 4])
def test_sampling_models_does_not_change_the_law(draws: int, replacement: bool) -> None:
    laws = np.random.default_rng(1).dirichlet(np.ones(3), size=5)
    np.testing.assert_allclose(sampled_mixture(laws, draws, replacement=replacement), laws.mean(axis=0), atol=1e-12)
    assert pmixed_sampling().value < 1e-12


def test_dp_decoding_costs_what_it_says_and_no_more() -> None:
    """All pairs of models on five tokens that are sure, torn or unsure; the bound is reached."""
    sure = [*np.eye(5), *(np.eye(5) / 2 + 0.1), np.full(5, 0.2)]
    for share in (0.01, 0.5, 0.99):
        losses = [
            float(np.log(uniform_mixture(left, share) / uniform_mixture(right, share)).max())
            for left in sure
            for right in sure
        ]
        assert max(losses) == pytest.approx(uniform_mixture_epsilon(share, 5), abs=1e-12)
    assert dp_decoding().value == pytest.approx(10.82, abs=0.005)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_the_share_of_a_budget(epsilon: float) -> None:
    assert uniform_mixture_epsilon(uniform_mixture_share(epsilon, 50_000), 50_000) == pytest.approx(epsilon)
