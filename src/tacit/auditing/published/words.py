"""Word-level methods whose published code breaks their promise, by the exact law on small public vocabularies."""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.claims.claim import Claim, TableDistance
from tacit.auditing.claims.exact import check_all
from tacit.auditing.claims.laws import matrix_law
from tacit.auditing.published.result import PublishedCost, Refutation
from tacit.noise.gaussian import analytic_gaussian_sigma, gaussian_epsilon
from tacit.vectors import VectorTable, load_vectors
from tacit.words.custext import CusText
from tacit.words.santext import SanText
from tacit.words.truncated_gumbel import TruncatedGumbel

GOLDEN_ANGLE = math.pi * (3.0 - math.sqrt(5.0))


def spiral(words: int) -> Floats:
    """Points of a plane, dense in the middle and lonely outside as words are: a vocabulary anybody can make again."""
    place = np.arange(words)
    directions = np.stack([np.cos(GOLDEN_ANGLE * place), np.sin(GOLDEN_ANGLE * place)], axis=1)
    points: Floats = (place / 12.0)[:, None] ** 2 * directions
    return points


def first_words(count: int) -> VectorTable:
    """The most frequent words of the default vectors."""
    table = load_vectors("default")
    return VectorTable(table.words[:count], table.vectors[:count].copy(), name="default", source="first words")


def steepest_loss(law: Floats, distances: Floats) -> float:
    """The smallest epsilon of a metric promise that a law keeps."""
    steepest = check_all(matrix_law(law), Claim(1.0, distance=TableDistance(distances))).steepest
    return math.inf if steepest is None else steepest


def tem_with_a_quotient(distances: Floats, epsilon: float, gamma: float) -> Floats:
    """The law of TEM where the number of words outside the ball, |W \\ L|, is read as the quotient |W| / |L|."""
    law = np.empty_like(distances)
    for x, row in enumerate(distances):
        inside = row <= gamma
        outside = len(row) - inside.sum()
        weights = np.where(inside, np.exp(-epsilon / 2 * row), 0.0)
        if outside:
            score = -gamma + 2 / epsilon * math.log(len(row) / inside.sum())
            weights[~inside] = math.exp(epsilon / 2 * score) / outside
        law[x] = weights / weights.sum()
    return law


def tem_library(epsilon: float = 8.0, gamma: float = 1.5, words: int = 40) -> Refutation:
    """TEM in a public library of metric mechanisms."""
    points = spiral(words)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    return Refutation(
        f"TEM as a public library has it, truncated at {gamma:g},",
        epsilon,
        steepest_loss(tem_with_a_quotient(distances, epsilon, gamma), distances),
        "the set difference in the weight of all far words is read as a quotient of counts (per unit of distance)",
    )


def gumbel_as_published(words: int = 20) -> Refutation:
    """Truncated Gumbel inside its own domain."""
    table = first_words(words)
    distances = np.linalg.norm(table.vectors[:, None].astype(float) - table.vectors[None].astype(float), axis=2)
    smallest = distances[np.triu_indices(words, 1)].min()
    epsilon = 1.01 * (3 + 2 * (1 + math.log(words))) / smallest
    law = TruncatedGumbel(epsilon=epsilon, vectors=table, mode="published").laws(np.arange(words))
    return Refutation(
        f"the truncated Gumbel choice over the {words} most frequent words",
        epsilon,
        steepest_loss(law, distances),
        "a word that is a far neighbor of the input needs a long list of candidates, whose length is drawn at random "
        "(per unit of distance)",
    )


def vickrey_without_the_input(epsilon: float = 1.0) -> Refutation:
    """A Vickrey that never returns the input word: x never becomes x, and any other word may."""
    far = 50.0
    # One dimension, words at 0, 1 and far away: Laplace noise of scale 1 / epsilon, then the nearest word that is not
    # the input. The word at 0 comes out of the word at 1 wherever the noisy point lies below the middle of 0 and far.
    from_the_other = 1.0 - 0.5 * math.exp(-epsilon * (far / 2 - 1.0))
    from_itself = 0.0
    return Refutation(
        "a Vickrey choice that drops the input word when it is nearest, as a public library does,",
        epsilon,
        math.inf if from_itself < from_the_other else 0.0,
        "no word is ever its own output, so an output excludes one input for certain",
    )


def santext_in_forked_workers(epsilon: float = 8.0, words: int = 8) -> Refutation:
    """SanText in workers that share their seed: token i of two workers is drawn with the same uniform number."""
    law = SanText(epsilon=epsilon, vectors=first_words(words)).laws(np.arange(words))
    steps = np.concatenate([np.zeros((words, 1)), np.cumsum(law, axis=1)], axis=1)

    def unequal(left: int, right: int) -> float:
        """The probability that two inputs give different outputs for the same uniform number."""
        low = np.maximum(steps[left, :-1], steps[right, :-1])
        high = np.minimum(steps[left, 1:], steps[right, 1:])
        return 1.0 - float(np.clip(high - low, 0.0, None).sum())

    same, other = unequal(0, 0), max(unequal(0, word) for word in range(1, words))
    return Refutation(
        "SanText in a pool of workers that were forked after seeding, as its code does,",
        epsilon,
        math.log(other / same) if same > 1e-12 else math.inf,
        "workers repeat each other's noise: equal words at equal places give equal outputs, and different outputs "
        f"(probability up to {other:.2f}) prove different words",
    )


def custext_unknown_words(epsilon: float = 8.0, words: int = 40) -> Refutation:
    """CusText that passes words without a vector through, beside its own sets."""
    law = np.eye(words + 1)
    law[:words, :words] = CusText(epsilon=epsilon, vectors=first_words(words), set_size=words).laws(np.arange(words))
    return Refutation(
        "CusText whose code leaves unknown words as they are",
        epsilon,
        check_all(matrix_law(law), Claim(epsilon)).tightest,
        "a name that is in no word list comes out unchanged",
    )


def nadp_across_components(epsilon: float = 1.0, delta: float = 1e-5) -> Refutation:
    """NADP: Gaussian noise for the diameter of the connected component of a word, and two words of two components."""
    inside, between = 0.1, 10.0
    sigma = analytic_gaussian_sigma(epsilon, delta, inside)
    return Refutation(
        f"NADP with components of width {inside:g} that lie {between:g} apart",
        epsilon,
        gaussian_epsilon(sigma, delta, between),
        "the noise fits the component, so nothing is hidden between words of two components",
        delta,
    )


def hyperbolic_noise(dimension: int = 50) -> PublishedCost:
    """The smallest epsilon for which noise e^(-epsilon d) exists in hyperbolic space.

    The area of a sphere of radius r grows as sinh(r)^(dimension - 1), so ln of the integrand has the slope
    (dimension - 1) coth(r) - epsilon, which must be negative far out.
    """
    far = 50.0
    return PublishedCost(
        f"noise of density e^(-epsilon d) exists in {dimension} hyperbolic dimensions only above epsilon {{value}}",
        (dimension - 1) / math.tanh(far),
    )
