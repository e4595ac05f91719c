"""`/v1/expect`: what a corpus in place of so many rows can promise, before anything private is sent.

The noise is known from epsilon and the number of rows alone. How well learners do is what was measured on public data
sets of that size (`tacit.jobs.guide`), never anything about the caller's file.
"""

from __future__ import annotations

from tacit.serve.answers import Expected
from tacit.serve.messages import ExpectRequest
from tacit.serve.pool import Pool


def expected_of(pool: Pool, request: ExpectRequest) -> Expected:
    """The answer to a number of rows and an epsilon."""
    # What sums texts, and what was measured, loads with the first question, not with the service.
    from tacit.jobs.guide.measures import expectation_sentence, expectations, measured_scores
    from tacit.jobs.guide.rules import Way
    from tacit.matching.documents import with_lengths
    from tacit.matching.features import default_map
    from tacit.matching.proportions import DEVIATIONS
    from tacit.matching.pure import pure_map
    from tacit.matching.sketch import noise_law
    from tacit.matching.whole_numbers import GRID

    features = pure_map() if request.pure else with_lengths(default_map())
    law = noise_law(features, request.epsilon, None, request.rows)
    noise = DEVIATIONS * law.deviation * GRID / features.count_steps
    way = Way.TOPICS if request.labels is None else Way.MATCHING
    return Expected(
        delta=law.delta,
        count_noise=noise,
        share_noise=min(1.0, noise / request.rows),
        measured=[expectation_sentence(each) for each in expectations(way, request.rows)],
        measured_epsilon=max((each.epsilon for each in measured_scores() if each.way is way), default=1.0),
    )
