"""Systems that answer from private models and whose published accounting does not hold, beside what they spend."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.published.result import PublishedCost, Refutation
from tacit.training.ensemble.uniform import uniform_mixture, uniform_mixture_epsilon

MAX_LOG: Final = 10.0
"""The published width of the band of SubMix: each model is projected to within e^(10 / 2) of the public one."""


def largest_loss(left: Floats, right: Floats) -> float:
    """The Rényi divergence of order infinity of two laws."""
    return float(np.log(left / right).max())


def submix_booked(mixes: Floats, pair: int) -> float:
    """The loss that the public code of SubMix books for a pair: the length of the law stands where the number of pairs
    belongs, and the answer is compared with the pair's own law instead of that of the others."""
    answer = mixes.mean(axis=0)
    length = len(answer)
    rest = (answer - mixes[pair] / length) * (length / (length - 1))
    return max(largest_loss(rest, answer), largest_loss(answer, mixes[pair]))


def submix_lost(mixes: Floats, pair: int) -> float:
    """The loss about a pair: the answer against the answer of the other pairs, in both directions."""
    answer, rest = mixes.mean(axis=0), np.delete(mixes, pair, axis=0).mean(axis=0)
    return max(largest_loss(rest, answer), largest_loss(answer, rest))


def pairs_with_a_secret(public: float, secret: float, pairs: int, vocabulary: int) -> Floats:
    """The laws of pairs of models of which one has learned a token by heart. Both models of a pair agree, so SubMix
    mixes nothing of the public model in: it looks for disagreement inside of pairs only."""
    mixes = np.full((pairs, vocabulary), (1 - public) / (vocabulary - 1))
    mixes[:, 0] = public
    mixes[0] = (1 - secret) / (vocabulary - 1)
    mixes[0, 0] = secret
    return mixes


def submix_accounting(pairs: int = 28, secret: float = 0.75, public: float = 6e-7) -> Refutation:
    """SubMix's accounting in its public code, for one token and a pair that knows a secret."""
    mixes = pairs_with_a_secret(public, secret, pairs, 50_257)
    return Refutation(
        f"the accounting in the public code of SubMix, for one token of {pairs} pairs of which one knows a secret,",
        submix_booked(mixes, 0),
        submix_lost(mixes, 0),
        "it divides by the length of the law in place of the number of pairs, and compares the answer with the pair "
        "itself in place of the others",
    )


def submix_with_its_projection(pairs: int = 32, public: float = 1e-3) -> Refutation:
    """The same with the projection that the code puts before it: no model is farther than e^5 from the public one."""
    half = math.exp(MAX_LOG / 2)
    mixes = pairs_with_a_secret(public / half, public * half, pairs, 50_257)
    return Refutation(
        "SubMix as coded, every model projected to within e^5 of the public one,",
        submix_booked(mixes, 0),
        submix_lost(mixes, 0),
        "the projection bounds the loss and the accounting still does not see it",
    )


def seqpate_as_coded(epsilon: float = 3.0, teachers: int = 2_000, positions: int = 64, texts: int = 32) -> Refutation:
    """SeqPATE in its public code: Laplace noise for the average of teachers, taken from a store of as many vectors as
    a batch has positions, with replacement, for five steps: by counting, two positions must share a vector."""
    stored, drawn = positions * texts, 5 * positions * texts
    noise = np.array([0.3, -0.1, 0.7])
    first, second = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    moved = first + np.array([1.0, -1.0, 0.0]) / teachers  # one teacher votes otherwise at the first position
    difference, other = ((law + noise) - (second + noise) for law in (first, moved))
    shared = drawn > stored
    return Refutation(
        f"the public code of SeqPATE, where {drawn:,} positions take their noise from {stored:,} vectors,",
        epsilon,
        math.inf if shared and not np.allclose(difference, other, atol=0.1 / teachers) else epsilon,
        "positions share noise, which cancels in the difference of their released averages",
    )


def sampled_mixture(laws: Floats, draws: int, *, replacement: bool) -> Floats:
    """The exact law of a token from the mean over a secret sample of models, over all samples of a size."""
    from itertools import combinations, product

    models = range(len(laws))
    samples = [*product(models, repeat=draws)] if replacement else [*combinations(models, draws)]
    law: Floats = np.mean([laws[list(sample)].mean(axis=0) for sample in samples], axis=0)
    return law


def pmixed_sampling(models: int = 5, draws: int = 3) -> PublishedCost:
    """The change of the law where a token is drawn from the mean of a sample of models (PMixED): none, with replacement
    as in one version of its code, or without."""
    laws = np.random.Generator(np.random.PCG64(0)).dirichlet(np.ones(4), size=models)
    whole = laws.mean(axis=0)
    gaps = [np.abs(sampled_mixture(laws, draws, replacement=flag) - whole).max() for flag in (True, False)]
    return PublishedCost(
        "a token from the mean of a secret sample of models, drawn with replacement or without, has the law of the "
        "mean of all of them, to within {value}: sampling hides nothing more, and replacement hides nothing less",
        float(f"{max(gaps):.1g}"),
    )


def dp_decoding(share: float = 0.5, vocabulary: int = 50_000) -> PublishedCost:
    """DP decoding: the cost of one token, reached by two models that are sure of different tokens."""
    sure, other = np.zeros((2, vocabulary))
    sure[0] = other[1] = 1.0
    reached = largest_loss(uniform_mixture(sure, share), uniform_mixture(other, share))
    assert abs(reached - uniform_mixture_epsilon(share, vocabulary)) < 1e-9
    return PublishedCost(
        f"a token that comes from the model with probability {share:g} and otherwise from anywhere in {vocabulary:,} "
        "words costs epsilon {value}",
        reached,
    )
