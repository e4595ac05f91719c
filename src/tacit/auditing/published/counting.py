"""Published counts of phrases and topics, and what they spend."""

from __future__ import annotations

import math
from collections import Counter

from tacit.auditing.published.result import Refutation


def phrases_with_exact_counts(epsilon: float = 4.0) -> Refutation:
    """Kim et al. 2021 in their public code: noise decides which n-grams are shown, and their exact counts are printed.

    Two sets of users that differ by one user, and a phrase that passes for both with positive probability: the printed
    number of users differs for certain.
    """
    users = [("call me later",), ("call me later",), ("call me later",)]
    counts = [Counter(phrase for user in some for phrase in user)["call me later"] for some in (users, users[:-1])]
    shown, neighbor = (f"call me later\t{count}" for count in counts)
    return Refutation(
        "the public code of private n-grams, which prints the exact number of users of each phrase,",
        epsilon,
        math.inf if shown != neighbor else epsilon,
        "noise only decides whether a phrase is shown; a line with 3 users excludes data with 2",
    )


def topics_with_noise_for_the_corpus(epsilon: float = 1.0, documents: int = 10_000, batch: int = 100) -> Refutation:
    """Park et al. 2016 in their public code: Laplace noise for the mean over the corpus on a mean over a batch.

    A document of the batch moves the mean by documents / batch times what the noise is made for. The batch is secret,
    with rate q = batch / documents, and beyond its shift a Laplace law is e^x times as dense, so the loss reaches
    ln(1 - q + q e^(epsilon documents / batch)).
    """
    rate, loss = batch / documents, epsilon * documents / batch
    return Refutation(
        f"the public code of private topic models for {documents:,} documents in batches of {batch}, one step,",
        epsilon,
        math.log1p(rate * math.expm1(loss)),
        "the noise is divided by the size of the corpus and the counts by that of the batch",
    )
