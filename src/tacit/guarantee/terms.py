"""The terms a guarantee is stated in: its notion, who adds the noise, what one secret is, and in which distance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum


class Notion(Enum):
    PURE = "pure"
    APPROXIMATE = "approximate"
    METRIC = "metric"
    UTILITY_OPTIMIZED_METRIC = "utility-optimized metric"
    NONE = "none"

    @property
    def label(self) -> str:
        return "no differential privacy" if self is Notion.NONE else f"{self.value} differential privacy"


class Model(Enum):
    """Who adds the noise: the owner of each text before it leaves (local) or a trusted curator (central)."""

    LOCAL = "local"
    CENTRAL = "central"


class Unit(Enum):
    """The secret that a guarantee protects."""

    TOKEN = "token"
    SENTENCE = "sentence"
    DOCUMENT = "document"
    RECORD = "record"
    USER = "user"
    NODE = "node"
    SUBGRAPH = "subgraph"

    @property
    def is_part_of_text(self) -> bool:
        """Whether a text has several of them, whose promises add up over the text."""
        return self in (Unit.TOKEN, Unit.SENTENCE)


class MetricKind(Enum):
    """Which distance a metric guarantee is stated in."""

    EUCLIDEAN = "euclidean"
    HAMMING = "hamming"
    MAHALANOBIS = "mahalanobis"
    OTHER = "other"


@dataclass(frozen=True)
class Metric:
    """The distance a metric guarantee is stated in, with the numbers that make its epsilon readable.

    `diameter` is a proven upper bound on the distance of any two inputs, `typical` the median distance of two
    random words of the public vocabulary, `fingerprint` a hash of the vectors behind it: distances of different
    vectors are never the same metric. `summed` counts over how many words the distance is summed.
    """

    name: str
    diameter: float | None = None
    typical: float | None = None
    fingerprint: str | None = None
    summed: int = 1
    kind: MetricKind = MetricKind.OTHER

    @property
    def label(self) -> str:
        return self.name if self.summed == 1 else f"{self.name}, summed over {self.summed:,} words"

    def times(self, count: int) -> Metric:
        return replace(
            self,
            diameter=None if self.diameter is None else self.diameter * count,
            typical=None if self.typical is None else self.typical * count,
            summed=self.summed * count,
        )
