"""Releases with a known mistake under the same promise: what an audit must refute, or it is worth nothing.

    means-without-noise     the sums of the features are released as they are; only the counts are noisy
    counts-without-noise    the other way around: how many rows a label has is released as it is
    tables-without-noise    lengths of texts and tables of pairs of labels are released as they are
    half-sensitivity        noise for rows that move the sums by 1/2, and they move them by 1
    users-not-bounded       a promise to users, and every row of a user adds its full vector
    private-filter          a right sketch, and then only public sentences near a private row may be drawn

Never for a release: `tacit audit synthetic` has them by name so that anybody can see the audit catch them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tacit.arrays import Integers
from tacit.auditing.synthetic.numbers import exact_numbers
from tacit.auditing.synthetic.process import MatchingRelease
from tacit.auditing.synthetic.rows import AuditedRows
from tacit.matching.corpus import MatchedCorpus, matched_corpus
from tacit.matching.pool import SentencePool
from tacit.matching.sketch import Sketch, build_sketch, noise_law
from tacit.noise.source import new_source

NEAR = 0.5
"""The cosine from which on the private filter lets a sentence pass."""
FEWEST_KEPT = 1_000
"""Sentences that the private filter keeps at least, the nearest ones: matching needs so many."""


def _exact(release: MatchingRelease, rows: AuditedRows) -> Integers:
    return exact_numbers(release, rows).totals


@dataclass(frozen=True)
class MeansWithoutNoise(MatchingRelease):
    """Sums of features as they are."""

    def sketch(self, rows: AuditedRows, seed: int | None = None) -> Sketch:
        sketch = super().sketch(rows, seed)
        totals = np.rint(_exact(self, rows) / sketch.step).astype(np.int64)
        totals[:, -1] = sketch.totals[:, -1]
        return replace(sketch, totals=totals)


@dataclass(frozen=True)
class CountsWithoutNoise(MatchingRelease):
    """Counts of rows as they are."""

    def sketch(self, rows: AuditedRows, seed: int | None = None) -> Sketch:
        sketch = super().sketch(rows, seed)
        totals = sketch.totals.copy()
        totals[:, -1] = np.rint(_exact(self, rows)[:, -1] / sketch.step)
        return replace(sketch, totals=totals)


@dataclass(frozen=True)
class TablesWithoutNoise(MatchingRelease):
    """Numbers beside the sums as they are."""

    def sketch(self, rows: AuditedRows, seed: int | None = None) -> Sketch:
        sketch = super().sketch(rows, seed)
        return replace(sketch, side=np.rint(exact_numbers(self, rows).side / sketch.step).astype(np.int64))


@dataclass(frozen=True)
class HalfSensitivity(MatchingRelease):
    """Half of the noise that the promise needs."""

    def sketch(self, rows: AuditedRows, seed: int | None = None) -> Sketch:
        sketch = super().sketch(rows, seed)
        law = noise_law(self.feature_map, self.epsilon, self.delta, len(rows))
        halved = replace(
            law,
            sigma=None if law.sigma is None else law.sigma / 2,
            scale=None if law.scale is None else max(1, law.scale // 2),
        )
        exact, source = exact_numbers(self, rows), new_source(seed)
        totals = halved.released(exact.totals, sketch.step, source)
        return replace(sketch, totals=totals, side=halved.released(exact.side, sketch.step, source))


@dataclass(frozen=True)
class UsersNotBounded(MatchingRelease):
    """Every row of a user adds its full vector, whatever the promise says."""

    def sketch(self, rows: AuditedRows, seed: int | None = None) -> Sketch:
        by_record = build_sketch(
            replace(rows, users=()).source(), self.rule, self.feature_map, epsilon=self.epsilon, delta=self.delta,
            seed=seed,
        ).sketch  # fmt: skip
        return replace(super().sketch(rows, seed), totals=by_record.totals, side=by_record.side)


@dataclass(frozen=True)
class PrivateFilter(MatchingRelease):
    """Only sentences that resemble a private row may be drawn."""

    def corpus(self, sketch: Sketch, rows: AuditedRows, pool: SentencePool, count: int, seed: int) -> MatchedCorpus:
        own = self.feature_map.features(rows.texts).dense_values()
        public = self.feature_map.features(pool.sentences).dense_values()
        own /= np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-9)
        public /= np.maximum(np.linalg.norm(public, axis=1, keepdims=True), 1e-9)
        nearest = (public @ own.T).max(axis=1)
        order = np.argsort(-nearest, kind="stable")
        kept = np.sort(order[: max(FEWEST_KEPT, int((nearest >= NEAR).sum()))])
        return matched_corpus(sketch, [part_of(pool, kept.tolist())], rows=count, seed=seed)


def part_of(pool: SentencePool, places: list[int]) -> SentencePool:
    """Some sentences of a pool as a pool of their own."""
    return replace(
        pool,
        sentences=[pool.sentences[place] for place in places],
        source_ids=pool.source_ids[places],
        credits=[pool.credits[place] for place in places],
    )


def with_mistake(release: MatchingRelease, name: str) -> MatchingRelease:
    """The same release with the planted mistake of that name."""
    return PLANTED[name](release.rule, release.feature_map, release.epsilon, release.delta, release.by_user)


PLANTED: Final[Mapping[str, type[MatchingRelease]]] = {
    "means-without-noise": MeansWithoutNoise,
    "counts-without-noise": CountsWithoutNoise,
    "tables-without-noise": TablesWithoutNoise,
    "half-sensitivity": HalfSensitivity,
    "users-not-bounded": UsersNotBounded,
    "private-filter": PrivateFilter,
}
