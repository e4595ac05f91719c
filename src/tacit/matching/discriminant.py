"""Which label a public sentence would have: a linear classifier made of a sketch and a public pool alone.

A sketch gives the mean m_c of every label, with noise of known variance t_c = noise / rows_c^2 in each number. Public
sentences near the private text give the covariance K of texts of one label. In the directions of K (variance k_j):

    d_cj ~ N(a n_cj, b_j)        how far the mean of a label lies from the common mean, before anything is seen; n_c is
                                 what the public name of the label says (`tacit.matching.label_names`)
    seen: D_cj = d_cj + noise of variance t_c
    s_cj = a n_cj + (D_cj - a n_cj) b_j / (b_j + t_c)
                                 what is believed of d_cj afterwards; what noise could have made is not followed
    v_cj = k_j + r + b_j t_c / (b_j + t_c)
                                 how far a text of the label may lie from there, doubt included

    log p(c | x) = sum over j of  x_j s_cj / v_cj - s_cj^2 / (2 v_cj)  + log share_c + const

x is taken from the common mean m of all labels. The variances b_j and the worth a of names are fitted to the means of
all labels together (EM; `PRIOR_LABELS` imagined labels keep b_j near `BETWEEN` k_j, and a starts from `USUAL_WORTH`; of
the fitted a half is believed, and b_j is taken `DOUBT` times as large), so labels with few rows borrow from the others
and from their names, and the squares of noise do not count as distance: a label of few rows is not pushed away by its
own noise. In trials on public corpora with labels of very different size (Reuters R8, TREC) this did better by 6 to 9
points of macro-F1 at epsilon 1 than a plain ridge that grows with the noise; `benchmarks/discriminant.py` prints what
it gives now.

How much a sentence looks like the private text as a whole, whatever its label, is

    theta_0 = (K_0 + r_0 I)^(-1) (m - mean of the pool),      domain(x) = theta_0 . x

with the covariance K_0 of the pool. K is the covariance of sentences weighted by exp(domain(x) / 2), the exponent made
smaller where it would leave fewer than `FEWEST_NEAR` sentences; variance that only foreign sentences have is not that
of the private text. Its size is made that of the private text: rows have a known length, and what is not in the length
of the means is in the variance. Then `SHIFT` (m - mean of the pool) (m - mean of the pool)' is added to it: where
private text as a whole differs from public sentences (addresses and tags in tweets, dates in news wires), private texts
differ among each other as well, and public sentences, which have none of it, cannot show how much. Without this a
classifier takes such marks for the label that has a few more of them. It costs nothing, since m is released anyway; on
disaster tweets the classifier rises from a macro-F1 of .65 to .73, on Reuters R8 from .71 to .77, elsewhere by nothing.

Numbers of rows are noisy too, and a mean is a sum divided by such a number. With many labels of few rows the noise in
the numbers would do more harm than that in the sums, so they are first moved towards their own mean, the more the less
they differ beyond the noise (empirical Bayes; Efron & Morris 1973).

Everything here is computed from the release and public sentences, so it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.arrays import Floats, Floats32, Ids
from tacit.noise.source import public_generator

RIDGE = 1.0
"""In units of the mean variance of public sentences; chosen on public corpora, as all constants of this room."""
NOISE_RIDGE = 4.0
COVARIANCE_TILT = 0.5
SHIFT = 1.0
FEWEST_NEAR = 1_000
"""The weighted sentences that K is computed from are worth at least so many of equal weight."""
BETWEEN = 0.5
PRIOR_LABELS = 10.0
BELIEF_IN_NAMES = 0.5
USUAL_WORTH, USUAL_WEIGHT = 0.3, 30.0
DOUBT = 1.5
ROUNDS = 20
FEWEST_ROWS = 1.0
"""A noisy number of rows below this counts as this."""
LARGEST_LENGTH = 0.95
"""Of the length of a row, the most that may be in the mean of its label."""
SAMPLE = 20_000
"""Covariances are computed from so many sentences of a pool, drawn with a public seed."""


@dataclass(frozen=True)
class Discriminant:
    """A linear classifier of feature vectors.

    weights  (labels, features)
    offsets  (labels,)
    shares   (labels,): the noisy proportions of the labels
    domain   (features,): the direction from the pool to the private text
    """

    weights: Floats
    offsets: Floats
    shares: Floats
    domain: Floats

    def log_probabilities(self, features: Floats32) -> Floats:
        """log p(label | sentence), (sentences, labels)."""
        scores = features @ self.weights.T.astype(np.float32) + (self.offsets + np.log(self.shares)).astype(np.float32)
        scores -= scores.max(axis=1, keepdims=True)
        return np.asarray(scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)), dtype=np.float64)

    def domain_scores(self, features: Floats32) -> Floats:
        """How much each sentence looks like the private text, as the logarithm of a weight."""
        return np.asarray(features @ self.domain.astype(np.float32), dtype=np.float64)


LEAST_VARIANCE = 1e-9
"""No direction is quite without variance, so that all divisions can be done."""


@dataclass(frozen=True)
class _Spread:
    """A covariance: variances in orthogonal directions (columns)."""

    variances: Floats
    directions: Floats

    @property
    def mean(self) -> float:
        return float(self.variances.mean())


class NoisySums(Protocol):
    """Noisy sums that a classifier is made of: a sketch, or those of collective decoding (`tacit.matching.decoding`).

    dense_sums       (labels, features), each number with noise of variance `noise_variance`
    counts           (labels,), each with noise of deviation `count_deviation`
    """

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def dense_sums(self) -> Floats: ...

    @property
    def counts(self) -> Floats: ...

    @property
    def noise_variance(self) -> float: ...

    @property
    def count_deviation(self) -> float: ...

    def name_features(self) -> Floats:
        """How the features of the labels' names differ from each other (`tacit.matching.label_names`)."""
        ...


