"""Published ways to use private records in prompts: what they spend, and why."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tacit.auditing.published.prompting import few_shot_with_a_public_seed, mean_of_answers


def test_exchanging_an_answer_moves_the_sum_of_unit_vectors_by_two() -> None:
    """All sums of three answers from a grid of directions, and every exchange of one: the farthest move is 2, where the
    first public code of Wu et al. has noise for 1."""
    directions = [np.array([math.cos(turn), math.sin(turn)]) for turn in np.linspace(0, 2 * math.pi, 8, endpoint=False)]
    farthest = 0.0
    for answers in itertools.product(directions, repeat=3):
        for other in directions:
            exchanged = [other, *answers[1:]]
            farthest = max(farthest, float(np.linalg.norm(sum(answers) - sum(exchanged))))
    assert farthest == pytest.approx(2.0)
    assert mean_of_answers().refutes
    assert mean_of_answers().spent > 2 * mean_of_answers().claimed


def test_a_sample_from_a_public_seed_hides_nobody() -> None:
    assert few_shot_with_a_public_seed().refutes
