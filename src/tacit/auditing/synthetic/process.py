"""The release under audit: how a sketch is made of rows, and a corpus of a sketch.

`MatchingRelease` calls the functions that `tacit synthesize` calls, with the options that a sketch records, so a shadow
release is made by the same code as the real one. What is made here is compared and thrown away, never released.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.auditing.synthetic.rows import AuditedRows
from tacit.errors import BadInputError
from tacit.guarantee import Guarantee, Model, Notion, Unit
from tacit.matching.corpus import MatchedCorpus, matched_corpus
from tacit.matching.features import FeatureMap
from tacit.matching.labels import PublicLabels
from tacit.matching.pool import SentencePool
from tacit.matching.sketch import Sketch, build_sketch
from tacit.noise.gaussian import analytic_gaussian_sigma


@dataclass(frozen=True)
class MatchingRelease:
    """A way of making sketches: all that a sketch says about how it was made, enough to make others like it."""

    rule: PublicLabels
    feature_map: FeatureMap
    epsilon: float
    delta: float
    by_user: bool

    @property
    def shift(self) -> float | None:
        """The standard deviations of the noise by which one record or user may move the sums, as the card says it; None
        where the noise is not normal, which a promise without delta means."""
        return 1.0 / analytic_gaussian_sigma(self.epsilon, self.delta, 1.0) if self.delta else None

    def sketch(self, rows: AuditedRows, seed: int | None = None) -> Sketch:
        """A release of these rows."""
        return build_sketch(
            rows.source(),
            self.rule,
            self.feature_map,
            epsilon=self.epsilon,
            delta=self.delta,
            by_user=self.by_user,
            seed=seed,
        ).sketch

    def corpus(self, sketch: Sketch, rows: AuditedRows, pool: SentencePool, count: int, seed: int) -> MatchedCorpus:
        """A corpus of a sketch; `rows` are those that the sketch was made of, which it must not look at."""
        return matched_corpus(sketch, [pool], rows=count, seed=seed)


def release_of(sketch: Sketch, promised: Guarantee | None = None) -> MatchingRelease:
    """How a sketch was made; `promised` is the claim to hold it to, by default that of its own card."""
    guarantee = sketch.guarantee if promised is None else promised
    if guarantee.notion not in (Notion.APPROXIMATE, Notion.PURE) or guarantee.model is not Model.CENTRAL:
        raise BadInputError(
            "promise-not-audited",
            "this audit tests promises of sketches in the central model, with or without a delta, and the card says "
            "{notion}",
            notion=guarantee.notion.label,
        )
    return MatchingRelease(
        sketch.rule, sketch.feature_map, guarantee.exponent(), guarantee.delta, guarantee.unit is Unit.USER
    )
