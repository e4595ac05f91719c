"""Truncated Gumbel (Xu et al. 2021a): a noisy choice among a random number of nearest words.

    k ~ Poisson(ln |V|) conditioned on 1..|V|;  u_1 = x, ..., u_k the k nearest words at distances d_1 = 0, ..., d_k
    g_j ~ Gumbel(0, b) conditioned on [-Dmax, Dmax];  output u_j with j = argmin(d_j + g_j)
    a = (epsilon - 2 (1 + ln |V|) / Dmin) / 3,   b = 2 Dmax / min(W0(2 a Dmax), ln(a Dmin))

Dmax and Dmin are the largest and the smallest positive distance of the vocabulary, W0 is the Lambert function.
b exists only for epsilon > (3 + 2 (1 + ln |V|)) / Dmin: outside this domain the mechanism refuses.

**The published claim of epsilon-metric privacy does not hold**, not even inside the domain. A word that is among the
nearest of x but the r-th neighbor of x' needs k >= r to come out for x', and the chance of that falls faster than
exponentially in r, while x and x' may be as close as any two words. On 20 random words in 50 dimensions the exact law
breaks the bound by a factor of two in the exponent (tests/words); with tens of thousands of words there is no bound
worth stating. So there are three modes:

    anchored     (default) with a small probability rho the output is a uniformly random word. Then every output has
                 probability at least rho/|V| and at most 1 - rho + rho/|V| for every input, and with
                 rho = |V| / (|V| + e^(epsilon Dmin) - 1) no log-ratio exceeds epsilon * Dmin <= epsilon * d(x, x').
                 Proven: pure differential privacy with epsilon * Dmin, hence the published metric claim. Inside the
                 domain rho is below 1/(148 |V|): the texts are those of the published mechanism.
    published    the mechanism as published, inside its domain; the card says that there is no guarantee
    real-part    for reproduction outside the domain as some published code does (real part of W0); no guarantee
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids
from tacit.errors import BadParameterError
from tacit.guarantee import Guarantee, Notion, VoidReason
from tacit.noise.gumbel import (
    truncated_gumbel,
    truncated_gumbel_cdf,
    truncated_gumbel_density,
    truncated_poisson,
    truncated_poisson_pmf,
)
from tacit.noise.source import Source
from tacit.parameters import EpsilonRange, parameter
from tacit.rounding import rounded_up
from tacit.vectors.geometry import diameter, smallest_positive_distance
from tacit.vectors.search import Neighbors
from tacit.words.base import (
    WordMechanism,
)

REMEMBERED_NEIGHBORS = 64
BLOCK_TOKENS = 65_536
ANCHOR_BITS = 62
SMALLEST_ANCHOR = 2.0**-40
NODES_PER_PIECE = 24


@dataclass(kw_only=True, eq=False)
class TruncatedGumbel(WordMechanism):
    """A noisy nearest-neighbor choice; only defined for large epsilon, where protection is nominal.

    mode   "anchored" (proven), "published" or "real-part" (for reproducing papers; no guarantee)
    """

    mode: str = parameter("anchored", choices=("anchored", "published", "real-part"))

    name: ClassVar[str] = "truncated-gumbel"
    title: ClassVar[str] = "Truncated Gumbel"
    paper: ClassVar[str] = "Xu et al. 2021a, anchored"
    notion: ClassVar[str] = Notion.PURE.value
    block_characters: ClassVar[int] = 2_000_000
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(100.0, 75.0, 1000.0)
    every_epsilon: ClassVar[bool] = False

    # Public numbers -------------------------------------------------------------------------------------------

    @cached_property
    def largest(self) -> float:
        return diameter(self.table)

    @cached_property
    def smallest(self) -> float:
        return smallest_positive_distance(self.table)

    @cached_property
    def scale(self) -> float:
        return gumbel_scale(self.epsilon, len(self.table), self.largest, self.smallest, guard=self.mode != "real-part")

    @cached_property
    def anchor(self) -> int:
        """rho as an integer out of 2^62, rounded up."""
        if self.mode != "anchored":
            return 0
        n = len(self.table)
        exponent = self.epsilon * self.smallest
        rho = n / (n + math.expm1(exponent)) if exponent < 700 else 0.0
        return math.ceil(max(rho, SMALLEST_ANCHOR) * 2.0**ANCHOR_BITS)

    @cached_property
    def search(self) -> Neighbors:
        return Neighbors(self.table.vectors)

    @cached_property
    def _nearest(self) -> tuple[NDArray[np.int32], Floats, NDArray[np.bool_]]:
        n, k = len(self.table), min(REMEMBERED_NEIGHBORS, len(self.table))
        return np.empty((n, k), dtype=np.int32), np.empty((n, k)), np.zeros(n, dtype=bool)

    def prepare(self) -> None:
        super().prepare()
        self._load("scale", "anchor")

    # The draw -------------------------------------------------------------------------------------------------

    def draw(self, ids: Ids, source: Source) -> Ids:
        n = len(self.table)
        drawn = np.empty(len(ids), dtype=np.int64)
        for start in range(0, len(ids), BLOCK_TOKENS):
            block = ids[start : start + BLOCK_TOKENS]
            counts = truncated_poisson(math.log(n), n, len(block), source)
            drawn[start : start + len(block)] = self._choose(block, counts, source)
        anchored = source.generator.integers(0, 2**ANCHOR_BITS, size=len(ids)) < self.anchor
        drawn[anchored] = source.generator.integers(0, n, size=int(anchored.sum()))
        return drawn

    def _choose(self, ids: Ids, counts: Ids, source: Source) -> Ids:
        chosen = np.empty(len(ids), dtype=np.int64)
        width = min(REMEMBERED_NEIGHBORS, len(self.table))
        # More neighbors than remembered: rare, but leaving them out would shrink the outputs.
        for i in np.flatnonzero(counts > width):
            words, distances = self.search.nearest_words_of(ids[i : i + 1], int(counts[i]))
            noise = truncated_gumbel(self.scale, self.largest, distances.shape, source)
            chosen[i] = words[0, np.argmin(distances[0] + noise[0])]
        usual = np.flatnonzero(counts <= width)
        words_of, distances_of = self._neighbors(ids[usual])
        widest = int(counts[usual].max(initial=1))
        candidates, distances = words_of[:, :widest], distances_of[:, :widest]
        noisy = distances + truncated_gumbel(self.scale, self.largest, distances.shape, source)
        noisy[np.arange(widest)[None, :] >= counts[usual][:, None]] = np.inf
        chosen[usual] = candidates[np.arange(len(usual)), noisy.argmin(axis=1)]
        return chosen

    def _neighbors(self, ids: Ids) -> tuple[NDArray[np.int32], Floats]:
        words, distances, known = self._nearest
        new = np.unique(ids[~known[ids]])
        if len(new):
            words[new], distances[new] = self.search.nearest_words_of(new, words.shape[1])
            known[new] = True
        return words[ids], distances[ids]

    # The law --------------------------------------------------------------------------------------------------

    def laws_of_draw(self, ids: Ids) -> Floats:
        """The law by quadrature (Gauss-Legendre between all kinks), accurate to about 1e-12."""
        n = len(self.table)
        chances = truncated_poisson_pmf(math.log(n), n)
        far = int(np.flatnonzero(chances > 1e-18)[-1]) + 1
        result = np.zeros((len(ids), n))
        for row, word in enumerate(ids):
            words, distances = self.search.nearest_words_of(np.array([word]), far)
            given_k = noisy_argmin_law(distances[0], self.scale, self.largest)
            result[row, words[0]] = chances[:far] @ given_k
        result /= result.sum(axis=1, keepdims=True)
        rho = self.anchor / 2.0**ANCHOR_BITS
        return (1.0 - rho) * result + rho / n

    # The guarantee --------------------------------------------------------------------------------------------

    def promise(self) -> Guarantee:
        shown: dict[str, object] = {
            "metric epsilon": f"{rounded_up(self.epsilon)}, at the smallest distance {self.smallest:.4g}",
            "Gumbel scale": f"{self.scale:.6g}",
            "largest distance": rounded_up(self.largest),
        }
        rho = max(self.anchor / 2.0**ANCHOR_BITS, SMALLEST_ANCHOR)
        n = len(self.table)
        guarantee = self._promise(
            Notion.PURE,
            math.log1p(n * (1.0 - rho) / rho),
            parameters={**self._shown_parameters(), **shown, "anchor": f"{rho:.3g}"},
        )
        if self.mode == "published":
            return guarantee.voided(
                "the published claim for truncated Gumbel is refuted by the exact law; mode=anchored repairs it",
                VoidReason.REFUTED,
            )
        if self.mode == "real-part":
            return guarantee.voided(
                "truncated Gumbel was run outside the domain where its noise scale is defined",
                VoidReason.OUTSIDE_DOMAIN,
            )
        return guarantee


def gumbel_scale(epsilon: float, words: int, largest: float, smallest: float, *, guard: bool = True) -> float:
    """b of the paper; with `guard`, an error outside the domain a Dmin > 1."""
    from scipy.special import lambertw

    bound = (3.0 + 2.0 * (1.0 + math.log(words))) / smallest
    a = (epsilon - 2.0 * (1.0 + math.log(words)) / smallest) / 3.0
    if a * smallest > 1.0:
        return float(2.0 * largest / min(lambertw(2.0 * a * largest).real, math.log(a * smallest)))
    if guard:
        raise BadParameterError(
            "epsilon-not-defined",
            "truncated Gumbel is only defined for epsilon above {bound:.4g} with these vectors ({words:,} words, "
            "smallest distance {distance:.4g}), not {epsilon:g}: raise epsilon, use 'tem' or 'santext', or "
            "reproduce published runs with mode=real-part (no guarantee)",
            bound=bound,
            words=words,
            distance=smallest,
            epsilon=epsilon,
        )
    return float(2.0 * largest / abs(lambertw(2.0 * a * largest).real))


def noisy_argmin_law(distances: Floats, scale: float, bound: float) -> Floats:
    """Row k-1: the law of argmin_j (d_j + g_j) over the first k distances (sorted, d_1 = 0), for k = 1..K.

    P(j) = integral of f(t - d_j) prod_{i != j, i <= k} S(t - d_i) dt, where S = 1 - F. S has kinks at d_i - bound, so
    the interval [-bound, bound] is cut there and each piece integrated by Gauss-Legendre.
    """
    cuts = np.unique(np.clip(np.concatenate([distances - bound, [-bound, bound]]), -bound, bound))
    nodes, weights = np.polynomial.legendre.leggauss(NODES_PER_PIECE)
    middle, half = (cuts[1:] + cuts[:-1]) / 2.0, (cuts[1:] - cuts[:-1]) / 2.0
    t = (middle[:, None] + half[:, None] * nodes).ravel()
    w = (half[:, None] * weights).ravel()
    shifted = t - distances[:, None]
    survival = 1.0 - truncated_gumbel_cdf(shifted, scale, bound)
    density = truncated_gumbel_density(shifted, scale, bound)
    alive = np.maximum(survival, 1e-300)
    products = np.cumprod(survival, axis=0)
    law: Floats = (products * w) @ (density / alive).T
    return np.tril(law)
