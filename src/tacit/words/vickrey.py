"""Vickrey (Xu et al. 2021): multivariate Laplace noise, then the first or the second neighbor of the noisy vector.

Choosing the second neighbor often enough keeps rare words, which stand alone in the space, from coming back unchanged.

Guarantee: as multivariate Laplace. The choice between the two neighbors looks at the noisy vector only; a variant that
drops the input word when it is nearest (found in published code) depends on the secret and has no such proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.parameters import EpsilonRange, parameter
from tacit.words.multivariate_laplace import MultivariateLaplace
from tacit.words.noisy import MAPPINGS


@dataclass(kw_only=True, eq=False)
class Vickrey(MultivariateLaplace):
    """Multivariate Laplace noise, then one of the two nearest words; t near 1 prefers the second."""

    mapping: str = parameter("first-or-second", choices=MAPPINGS)

    name: ClassVar[str] = "vickrey"
    title: ClassVar[str] = "Vickrey"
    paper: ClassVar[str] = "Xu et al. 2021b"
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(8.0, 2.0, 100.0)
