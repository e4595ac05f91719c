"""`/v1/expect`: what a corpus in place of so many rows can promise, before anything private is sent.

The noise is known from epsilon and the number of rows alone. How well learners do is what was measured on public data
sets of that size (`tacit.jobs.guide`), never anything about the caller's file.
"""

from __future__ import annotations

from tacit.account.delta import automatic_delta
from tacit.jobs.guide.measures import expectation_sentence, expectations, measured_scores
from tacit.jobs.guide.rules import Way
from tacit.matching.features import default_map
from tacit.matching.proportions import DEVIATIONS
from tacit.matching.sketch import SENSITIVITY
from tacit.matching.whole_numbers import GRID
from tacit.noise.gaussian import analytic_gaussian_sigma
from tacit.serve.answers import Expected
from tacit.serve.messages import ExpectRequest
from tacit.serve.pool import Pool


def expected_of(pool: Pool, request: ExpectRequest) -> Expected:
    """The answer to a number of rows and an epsilon."""
    delta = automatic_delta(request.rows)
    sigma = analytic_gaussian_sigma(request.epsilon, delta, SENSITIVITY)
    noise = DEVIATIONS * sigma * GRID / default_map().count_steps
    way = Way.TOPICS if request.labels is None else Way.MATCHING
    return Expected(
        delta=delta,
        count_noise=noise,
        share_noise=min(1.0, noise / request.rows),
        measured=[expectation_sentence(each) for each in expectations(way, request.rows)],
        measured_epsilon=max((each.epsilon for each in measured_scores() if each.way is way), default=1.0),
    )
