"""One release, many canaries: each of them is a row of the sketch or not, by its own fair coin.

The coins are guessed from the one sketch, and how many guesses are right bounds epsilon from below (Steinke, Nasr &
Jagielski 2023; `tacit.auditing.models.one_run`). Nothing is assumed about the noise.

Canaries are public sentences under labels of the rule, each a record of its own (or a user). Those of one label
overlap, so their scores are the least-squares estimates of all coins together, steadied by the known size of the noise;
with several label columns the estimates of all columns are added up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.arrays import Floats, Mask
from tacit.auditing.models.one_run import Observations, OneRunAudit, audit_observations, check_coins
from tacit.auditing.synthetic.label_values import label_values
from tacit.auditing.synthetic.numbers import exact_numbers, released_numbers
from tacit.auditing.synthetic.process import MatchingRelease
from tacit.auditing.synthetic.rows import AuditedRows, sample_of
from tacit.matching.whole_numbers import GRID
from tacit.noise.source import new_source, public_generator

BASE_ROWS = 20
RIDGE = 1 / 64
"""A share of the claimed variance: enough for equal canaries, and little enough to read a release without noise."""


def coin_audit(
    rows: AuditedRows,
    release: MatchingRelease,
    sentences: Sequence[str],
    *,
    canaries: int,
    confidence: float,
    seed: int | None = None,
) -> OneRunAudit:
    """The lower bound of one release with canaries.

    seed   a test seed for coins and noise; without it both are fresh
    """
    texts = [sentences[place] for place in public_generator(0).permutation(len(sentences))[:canaries].tolist()]
    planted = _planted(texts, release)
    coins: Mask = new_source(None if seed is None else seed + 1).generator.random(len(texts)) < 0.5
    check_coins(coins)
    base = sample_of(rows, BASE_ROWS, 0)
    released = release.sketch(base.with_rows(planted.at(np.flatnonzero(coins).tolist())), seed)
    beyond = (released_numbers(released) - exact_numbers(release, base)).totals / GRID
    scores = estimated_coins(beyond, planted, release, released.noise_variance)
    return audit_observations(Observations(scores[coins], scores[~coins]), delta=release.delta, confidence=confidence)


def _planted(texts: Sequence[str], release: MatchingRelease) -> AuditedRows:
    values = label_values(release.rule)
    labels = [values[place % len(values)] for place in range(len(texts))] if values else ()
    users = [f"canary {place}" for place in range(len(texts))] if release.by_user else ()
    return AuditedRows(texts, labels, users)


def estimated_coins(beyond: Floats, canaries: AuditedRows, release: MatchingRelease, variance: float) -> Floats:
    """An estimate of every coin, less 1/2, from what the release has beyond the other rows."""
    dense = release.feature_map.dense_dimension
    vectors = release.feature_map.features(canaries.texts, alone=True).dense / GRID
    count = release.feature_map.count_steps / GRID
    added = np.concatenate([vectors, np.full((len(vectors), 1), count)], axis=1)
    lines = release.rule.places(canaries.texts, canaries.labels).reshape(len(vectors), -1)
    estimates = np.zeros(len(vectors))
    for line in np.unique(lines[lines >= 0]):
        own = np.flatnonzero((lines == line).any(axis=1))
        matrix = added[own]
        rest = np.append(beyond[line, :dense], beyond[line, -1]) - matrix.sum(axis=0) / 2
        products = matrix @ matrix.T
        guessed = np.linalg.solve(products / 4 + variance * RIDGE * np.eye(len(own)), matrix @ rest)
        # What all canaries of a label have in common says nothing about one of them.
        estimates[own] += guessed - guessed.mean()
    return estimates
