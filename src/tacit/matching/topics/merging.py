"""Cells that lie near each other as one topic, each weighed by its noisy count: a function of what was released.

Ward's rule: of all pairs of groups, those two are joined whose joining moves the texts least away from the centers of
their groups, w_i w_j / (w_i + w_j) |m_i - m_j|^2. Only cells whose noisy count stands out of the noise take part; all
others belong to the topic that is nearest to their center. So topics are fine where the texts are, and coarse
elsewhere.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from tacit.arrays import Floats, Ids

FEWEST_TOPICS, MOST_TOPICS = 20, 100
TEXTS_PER_WORD = 7
"""A topic has, on average, so many times the texts that a word needs to be shown: a few words of each are then."""
STANDING_OUT = 4.0
"""Scales of the noise, from which on a count stands out: 1 of 110 empty cells does (e^-4 / 2)."""
LEAST_WEIGHT = 1e-3
CONFIDENCE = 0.95


def usual_topics(noisy: Floats, threshold: float) -> int:
    """The number of topics that noisy counts are worth, where a word is shown from `threshold` texts on."""
    worth = round(max(0.0, float(noisy.sum())) / (TEXTS_PER_WORD * threshold))
    return min(max(FEWEST_TOPICS, worth), MOST_TOPICS)


def merged(directions: Floats, noisy: Floats, scale: float, count: int) -> Ids:
    """The topic of each cell: numbers below `count`, the topic with the largest noisy count first.

    scale   of the noise in each count
    """
    groups = _topics_of(directions, noisy, scale, count)
    names, places = np.unique(groups, return_inverse=True)
    totals = np.bincount(places, weights=noisy, minlength=len(names))
    rank = np.empty(len(names), dtype=np.int64)
    rank[np.argsort(-totals, kind="stable")] = np.arange(len(names))
    return rank[places]


def regions(directions: Floats, totals: Floats, most: int = 8) -> Ids:
    """A few groups of topics that are alike, as numbers from 0: for the colors of a map."""
    groups = _joined(directions, np.maximum(totals, LEAST_WEIGHT), min(most, len(directions)))
    return np.asarray(np.unique(groups, return_inverse=True)[1])


def _topics_of(directions: Floats, noisy: Floats, scale: float, count: int) -> Ids:
    """Groups of cells that stand out of the noise; each other cell belongs to the group whose mean is nearest."""
    heavy = np.flatnonzero(noisy > STANDING_OUT * scale)
    if len(heavy) < count:
        heavy = np.sort(np.argsort(-noisy, kind="stable")[:count])
    weights = np.maximum(noisy[heavy], LEAST_WEIGHT)
    _, groups = np.unique(_joined(directions[heavy], weights, count), return_inverse=True)
    means = np.zeros((count, directions.shape[1]))
    np.add.at(means, groups, directions[heavy] * weights[:, None])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    topics = (directions @ means.T).argmax(axis=1)
    topics[heavy] = groups
    return np.asarray(topics)


def _joined(directions: Floats, weights: Floats, count: int) -> Ids:
    """A group for each cell, by the number of one of its cells; `count` groups in all."""
    size = len(directions)
    means, mass = directions.copy(), weights.copy()
    groups, alive = np.arange(size), np.ones(size, dtype=bool)
    costs = np.empty((size, size))
    for row in range(size):
        costs[row] = _costs(means, mass, alive, row)
    nearest = costs.argmin(axis=1)
    least = costs[np.arange(size), nearest]
    for _ in range(size - count):
        first = int(least.argmin())
        second = int(nearest[first])
        means[first] = (mass[first] * means[first] + mass[second] * means[second]) / (mass[first] + mass[second])
        mass[first] += mass[second]
        alive[second] = False
        groups[groups == second] = first
        costs[second], costs[:, second], least[second] = np.inf, np.inf, np.inf
        moved = _costs(means, mass, alive, first)
        costs[first], costs[:, first] = moved, moved
        stale = alive & ((nearest == first) | (nearest == second))
        stale[first] = True
        nearest[stale] = costs[stale].argmin(axis=1)
        least[stale] = costs[stale, nearest[stale]]
        nearer = alive & (moved < least)
        nearest[nearer], least[nearer] = first, moved[nearer]
    return groups


def _costs(means: Floats, mass: Floats, alive: Ids, row: int) -> Floats:
    """The price of joining a group with each other one."""
    apart = means - means[row]
    price = np.einsum("ij,ij->i", apart, apart) * (mass * mass[row]) / (mass + mass[row])
    price[~alive] = np.inf
    price[row] = np.inf
    return np.asarray(price)


@lru_cache(maxsize=1024)
def noise_reach(cells: int, scale: float) -> float:
    """How far the sum of so many Laplace noises of this scale lies from 0 in 95 of 100 releases, at most.

    The law of the sum on a grid of 1/32 of a scale, by a Fourier transform.
    """
    per_scale = 32
    half = 1 << math.ceil(math.log2(per_scale * (30 + 10 * math.sqrt(2 * cells))))
    places = np.arange(-half, half)
    single = np.exp(-np.abs(places) / per_scale)
    single /= single.sum()
    law = np.maximum(np.fft.fftshift(np.fft.irfft(np.fft.rfft(np.fft.ifftshift(single)) ** cells, 2 * half)), 0.0)
    inside = np.cumsum(np.concatenate([law[half : half + 1], law[half + 1 :] + law[half - 1 : 0 : -1]]))
    return float((np.searchsorted(inside, CONFIDENCE) + 1) * scale / per_scale)
