"""Univariate Laplace noise on word vectors, for all of their numbers (related work in Riecker 2023, chapter 3).

    M(x) = f(phi(x)) + (z_1 .. z_n),   z_j independent, density proportional to exp(-|z_j| / b),   b = Delta_1 / epsilon

Guarantee: epsilon-DP for one token, any two words of the vocabulary being neighbors. Proof: f is a fixed function, so
all words lie in the box of their smallest and largest values, and the l1 distance of two of them is at most the sum of
its sides, Delta_1; `add_laplace` gives exactly epsilon for a vector that moves by that much, its rounding included. A
draw for many tokens is one call: changing one token moves its own numbers only, by Delta_1 at most.

Known wrong variant (Lyu et al. 2020): numbers in [0, 1] and a sensitivity of 1. That is the sensitivity of one number;
that of the vector is n, and the true epsilon n times the claimed one.

It is here for comparison: a promise about any two words needs noise as large as the whole vocabulary. In `tacit
rewrite` noise is multivariate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Ids
from tacit.guarantee import Guarantee, Notion
from tacit.noise.laplace import add_laplace
from tacit.noise.source import Source
from tacit.words.multivariate_laplace import MultivariateLaplace

ROUNDING = 1.0 + 2.0**-40
"""Above every rounding error of a sum of some hundred sides."""


@dataclass(kw_only=True, eq=False)
class UnivariateLaplace(MultivariateLaplace):
    """Independent noise on each number of a word vector; not in the catalog."""

    title: ClassVar[str] = "Univariate Laplace"
    paper: ClassVar[str] = "as in Maheshwari et al. 2022"
    notion: ClassVar[str] = Notion.PURE.value

    @cached_property
    def l1_sensitivity(self) -> float:
        """The sum of the sides of the box that holds all vectors."""
        vectors = np.asarray(self.space, dtype=np.float64)
        return float((vectors.max(axis=0) - vectors.min(axis=0)).sum() * ROUNDING)

    @property
    def noise_epsilon(self) -> float:
        return self.epsilon

    def noisy_vectors(self, ids: Ids, source: Source) -> NDArray[np.float64]:
        if not len(ids):
            return np.zeros((0, self.space.shape[1]))
        values = np.asarray(self.space[ids], dtype=np.float64)
        return add_laplace(values, epsilon=self.epsilon, l1_sensitivity=self.l1_sensitivity, source=source)

    def _noisy(self, ids: Ids, source: Source) -> NDArray[np.float32]:
        return self.noisy_vectors(ids, source).astype(np.float32)

    def promise_assuming(self, idealized: str) -> Guarantee:
        # Nothing is idealized: the noise is drawn in whole numbers.
        shown = {**self._shown_parameters(), "l1 sensitivity": self.l1_sensitivity}
        return self._promise(Notion.PURE, self.epsilon, parameters=shown)
