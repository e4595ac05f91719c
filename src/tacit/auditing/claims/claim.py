"""Claims about the outputs of a mechanism for two inputs.

    Pr[M(x) in E]  <=  exp(epsilon * d(x, x') + offset + slack) * Pr[M(x') in E] + delta        for every event E

d is 1 everywhere for plain differential privacy. A claim may be limited to inputs of the same public set (CusText), or
to protected outputs; then every other output may come from one input only (utility-optimized privacy, SanText+).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Floats, Ids, Mask
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Notion
from tacit.rounding import rounded_up
from tacit.vectors.distance import Distance, TableDistance, VectorDistance

if TYPE_CHECKING:
    from tacit.words.base import WordMechanism

__all__ = ["Claim", "Distance", "TableDistance", "VectorDistance", "claim_of", "sets_of"]


@dataclass(frozen=True, eq=False)
class Claim:
    """The bound on each pair of inputs. `sets` gives the set of each input, `among` says in words which inputs share
    one; `protected` marks the covered outputs."""

    epsilon: float
    delta: float = 0.0
    offset: float = 0.0
    slack: float = 0.0
    distance: Distance | None = None
    sets: Ids | None = None
    protected: Mask | None = None
    among: str = "inputs of the same set"

    def __post_init__(self) -> None:
        for name in ("epsilon", "offset", "slack"):
            value = getattr(self, name)
            if math.isnan(value) or value < 0:
                raise BadParameterError(
                    "impossible-claim",
                    "the claimed {name} must be a number of at least 0, not {value}",
                    name=name,
                    value=value,
                )
        if not 0 <= self.delta < 1:
            raise BadParameterError(
                "impossible-claim", "the claimed delta must be at least 0 and below 1, not {delta}", delta=self.delta
            )

    @property
    def is_metric(self) -> bool:
        return self.distance is not None

    def bounds(self, left: Ids, right: Ids) -> Floats:
        """The largest loss that is allowed for each pair; infinite where nothing is claimed."""
        if self.distance is None:
            result = np.full(len(left), self.epsilon + self.slack)
        else:
            result = self.epsilon * self.distance.between(left, right) + self.offset + self.slack
        if self.sets is not None:
            result[self.sets[left] != self.sets[right]] = math.inf
        return result

    def at(self, distances: Floats) -> Floats:
        """The largest loss that is allowed at these distances."""
        return self.epsilon * distances + self.offset + self.slack

    def __str__(self) -> str:
        if self.distance is None:
            text = f"epsilon {rounded_up(self.epsilon)}"
        else:
            text = f"epsilon {rounded_up(self.epsilon)} times the {self.distance.name}"
        if self.offset:
            text += f", plus {rounded_up(self.offset, 4)}"
        if self.delta:
            text += f", delta {rounded_up(self.delta)}"
        if self.sets is not None:
            text += f", between {self.among}"
        if self.protected is not None:
            text += ", for protected outputs"
        return text


def claim_of(mechanism: WordMechanism, guarantee: Guarantee | None = None) -> Claim:
    """The claim on the card of a word mechanism, with the distance, the sets and the outputs that it speaks of."""
    promised = mechanism.guarantee(secure=True) if guarantee is None else guarantee
    if promised.notion is Notion.NONE:
        raise BadParameterError(
            "release-promises-nothing",
            "{mechanism} promises nothing with these options ({reason})",
            mechanism=mechanism.name,
            reason=promised.void,
        )
    protected = None
    if promised.notion is Notion.UTILITY_OPTIMIZED_METRIC:
        protected = np.zeros(len(mechanism.table), dtype=bool)
        protected[mechanism.outputs] = True
    return Claim(
        promised.epsilon,
        delta=promised.delta,
        offset=promised.offset,
        slack=promised.slack,
        distance=None if promised.metric is None else mechanism.distance(),
        sets=sets_of(mechanism, promised.adjacency),
        protected=protected,
        among=promised.adjacency.value,
    )


def sets_of(mechanism: WordMechanism, adjacency: Adjacency) -> Ids | None:
    """The set of each vocabulary word, if something is claimed only between words of one set: the output sets of the
    mechanism, and a set of its own for every punctuation mark that is copied."""
    sets = mechanism.set_of.copy() if adjacency.within_sets else None
    if adjacency.keeps_punctuation:
        sets = np.zeros(len(mechanism.table), dtype=np.int64) if sets is None else sets
        sets[mechanism.kept_ids] = sets.max() + 1 + np.arange(len(mechanism.kept_ids))
    return sets
