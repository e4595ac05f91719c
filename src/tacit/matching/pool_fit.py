"""Which public pools fit a released sketch: computed from the release and public sentences alone.

For every mix of pools a corpus is drawn as `tacit synthesize` would draw it, and the means of its features are held
against the means of the labels in the sketch. Both the draw and the judgment need the noisy sums S, and judging by the
same noise that was drawn by would flatter large pools. So S is split into two halves with independent noise (Gaussian
data thinning; Rasines & Young 2023, Neufeld et al. 2024): with public noise Z of the same variance v as that in S,

    S_1 = S + Z,    S_2 = S - Z        each with noise of variance 2 v, independent if the noise in S is normal

S_1 decides which sentences are drawn, S_2 judges them. Of a mix whose drawn rows have the means r_c, with m_c the
means of S_2, n_c rows and k features,

    distance  = sum over labels of  share_c (|m_c - r_c|^2 - k 2 v / n_c^2)    without bias: what noise adds is known
    explained = 1 - distance / distance of the mean of all public sentences

1 would be a corpus with the means of the private text, 0 one that is no better than public sentences at random. Beside
it stand the part of the rows that would be drawn from each pool, and how many sentences each label would be drawn from
(the number of equal weights that the weights are worth, Kish; the median label).

Nothing here costs anything: it is computed from what was released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tacit.arrays import Floats, Floats32, Ids
from tacit.matching.corpus import most_repeats, pool_features, pool_places, scored_pool, usual_rows
from tacit.matching.discriminant import sample_places, steadied_counts
from tacit.matching.drawing import DOMAIN, SHARPNESS, drawn_rows, lifted_shares, rows_per_label
from tacit.matching.marginals import JointLabels
from tacit.matching.pool import SentencePool
from tacit.matching.sketch import Sketch
from tacit.noise.source import public_generator
from tacit.progress import WorkProgress

MOST_POOLS_MIXED = 4
"""Up to so many pools every mix is tried; of more, single ones, all together, and all without one."""
CLEARLY_BETTER = 0.01
"""A smaller mix is recommended if it explains so much more than all pools together."""


@dataclass(frozen=True)
class MixFit:
    """The worth of a mix of pools for a sketch.

    pools      the places of the pools
    explained  the part of the distance between private text and public sentences at random that drawn rows bridge
    shares     the part of the rows that each pool gives
    sentences  how many sentences a label is drawn from (the median label)
    """

    pools: tuple[int, ...]
    explained: float
    shares: tuple[float, ...]
    sentences: float


@dataclass(frozen=True)
class PoolFit:
    """All mixes that were tried, the best first, and the recommended one."""

    names: tuple[str, ...]
    mixes: tuple[MixFit, ...]
    recommended: MixFit

    def named(self, mix: MixFit) -> tuple[str, ...]:
        """The names of the pools of a mix."""
        return tuple(self.names[place] for place in mix.pools)


@dataclass(frozen=True)
class _Half:
    """One of two noisy versions of a sketch with independent noise: what a classifier is made of."""

    labels: tuple[str, ...]
    dense_sums: Floats
    counts: Floats
    noise_variance: float
    count_deviation: float
    names: Floats

    def name_features(self) -> Floats:
        return self.names


def halves_of(sketch: Sketch, seed: int = 0) -> tuple[_Half, _Half]:
    """Two versions of a sketch with independent noise of twice the variance."""
    generator = public_generator(seed)
    sums = generator.normal(0.0, sketch.noise_deviation, sketch.dense_sums.shape)
    counts = generator.normal(0.0, sketch.count_deviation, sketch.counts.shape)
    names = sketch.name_features()
    first, second = (
        _Half(
            sketch.labels,
            sketch.dense_sums + sign * sums,
            sketch.counts + sign * counts,
            2 * sketch.noise_variance,
            float(np.sqrt(2)) * sketch.count_deviation,
            names,
        )
        for sign in (1, -1)
    )
    return first, second


def fitted_pools(
    sketch: Sketch,
    pools: Sequence[SentencePool],
    *,
    rows: int | None = None,
    seed: int = 0,
    progress: WorkProgress | None = None,
) -> PoolFit:
    """How well the pools, and mixes of them, fit a sketch."""
    if isinstance(sketch.rule, JointLabels):
        from tacit.matching.joint_corpus import column_view  # it is made of the functions of the corpus

        sketch = column_view(sketch, 0)
    places, sentences = pool_places(pools)
    owners = np.array([number for number, _ in places])
    first, second = halves_of(sketch, seed)
    sample = pool_features(sketch, [sentences[place] for place in sample_places(len(sentences))])
    scores = scored_pool(sketch, sentences, progress, judge=first)
    judge = _Judge(second, steadied_counts(sketch), sample.mean(axis=0, dtype=np.float64))
    wanted = usual_rows(sketch) if rows is None else rows
    weights = DOMAIN * scores.domain[:, None] + SHARPNESS * scores.log_probabilities
    tried = mixes_of(len(pools))
    fits = []
    for number, mix in enumerate(tried):
        inside = np.flatnonzero(np.isin(owners, mix))
        generator = public_generator(seed)
        counts = rows_per_label(lifted_shares(scores.discriminant.shares), wanted, generator)
        drawn = drawn_rows(
            scores.log_probabilities[inside], scores.domain[inside], counts, generator,
            most_repeats=most_repeats(counts, len(inside)),
        )  # fmt: skip
        chosen: Ids = inside[drawn.sentences]
        distinct, back = np.unique(chosen, return_inverse=True)
        features = pool_features(sketch, [sentences[place] for place in distinct])[back]
        shares = tuple(float(np.mean(owners[chosen] == pool)) for pool in mix)
        fits.append(MixFit(mix, judge.explained(features, drawn.labels), shares, _worth(weights[inside])))
        if progress is not None:
            progress("comparing mixes", number + 1, len(tried))
    ordered = sorted(fits, key=lambda fit: -fit.explained)
    return PoolFit(tuple(pool.name for pool in pools), tuple(ordered), _recommended(ordered, len(pools)))


def mixes_of(pools: int) -> list[tuple[int, ...]]:
    """The mixes that are tried, by the places of their pools.

    >>> mixes_of(2)
    [(0,), (1,), (0, 1)]
    """
    everything = tuple(range(pools))
    sizes = range(1, pools + 1) if pools <= MOST_POOLS_MIXED else (1, pools - 1, pools)
    return [mix for size in sizes for mix in combinations(everything, size)]


@dataclass(frozen=True)
class _Judge:
    """Holds drawn rows against a version of the sketch that had no part in drawing them."""

    half: _Half
    rows: Floats
    center: Floats

    def explained(self, features: Floats32, labels: Ids) -> float:
        means = self.half.dense_sums / self.rows[:, None]
        noise = means.shape[1] * self.half.noise_variance / self.rows**2
        drawn = np.tile(self.center, (len(means), 1))
        for label in np.unique(labels):
            drawn[label] = features[labels == label].mean(axis=0, dtype=np.float64)
        shares = self.rows / self.rows.sum()
        distance = float(shares @ (((means - drawn) ** 2).sum(axis=1) - noise))
        usual = float(shares @ (((means - self.center) ** 2).sum(axis=1) - noise))
        return 1 - distance / usual if usual > 0 else 0.0


def _worth(weights: Floats) -> float:
    """How many sentences of equal weight the labels are drawn from: the median label."""
    shifted = np.exp(weights - weights.max(axis=0, keepdims=True))
    return float(np.median(shifted.sum(axis=0) ** 2 / (shifted**2).sum(axis=0)))


def _recommended(ordered: Sequence[MixFit], pools: int) -> MixFit:
    """All pools together, unless a smaller mix is clearly better."""
    everything = next(fit for fit in ordered if len(fit.pools) == pools)
    return ordered[0] if ordered[0].explained > everything.explained + CLEARLY_BETTER else everything