def fitted_discriminant(sketch: NoisySums, pool: Floats32) -> Discriminant:
    """The classifier of a sketch; `pool` are the dense features of public sentences under the map of the sketch."""
    sentences = pool[sample_places(len(pool))]
    rows = steadied_counts(sketch)
    total = float(rows.sum())
    sums = sketch.dense_sums
    common = sums.sum(axis=0) / total
    domain = _domain_direction(sketch, common, total, sentences)
    noise = sketch.noise_variance / rows**2
    means = sums / rows[:, None]
    near = _near_covariance(sentences, domain)
    near *= _variance_of_a_text(means, noise, rows, sentences) / float(np.trace(near))
    # More variance in the direction in which the private text differs from the pool.
    shift = common - sentences.mean(axis=0, dtype=np.float64)
    spread = _spread_of(near + SHIFT * np.outer(shift, shift))
    names = sketch.name_features()
    believed, doubt = _believed((means - common) @ spread.directions, names @ spread.directions, noise, spread)
    scaled = believed / (spread.variances + RIDGE * spread.mean + doubt)
    weights = scaled @ spread.directions.T
    offsets = -0.5 * np.einsum("cj,cj->c", believed, scaled) - weights @ common
    return Discriminant(weights=weights, offsets=offsets, shares=rows / total, domain=domain)


def sample_places(sentences: int) -> Ids:
    """Which sentences of a pool covariances are computed from: all, or always the same `SAMPLE` of them."""
    return np.asarray(np.sort(public_generator(0).permutation(sentences)[:SAMPLE]))


def steadied_counts(sketch: NoisySums) -> Floats:
    """The numbers of rows of a sketch, moved towards their mean as far as noise explains their differences."""
    counts = sketch.counts
    noise = sketch.count_deviation**2
    beyond = max(float(counts.var()) - noise, 0.0)
    middle = float(counts.mean())
    return np.maximum(middle + (counts - middle) * (beyond / (beyond + noise)), FEWEST_ROWS)


def _domain_direction(sketch: NoisySums, common: Floats, total: float, sentences: Floats32) -> Floats:
    """theta_0 of the module."""
    covariance = _covariance(sentences, np.ones(len(sentences)))
    noise = sketch.noise_variance * len(sketch.labels) / total**2
    np.fill_diagonal(covariance, covariance.diagonal() + RIDGE * covariance.diagonal().mean() + NOISE_RIDGE * noise)
    return np.asarray(np.linalg.solve(covariance, common - sentences.mean(axis=0, dtype=np.float64)))


def _near_covariance(sentences: Floats32, domain: Floats) -> Floats:
    """The covariance of the sentences that look like the private text, and are enough."""
    scores = (sentences @ domain.astype(np.float32)).astype(np.float64)
    scores -= scores.max()
    tilt = COVARIANCE_TILT
    weights = np.exp(tilt * scores)
    while _equal_weights(weights) < min(FEWEST_NEAR, len(sentences) / 2):
        tilt *= 0.7
        weights = np.exp(tilt * scores)
    return _covariance(sentences, weights)


def _equal_weights(weights: Floats) -> float:
    """How many numbers of equal weight these are worth (Kish)."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def _covariance(sentences: Floats32, weights: Floats) -> Floats:
    """The covariance of weighted sentences."""
    shares = (weights / weights.sum()).astype(np.float32)
    apart = (sentences - shares @ sentences) * np.sqrt(shares)[:, None]
    covariance: Floats = (apart.T @ apart).astype(np.float64)
    np.fill_diagonal(covariance, covariance.diagonal() + LEAST_VARIANCE)
    return covariance


def _spread_of(covariance: Floats) -> _Spread:
    variances, directions = np.linalg.eigh(covariance)
    return _Spread(np.maximum(variances, LEAST_VARIANCE), directions)


def _variance_of_a_text(means: Floats, noise: Floats, rows: Floats, sentences: Floats32) -> float:
    """How much texts of one label vary in all directions together: the squared length that is not in their mean."""
    length = float((sentences.astype(np.float64) ** 2).sum(axis=1).mean())
    in_mean = np.clip((means**2).sum(axis=1) - means.shape[1] * noise, 0.0, LARGEST_LENGTH * length)
    return float((rows * (length - in_mean)).sum() / rows.sum())


def _believed(seen: Floats, names: Floats, noise: Floats, spread: _Spread) -> tuple[Floats, Floats]:
    """(s, doubt) of the module: what the noisy differences of labels and their names tell in each direction, and the
    variance that is left."""
    usual = BETWEEN * spread.variances
    between, noise = usual, noise[:, None]
    for _ in range(ROUNDS):
        expected = BELIEF_IN_NAMES * _worth(names, seen, between + noise) * names
        trust = between / (between + noise)
        moments = ((seen - expected) * trust) ** 2 + trust * noise
        between = (PRIOR_LABELS * usual + moments.sum(axis=0)) / (PRIOR_LABELS + len(seen))
    trust = DOUBT * between / (DOUBT * between + noise)
    return expected + (seen - expected) * trust, trust * noise


def _worth(names: Floats, seen: Floats, variances: Floats) -> float:
    """The factor by which names explain what was seen best (weighted least squares), not below 0."""
    size = float((names**2 / variances).sum())
    fit = float((names * seen / variances).sum())
    return max(0.0, (fit + USUAL_WEIGHT * USUAL_WORTH) / (size + USUAL_WEIGHT))
