"""The steps of topics by noisy statistics, audited from outside: sampling, statistics, clipping, summing and noise."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.account.sgd import sgd_epsilon
from tacit.auditing.models.one_run import Observations, audit_observations
from tacit.auditing.models.topic_canaries import observe_topics
from tacit.errors import BadParameterError
from tacit.noise.source import Source, StreamKey
from tacit.training.topics import lda

UNITS = [[place % 20, (place * 7) % 20, 3] for place in range(120)]
DELTA = 1e-5


def observed(seed: int, *, multiplier: float, rate: float = 1.0, steps: int = 1, topics: int = 1) -> Observations:
    return observe_topics(
        UNITS, words=20, canaries=400, topics=topics, multiplier=multiplier, rate=rate, steps=steps, delta=DELTA,
        source=Source.from_test_seed(seed), key=StreamKey.from_test_seed(seed),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("multiplier", "rate", "steps", "topics", "share"),
    [(1.0, 1.0, 1, 1, 0.2), (2.0, 1.0, 8, 2, 0.05), (0.5, 0.5, 4, 1, 0.1)],
)
def test_the_steps_keep_their_promise_and_the_audit_sees_a_useful_share(
    multiplier: float, rate: float, steps: int, topics: int, share: float
) -> None:
    """Five audits at confidence .95 whose bound normal noise stays far below: false alarms are below 1e-3."""
    claimed = sgd_epsilon(sampling_rate=rate, noise_multiplier=multiplier, steps=steps, delta=DELTA)
    results = [
        audit_observations(
            observed(seed, multiplier=multiplier, rate=rate, steps=steps, topics=topics), delta=DELTA, confidence=0.95
        ).epsilon
        for seed in range(5)
    ]
    assert max(results) < claimed
    assert np.median(results) > share * claimed


def test_noise_of_a_whole_corpus_in_place_of_a_batch_is_refuted() -> None:
    """The published code divides the noise by the size of the corpus in place of that of the batch: with batches of a
    twentieth, a twentieth of the noise."""
    claimed = sgd_epsilon(sampling_rate=1.0, noise_multiplier=2.0, steps=1, delta=DELTA)
    assert audit_observations(observed(0, multiplier=0.1), delta=DELTA, confidence=0.99).refutes(claimed)


def test_statistics_that_are_not_bounded_are_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expected counts as they are: a unit that repeats a word fifty times adds fifty."""

    def unbounded(bags: lda.Bags, logs: np.ndarray) -> np.ndarray:
        return np.asarray(lda._inferred(bags, logs)[1] * 50.0)

    claimed = sgd_epsilon(sampling_rate=1.0, noise_multiplier=2.0, steps=1, delta=DELTA)
    assert not audit_observations(observed(0, multiplier=2.0), delta=DELTA, confidence=0.99).refutes(claimed)
    monkeypatch.setattr(lda, "clipped_statistics", unbounded)
    assert audit_observations(observed(0, multiplier=2.0), delta=DELTA, confidence=0.99).refutes(claimed)


def test_one_canary_is_no_audit() -> None:
    with pytest.raises(BadParameterError) as raised:
        observe_topics(
            UNITS, words=20, canaries=1, topics=1, multiplier=1.0, rate=1.0, steps=1, delta=DELTA,
            source=Source.from_test_seed(0), key=StreamKey.from_test_seed(0),
        )  # fmt: skip
    assert raised.value.code == "too-few-canaries"
