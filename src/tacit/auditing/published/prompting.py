"""Published ways to use private records in prompts, and what they spend."""

from __future__ import annotations

import math
from collections.abc import Mapping

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


def released_keywords(counts: Mapping[str, int], kept: int, threshold: float) -> tuple[str, ...]:
    """The keywords of answers that the first version of the repository of Wu et al. 2023 gives out: if the gap behind
    word `kept` + 1 passes a (noisy) threshold, the first `kept` words in the order of their exact counts; else none."""
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    gap = counts[ranked[kept]] - counts[ranked[kept + 1]]
    return tuple(ranked[:kept]) if gap > threshold else ()


def keywords_in_exact_order(epsilon: float = 3.0, delta: float = 5e-5) -> Refutation:
    """Wu et al. 2023 in the first version of their repository: keywords after a test of the gap behind another word.

    The noise is in the threshold, which is the same number for two data sets that differ by one answer to the word
    "red": the test passes for both or for none, and if it does, the order of the words says which of them it is.
    """
    counts = {"blue": 40, "red": 40, "green": 39, "gray": 2}
    more = {**counts, "red": 41}
    outcomes = [{released_keywords(each, 2, threshold) for each in (counts, more)} for threshold in (10.0, 36.0, 38.0)]
    told_apart = all(len(pair) == 2 and () not in pair for pair in outcomes[:2]) and outcomes[-1] == {()}
    return Refutation(
        "the first public code of private in-context answers, keywords in the order of their counts,",
        epsilon,
        math.inf if told_apart else epsilon,
        "the noise only decides whether words are shown: the gap that is tested lies behind another word than the last "
        "one shown, and the order of those shown is exact",
        delta,
    )
