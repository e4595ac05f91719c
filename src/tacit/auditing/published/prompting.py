"""Published ways to use private records in prompts, and what they spend."""

from __future__ import annotations

from tacit.auditing.published.result import Refutation
from tacit.noise.gaussian import analytic_gaussian_sigma, gaussian_epsilon


def few_shot_with_a_public_seed(epsilon: float = 1.0, records: int = 30_000, sigma: float = 0.51) -> Refutation:
    """Tang et al. 2023 in their public code: the records of each token are drawn from a public seed.

    The noise is made for secret samples of 20 in 30,000 records. With a seed that everybody knows, everybody knows for
    which tokens a record was used, and each of them is a Gaussian step of multiplier sigma without amplification. The
    number is that of a record that is used once.
    """
    delta = 1.0 / records
    return Refutation(
        f"the public code of few-shot generation for {records:,} records (noise {sigma:g}, samples from seeds 0 to 4)",
        epsilon,
        gaussian_epsilon(sigma, delta, 1.0),
        "a sample that everybody can repeat hides nobody; and this is the cost of a single token",
        delta,
    )


def mean_of_answers(epsilon: float = 3.0, delta: float = 5e-5) -> Refutation:
    """Wu et al. 2023 in the first version of their repository: answer vectors of length 1, noise for sensitivity 1."""
    sigma = analytic_gaussian_sigma(epsilon, delta, 1.0)
    opposite = abs(1.0 - (-1.0))
    return Refutation(
        "the first public code of private in-context answers, one noisy sum of answer vectors of length 1,",
        epsilon,
        gaussian_epsilon(sigma, delta, opposite),
        "exchanging an answer for the opposite one moves the sum by 2, and the noise is made for 1",
        delta,
    )
