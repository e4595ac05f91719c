"""Topics by latent Dirichlet allocation with noise on the expected sufficient statistics (Park, Foulds, Chaudhuri &
Welling, "Private topic modeling", 2016), accounted as DP-SGD.

Online variational inference (Hoffman, Blei & Bach 2010): topics have weights lambda (topics x words of a public list).
In a step every unit is drawn with probability q (Poisson), and for each one drawn the expected counts

    S_d[k, w] = n_w phi_wk          phi: how much of word w of this unit belongs to topic k, given lambda

are shortened to Euclidean length C as one matrix and rounded towards 0 to multiples of 2^-30, so that sums are exact in
any order. Their sum gets N(0, (sigma C)^2) in every number, used or not, is cut
at the noise, and moves lambda:  lambda <- (1 - rho) lambda + rho (eta + S / q).

Guarantee. S_d is a function of one unit and of lambda, which was released by the steps before; adding or removing a
unit moves the sum by at most C. So a step is one Poisson-sampled Gaussian step, and the plan of DP-SGD, with its
accountant, holds unchanged (`tacit.training.plan`). The division is by the planned q, not by how many were drawn.
The published code takes batches of fixed size, which the accountant does not cover, and divides the noise by the whole
corpus in place of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Ids, Integers
from tacit.noise.gaussian import add_gaussian
from tacit.noise.source import StreamKey, public_generator
from tacit.progress import StepProgress
from tacit.training.plan import TrainingPlan

ALPHA = 0.1
"""Of the topics in a unit: few at a time."""
ETA = 0.01
BOUND = 1.0
"""C. The counts of a unit are brought to this length before, so that all weigh about the same."""
MARGIN = 1e-9
"""Matrices are brought a little below the bound: their squares are rounded."""
STATISTIC_BITS = 30
INNER_ROUNDS = 15
DELAY, FORGETTING = 4.0, 0.6
"""rho = (DELAY + step) ** -FORGETTING."""
CUT = 3.5
"""Sums below so many deviations of the noise count as nothing: most words of a topic do not occur at all."""


@dataclass(frozen=True)
class Bags:
    """The words of units, one unit after the other: places in a public list, weights of length 1 for each unit, and
    where each unit begins (and the last one ends)."""

    words: Ids
    counts: Floats
    starts: Ids

    @classmethod
    def of(cls, units: Sequence[Sequence[int]]) -> Bags:
        """The bags of units that are given by the places of their words."""
        words, counts = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
        for places in units:
            different, times = np.unique(np.asarray(places, dtype=np.int64), return_counts=True)
            words.append(different)
            counts.append(times / max(float(np.linalg.norm(times)), 1.0))
        starts = np.cumsum([0, *(len(each) for each in words[1:])])
        return cls(np.concatenate(words), np.concatenate(counts), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def chosen(self, units: Ids) -> Bags:
        """Some of them."""
        lengths = np.diff(self.starts)[units]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(starts[-1]) + np.repeat(self.starts[:-1][units] - starts[:-1], lengths)
        return Bags(self.words[places], self.counts[places], starts)

    @property
    def owners(self) -> Ids:
        """The unit of each entry."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))


@dataclass(frozen=True)
class TopicWeights:
    """lambda: (topics, words), positive; released."""

    weights: Floats

    def membership(self, bags: Bags) -> Floats:
        """How much of each unit belongs to each topic (units, topics)."""
        return _inferred(bags, expected_logs(self.weights))[0]


OnSum = Callable[[Floats, Floats], None]
"""Receives the weights before a step and the noisy sum of the step: all that a step shows."""


def fitted_lda(
    bags: Bags,
    words: int,
    topics: int,
    plan: TrainingPlan,
    key: StreamKey,
    progress: StepProgress | None = None,
    on_sum: OnSum | None = None,
) -> TopicWeights:
    """The weights of topics after all steps of a plan; everything that leaves a step has its noise."""
    weights = public_generator(1).gamma(100.0, 0.01, size=(topics, words))
    for step in range(plan.steps):
        noisy = noisy_sum(bags.chosen(plan.sample(step, key)), weights, plan, step, key)
        if on_sum is not None:
            on_sum(weights, noisy)
        total = _without_small_sums(noisy, plan)
        rate = (DELAY + step) ** -FORGETTING
        weights = (1 - rate) * weights + rate * (ETA + total * (plan.records / plan.batch))
        if progress is not None:
            progress(step + 1, plan.steps)
    return TopicWeights(weights)


def noisy_sum(bags: Bags, weights: Floats, plan: TrainingPlan, step: int, key: StreamKey) -> Floats:
    """The sum of what units add (topics, words), with noise on every number: the only private step."""
    total = exact_sum(bags, weights) * 2.0**-STATISTIC_BITS
    if not plan.private:
        return np.asarray(total)
    return add_gaussian(total, sigma=plan.multiplier * BOUND, source=key.stream(step, b"statistics"))


def exact_sum(bags: Bags, weights: Floats) -> Integers:
    """The sum of what units add, in steps of 2^-30: exact, and therefore private."""
    whole = np.trunc(clipped_statistics(bags, expected_logs(weights)) * 2.0**STATISTIC_BITS).astype(np.int64)
    total = np.zeros((weights.shape[1], weights.shape[0]), dtype=np.int64)
    np.add.at(total, bags.words, whole)
    return total.T


def _without_small_sums(noisy: Floats, plan: TrainingPlan) -> Floats:
    """Sums that cannot be told from noise count as 0: a function of what a step has released."""
    return np.asarray(np.where(noisy >= CUT * plan.multiplier * BOUND, noisy, 0.0)) if plan.private else noisy


def clipped_statistics(bags: Bags, logs: Floats) -> Floats:
    """Expected counts of each entry in each topic (entries, topics); those of a unit together have a length of `BOUND`
    at most."""
    _, shares = _inferred(bags, logs)
    expected = shares * bags.counts[:, None]
    squares = np.bincount(bags.owners, weights=np.square(expected).sum(axis=1), minlength=len(bags))
    factors = np.minimum(1.0, BOUND / np.sqrt(np.maximum(squares, 1e-300))) * (1 - MARGIN)
    return np.asarray(expected * factors[bags.owners][:, None])


def _inferred(bags: Bags, logs: Floats) -> tuple[Floats, Floats]:
    """gamma (units, topics) and phi (entries, topics), given E[ln beta]. Units do not touch each other: each goes
    through the same number of rounds."""
    from scipy.special import digamma

    topics, owners = len(logs), bags.owners
    own = np.exp(logs[:, bags.words]).T
    gamma = np.full((len(bags), topics), ALPHA + 1.0 / topics)
    shares = np.full((len(owners), topics), 1.0 / topics)
    for _ in range(INNER_ROUNDS):
        weights = np.exp(digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True)))
        shares = own * weights[owners]
        shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
        gamma = np.full_like(gamma, ALPHA)
        np.add.at(gamma, owners, shares * bags.counts[:, None])
    return gamma, shares


def expected_logs(weights: Floats) -> Floats:
    """E[ln beta] for weights (topics, words)."""
    from scipy.special import digamma

    return np.asarray(digamma(weights) - digamma(weights.sum(axis=1, keepdims=True)))
