"""Multivariate Laplace noise (Feyisetan et al., WSDM 2020), with bounding maps (Riecker 2023).

    M(x) = nearest word to f(phi(x)) + z,   density of z proportional to exp(-e |z|)

f is an optional bounding map with sensitivity Delta_f: |f(a) - f(b)| <= Delta_f |a - b| for vectors of the vocabulary.

Guarantee: metric differential privacy in the Euclidean distance of the original vectors. By the triangle inequality the
densities at any point differ by at most exp(e |f(phi(x)) - f(phi(x'))|) <= exp(e Delta_f d(x, x')).
    uncalibrated  e = epsilon: the guarantee is epsilon * Delta_f
    calibrated    e = epsilon / Delta_f: the guarantee is epsilon
The words are moved by f as well before the search, and where f is only bounded with probability 1 - delta (a random
projection with its probabilistic bound), delta is on the card.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.guarantee import Guarantee, Notion
from tacit.parameters import parameter
from tacit.rounding import rounded_up
from tacit.vectors.bounding import Bounding, Sensitivity, bounding
from tacit.words.noisy import NoisyWords


@dataclass(kw_only=True, eq=False)
class MultivariateLaplace(NoisyWords):
    """Noise in all directions of the vector space, then the nearest word.

    bounding     map applied to the vectors first: none, unit, adapted-unit, minus-one-to-one, observed-range, clip, jl
                 (its own options behind a colon: jl:dimension=25)
    calibrated   scale the noise so that epsilon is the guarantee whatever the bounding map
    """

    bounding: str = parameter("none", service_any=True)
    calibrated: bool = True

    name: ClassVar[str] = "laplace"
    title: ClassVar[str] = "Multivariate Laplace"
    paper: ClassVar[str] = "Feyisetan et al. 2020"
    notion: ClassVar[str] = Notion.METRIC.value

    @cached_property
    def bounding_map(self) -> Bounding:
        return bounding(self.bounding).fit(self.table)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        return self.bounding_map.sensitivity()

    @cached_property
    def exact_space(self) -> NDArray[np.floating]:
        return self.bounding_map.transform(self.table.vectors)

    @property
    def noise_epsilon(self) -> float:
        return self.epsilon / self.sensitivity.value if self.calibrated else self.epsilon

    def promise_assuming(self, idealized: str) -> Guarantee:
        s = self.sensitivity
        return self._promise(
            Notion.METRIC,
            self.noise_epsilon * s.value,
            delta=s.delta,
            slack=self._slack(),
            metric=self._euclidean(),
            parameters={**self._shown_parameters(), "sensitivity": f"{rounded_up(s.value)} ({s.kind}: {s.how})"},
            assumptions=(idealized,),
        )
