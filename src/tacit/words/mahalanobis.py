"""Regularized Mahalanobis noise (Xu et al. 2020): noise stretched along the directions in which words vary.

    z = l * A^(1/2) v,   A = lam * S + (1 - lam) * I,   v uniform on the sphere, l ~ Gamma(d, 1/epsilon)

S is the covariance of the public vectors, scaled to mean variance 1. The density is proportional to
exp(-epsilon * |A^(-1/2) z|), so the guarantee is epsilon-metric privacy in the regularized Mahalanobis distance
|A^(-1/2)(phi(x) - phi(x'))|. The nearest word is searched in the same metric. Both together are multivariate Laplace
on the whitened vectors A^(-1/2) phi(x), which is how it is computed. lam = 0 gives multivariate Laplace.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.guarantee import Guarantee, MetricKind, Notion
from tacit.parameters import parameter
from tacit.vectors.distance import VectorDistance
from tacit.words.noisy import NoisyWords


@dataclass(kw_only=True, eq=False)
class Mahalanobis(NoisyWords):
    """Elliptical noise that follows the covariance of the vocabulary, then the nearest word in the same metric.

    lam   how elliptical: 0 is round noise, 1 follows the covariance entirely (the paper uses 0.2)
    """

    lam: float = parameter(0.2, low=0.0, high=1.0)

    name: ClassVar[str] = "mahalanobis"
    title: ClassVar[str] = "Regularized Mahalanobis"
    paper: ClassVar[str] = "Xu et al. 2020"
    notion: ClassVar[str] = Notion.METRIC.value

    @cached_property
    def exact_space(self) -> NDArray[np.float64]:
        vectors = np.asarray(self.table.vectors, dtype=np.float64)
        return np.asarray(vectors @ inverse_root(vectors, self.lam))

    @property
    def noise_epsilon(self) -> float:
        return self.epsilon

    def distance(self) -> VectorDistance:
        name = f"regularized Mahalanobis distance (lam {self.lam:g}) of {self.table.name} vectors"
        return VectorDistance(self.exact_space, name, kind=MetricKind.MAHALANOBIS)

    def promise_assuming(self, idealized: str) -> Guarantee:
        return self._promise(
            Notion.METRIC,
            self.epsilon,
            slack=self._slack(),
            metric=self.distance().metric(self.table.fingerprint),
            assumptions=(idealized,),
        )


def inverse_root(vectors: NDArray[np.float64], lam: float) -> NDArray[np.float64]:
    """A^(-1/2) for A = lam * S + (1 - lam) * I, S the covariance scaled to mean variance 1."""
    covariance = np.cov(vectors, rowvar=False).reshape(vectors.shape[1], vectors.shape[1])
    scaled = covariance / (np.trace(covariance) / len(covariance))
    values, directions = np.linalg.eigh(lam * scaled + (1.0 - lam) * np.eye(len(scaled)))
    smallest = values.max() * 1e-12
    root: NDArray[np.float64] = (directions / np.sqrt(np.maximum(values, smallest))) @ directions.T
    return root
