"""Events to look at in samples. A score turns an output into one number; an event is "the score is at least t".

By the lemma of Neyman and Pearson the best events are those where the likelihood ratio is large. Each score is made
from the first half of the samples, or from public knowledge; the second half is only counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats

Samples = NDArray[Any]
Fitted = Callable[[Samples], Floats]


class Score(Protocol):
    @property
    def name(self) -> str:
        """In a few words."""

    def fit(self, left: int, right: int, first: Samples, second: Samples) -> Fitted:
        """The score for telling input `left` from `right`, given samples of both."""


@dataclass(frozen=True)
class OutputRatio:
    """ln((times seen for x + 1/2) / (times seen for x' + 1/2)) of each output: for words and other categories. Several
    columns are one output."""

    name: str = "frequency ratio"

    def fit(self, left: int, right: int, first: Samples, second: Samples) -> Fitted:
        values, places = np.unique(_one_column(np.concatenate([first, second])), return_inverse=True)
        counts = [np.bincount(part, minlength=len(values)) for part in np.split(places, [len(first)])]
        ratios = np.log(counts[0] + 0.5) - np.log(counts[1] + 0.5)

        def score(samples: Samples) -> Floats:
            samples = _one_column(samples)
            place = np.minimum(np.searchsorted(values, samples), len(values) - 1)
            return np.where(values[place] == samples, ratios[place], 0.0)

        return score


def _one_column(samples: Samples) -> Samples:
    if samples.ndim == 1:
        return samples
    return np.array(["\x1f".join(map(str, row)) for row in samples.reshape(len(samples), -1).tolist()])


@dataclass(frozen=True, eq=False)
class Along:
    """A score: the distance of an output in the direction from x' to x; outputs are numbers of `points`."""

    points: NDArray[np.floating]
    name: str = "position"

    def fit(self, left: int, right: int, first: Samples, second: Samples) -> Fitted:
        direction = self.points[left].astype(np.float64) - self.points[right]
        projected = self.points @ direction
        return lambda samples: np.asarray(projected[samples])


@dataclass(frozen=True)
class MeanDirection:
    """The projection on the difference of the two means: best for normal noise."""

    name: str = "projection"

    def fit(self, left: int, right: int, first: Samples, second: Samples) -> Fitted:
        direction = (first.mean(axis=0) - second.mean(axis=0)).ravel()
        return lambda samples: np.asarray(samples.reshape(len(samples), -1) @ direction)


@dataclass(frozen=True, eq=False)
class NearerTo:
    """|y - b| - |y - a| in the l1 or l2 norm: the likelihood ratio of Laplace noise around a and b, up to its scale.

    The centers are those given for x and x', or else the medians of their samples.
    """

    order: int = 2
    centers: NDArray[np.floating] | None = None
    name: str = "nearness"

    def fit(self, left: int, right: int, first: Samples, second: Samples) -> Fitted:
        if self.centers is None:
            a, b = np.median(first, axis=0).ravel(), np.median(second, axis=0).ravel()
        else:
            a, b = (np.asarray(self.centers[i], dtype=np.float64).ravel() for i in (left, right))

        def score(samples: Samples) -> Floats:
            flat = samples.reshape(len(samples), -1)
            return np.asarray(
                np.linalg.norm(flat - b, ord=self.order, axis=1) - np.linalg.norm(flat - a, ord=self.order, axis=1)
            )

        return score


@dataclass(frozen=True)
class Agreement:
    """Whether two releases agree, and how near they are: catches noise that is shared, as by forked workers.

    Samples have two columns, one for each release.
    """

    name: str = "agreement"

    def fit(self, left: int, right: int, first: Samples, second: Samples) -> Fitted:
        def score(samples: Samples) -> Floats:
            first, two = samples[:, 0], samples[:, 1]
            if samples.dtype.kind in "fc":
                gap = np.abs(first - two)
                return np.asarray(-gap.reshape(len(gap), -1).sum(axis=1), dtype=np.float64)
            return np.asarray(first == two, dtype=np.float64)

        return score
