"""Canaries among the texts of topics by latent Dirichlet allocation: scores for a one-run audit of its steps
(`tacit.auditing.models.one_run`).

A canary is a unit of one word that nobody else has: its statistics lie in a column of their own, and it is as long as
the bound lets it be. The auditor sees the weights and the noisy sum of every step, all that the promise covers, knows
how much of the canary's word belongs to each topic, and adds up the column in that direction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.models.one_run import Observations, check_coins
from tacit.errors import BadParameterError
from tacit.noise.source import Source, StreamKey
from tacit.training.plan import TrainingPlan
from tacit.training.topics.lda import Bags, clipped_statistics, expected_logs, fitted_lda

TIMES = 50
"""A canary repeats its word so often: counts that were not bounded would show it."""


def observe_topics(
    units: Sequence[Sequence[int]],
    *,
    words: int,
    canaries: int,
    topics: int,
    multiplier: float,
    rate: float,
    steps: int,
    delta: float,
    source: Source,
    key: StreamKey,
) -> Observations:
    """Fit topics to units and to canaries, each included by a fair coin, and score every canary.

    units      ordinary units by the places of their words, below `words`; the canaries have the places from there on
    rate       the probability with which a step draws a unit
    """
    if canaries < 2:
        raise BadParameterError(
            "too-few-canaries", "an audit needs at least 2 canaries, not {canaries}", canaries=canaries
        )
    coins = source.generator.random(canaries) < 0.5
    check_coins(coins)
    own = [[words + place] * TIMES for place in range(canaries)]
    records = [*map(list, units), *(unit for unit, coin in zip(own, coins.tolist(), strict=True) if coin)]
    plan = TrainingPlan(len(records), max(1, round(rate * len(records))), steps, multiplier, delta)
    alone = Bags.of(own)
    scores = np.zeros(canaries)

    def look(weights: Floats, noisy: Floats) -> None:
        direction = clipped_statistics(alone, expected_logs(weights))
        scores[:] += np.einsum("ck,kc->c", direction, noisy[:, words:])

    fitted_lda(Bags.of(records), words + canaries, topics, plan, key, on_sum=look)
    return Observations(scores[coins], scores[~coins])
