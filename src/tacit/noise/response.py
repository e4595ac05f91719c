"""Randomized response: pure epsilon-DP for a single bit or category, in the local model.

Warner (JASA 1965): tell the truth with probability e**epsilon / (e**epsilon + 1), otherwise the opposite. For
k categories (Kairouz, Bonawitz & Ramage, ICML 2016), tell the truth with probability e**epsilon / (e**epsilon
+ k - 1) and each other category with probability 1 / (e**epsilon + k - 1).

Sampling is exact: every false answer owns w of the integers below N = t + (k - 1) w, the truth owns t of
them, and one uniform integer decides. With t = floor(w * e**epsilon) the ratio Pr[truth] / Pr[a false answer]
= t / w is at most e**epsilon: the promised epsilon holds without slack. Both are at least 1, so no answer
ever becomes impossible, however large epsilon is.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats
from tacit.errors import BadParameterError
from tacit.noise.parameters import positive
from tacit.noise.source import Source

LARGEST_SHARE = 1 << 61
"""Neither the truth nor all false answers together own more integers than this, so the total fits int64."""


def response_epsilon(p: float) -> float:
    """epsilon = ln((1/2 + p) / (1/2 - p)) for truth with probability 1/2 + p; p = 1/4 gives ln 3."""
    if not 0 < p < 0.5:
        raise BadParameterError(
            "impossible-response",
            "p must lie strictly between 0 and 1/2, not {advantage}: truth is told with 1/2 + p",
            advantage=p,
        )
    return math.log((0.5 + p) / (0.5 - p))


def response_p(epsilon: float) -> float:
    """The inverse of `response_epsilon`: p = tanh(epsilon / 2) / 2."""
    return math.tanh(positive(epsilon, "epsilon") / 2) / 2


def response_shares(epsilon: float, categories: int = 2) -> tuple[int, int]:
    """(t, w): how many integers the truth and each single false answer own; t / w <= e**epsilon."""
    positive(epsilon, "epsilon")
    if not 2 <= categories <= 1 << 30:
        raise BadParameterError(
            "impossible-response",
            "a response needs between 2 and 2**30 categories, not {categories}",
            categories=categories,
        )
    ratio = math.exp(min(epsilon, 60.0))
    lie = max(1, math.floor(LARGEST_SHARE / (ratio + categories - 1)))
    # The factor covers the rounding errors of the exponential and the product.
    truth = math.floor(lie * ratio * (1 - 2.0**-48))
    return max(lie, min(truth, LARGEST_SHARE)), lie


def response_matrix(epsilon: float, categories: int = 2) -> Floats:
    """Row: true category, column: answer. The exact law of `flip_bits` (two categories) and `respond`."""
    truth, lie = response_shares(epsilon, categories)
    total = truth + (categories - 1) * lie
    matrix = np.full((categories, categories), lie / total)
    np.fill_diagonal(matrix, truth / total)
    return matrix


def flip_bits(bits: ArrayLike, epsilon: float, source: Source) -> NDArray[np.bool_]:
    """Binary randomized response on every bit on its own: each one costs epsilon, added up per person."""
    answers = _bits(bits)
    truth, lie = response_shares(epsilon)
    return np.asarray(answers ^ (source.generator.integers(0, truth + lie, size=answers.shape) < lie))


def respond(values: ArrayLike, categories: int, epsilon: float, source: Source) -> NDArray[np.int64]:
    """k-ary randomized response on every value of 0..categories-1 on its own."""
    true = _categories(values, categories)
    truth, lie = response_shares(epsilon, categories)
    total = truth + (categories - 1) * lie
    answers = source.generator.integers(0, total, size=true.shape) // lie
    honest = answers >= categories - 1
    # The false answers are numbered without the true one.
    answers += answers >= true
    return np.where(honest, true, answers)


def estimate_share(answers: ArrayLike, epsilon: float) -> float:
    """Unbiased estimate of the share of ones behind `flip_bits`: the mean of (Y - 1/2 + p) / (2 p).

    It may fall outside [0, 1]; clamping it would bias it. Its variance is at most 1 / (16 n p**2).
    """
    return float(estimate_frequencies(_bits(answers).astype(np.int64), 2, epsilon)[1])


def estimate_frequencies(answers: ArrayLike, categories: int, epsilon: float) -> Floats:
    """Unbiased estimate of all frequencies behind `respond`: (observed share - q) / (keep - q), where q is
    the probability of one false answer. For two categories this is the thesis formula of `estimate_share`."""
    observed = _categories(answers, categories)
    truth, lie = response_shares(epsilon, categories)
    if observed.size == 0:
        raise BadParameterError("no-answers", "there are no answers to estimate from: give at least one")
    if truth == lie:
        raise BadParameterError(
            "answers-are-chance",
            "at epsilon {epsilon} the answers are pure chance: nothing can be estimated",
            epsilon=epsilon,
        )
    total = truth + (categories - 1) * lie
    shares = np.bincount(observed.ravel(), minlength=categories) / observed.size
    return np.asarray((shares * total - lie) / (truth - lie))


def _bits(values: ArrayLike) -> NDArray[np.bool_]:
    array = np.asarray(values)
    if array.dtype != bool and not np.isin(array, (0, 1)).all():
        raise BadParameterError("wrong-answers", "randomized response of two answers needs bits: give only 0 and 1")
    return array.astype(bool)


def _categories(values: ArrayLike, categories: int) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.size and (array.dtype.kind not in "iu" or array.min() < 0 or array.max() >= categories):
        raise BadParameterError(
            "wrong-answers",
            "answers are whole numbers from 0 to {largest}: number the categories",
            largest=categories - 1,
        )
    return array.astype(np.int64)
