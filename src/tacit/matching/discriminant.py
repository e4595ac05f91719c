"""Which label a public sentence would have: a linear classifier made of a sketch and a public pool alone.

A sketch gives the mean m_c of every label, with noise of known size. Together with the covariance K of public sentences
these are all that linear discriminant analysis needs:

    theta_c = (K + r_c I)^(-1) (m_c - m),   log p(c | x) = theta_c . x - theta_c . (m_c + m) / 2 + log share_c + const

where m is the mean over all labels. The ridge r_c grows with the noise of the mean of a label, so that what noise could
have made is not followed, and labels with few rows fall back to the common mean. How much a sentence looks like the
private text as a whole, whatever its label, is the same with the mean of the pool:

    theta_0 = (K + r_0 I)^(-1) (m - mean of the pool),      domain(x) = theta_0 . x

and K is the covariance of sentences weighted by exp(domain(x) / 2): variance that only foreign sentences have is not
that of the private text.

Numbers of rows are noisy too, and a mean is a sum divided by such a number. With many labels of few rows the noise in
the numbers would do more harm than that in the sums, so they are first moved towards their own mean, the more the less
they differ beyond the noise (empirical Bayes; Efron & Morris 1973).

Everything here is computed from the release and public sentences, so it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.matching.sketch import Sketch

RIDGE = 1.0
"""In units of the mean variance of public sentences; chosen on public corpora, as all constants of this room."""
NOISE_RIDGE = 4.0
COVARIANCE_TILT = 0.5
FEWEST_ROWS = 1.0
"""A noisy number of rows below this counts as this."""


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


def fitted_discriminant(sketch: Sketch, pool: Floats32) -> Discriminant:
    """The classifier of a sketch; `pool` are the dense features of public sentences under the map of the sketch."""
    dense = sketch.feature_map.dense_dimension
    rows = steadied_counts(sketch)
    sums = sketch.sums[:, :dense]
    total = float(rows.sum())
    common = sums.sum(axis=0) / total
    differences = sums / rows[:, None] - common
    center = pool.mean(axis=0, dtype=np.float64)
    noise_of_common = NOISE_RIDGE * sketch.noise_variance * len(rows) / total**2
    spread, directions = np.linalg.eigh(np.cov(pool.T, dtype=np.float64))
    domain = _solved(spread, directions, common - center, RIDGE * float(spread.mean()) + noise_of_common)
    scores = pool @ domain.astype(np.float32)
    near = np.exp(COVARIANCE_TILT * (scores - scores.max()).astype(np.float64))
    spread, directions = np.linalg.eigh(np.cov(pool.T, aweights=near, dtype=np.float64))
    usual = float(spread.mean())
    noise = sketch.noise_variance / rows**2
    ridges = RIDGE * usual + NOISE_RIDGE * noise
    weights = np.stack(
        [_solved(spread, directions, each, ridge) for each, ridge in zip(differences, ridges, strict=True)]
    )
    middle = common + differences / 2
    return Discriminant(
        weights=weights,
        offsets=-np.einsum("cd,cd->c", weights, middle),
        shares=rows / total,
        domain=domain,
    )


def steadied_counts(sketch: Sketch) -> Floats:
    """The numbers of rows of a sketch, moved towards their mean as far as noise explains their differences."""
    counts = sketch.counts
    noise = sketch.count_deviation**2
    beyond = max(float(counts.var()) - noise, 0.0)
    middle = float(counts.mean())
    return np.maximum(middle + (counts - middle) * (beyond / (beyond + noise)), FEWEST_ROWS)


def _solved(spread: Floats, directions: Floats, vector: Floats, ridge: float) -> Floats:
    """(K + ridge I)^(-1) vector, K given by its variances in orthogonal directions."""
    return np.asarray(directions @ ((directions.T @ vector) / (np.maximum(spread, 0.0) + ridge)))
