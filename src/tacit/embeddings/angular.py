"""Angular noise (Du et al. 2023a; Weggenmann & Kerschbaum, CCS 2021): a unit vector, turned.

    form "angle"       y on the sphere with density  c exp(-epsilon angle(u, y))
    form "normalize"   y = (u + z) / |u + z|,  density of z proportional to  exp(-epsilon |z|)

u is the vector of the text in k directions of public text, of length 1 (`tacit.embeddings.projection`); a text in which
the encoder knows nothing gets a fixed public one.

Guarantee: metric differential privacy for one whole text, epsilon per radian of the angle between the vectors of two
texts (form "angle"), or per unit of their distance (form "normalize"). Proof: `tacit.noise.sphere` for the first, the
triangle inequality and post-processing for the second. No two unit vectors are farther apart than pi, or 2: so the
promise for any two texts is epsilon pi, or 2 epsilon. In many dimensions y hardly depends on u (at epsilon 10 their
mean cosine is .80 in 8 dimensions, .54 in 16, .03 in 384): hence few directions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.embeddings.base import on_unit_grid
from tacit.embeddings.sentences import ProjectedMechanism
from tacit.guarantee import Guarantee, Metric, MetricKind, Notion
from tacit.noise.multivariate import multivariate_laplace
from tacit.noise.source import Source
from tacit.noise.sphere import angular_noise
from tacit.parameters import EpsilonRange, parameter
from tacit.words.noisy import IDEALIZED_VECTORS

FORMS = ("angle", "normalize")
UNIT_ERROR = 2.0**-40
"""A vector of length 1 misses it by far less than this."""


@dataclass(kw_only=True, eq=False)
class Angular(ProjectedMechanism):
    """Sentence vectors turned by a random angle: the nearer two texts are in meaning, the better each hides the other.

    epsilon      per radian of the angle between two texts ("angle"), or per unit of their distance ("normalize")
    form         "angle": density exp(-epsilon angle) on the sphere; "normalize": noise in all directions, then length 1
    dimensions   how many directions of public text are kept, at least 2
    """

    form: str = parameter("angle", choices=FORMS)
    dimensions: int = parameter(16, low=2, high=4096)

    name: ClassVar[str] = "angular"
    title: ClassVar[str] = "Angular noise"
    paper: ClassVar[str] = "Du et al. 2023a"
    notion: ClassVar[str] = Notion.METRIC.value
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(10.0, 1.0, 50.0)

    # The private step -----------------------------------------------------------------------------------------

    def embed_texts(self, texts: Sequence[str], source: Source) -> list[Floats32]:
        return list(on_unit_grid(self.turned(self.units(texts), source)))

    def units(self, texts: Sequence[str]) -> Floats:
        """A vector of length 1 for each text; the first direction, where the encoder knows nothing."""
        vectors = self.projection.apply(texts)
        vectors[~vectors.any(axis=1), 0] = 1.0
        return vectors

    def clean_vectors(self, texts: Sequence[str]) -> Floats:
        return self.units(texts)

    def turned(self, units: Floats, source: Source) -> Floats:
        """A random vector of length 1 around each of these."""
        if self.form == "angle":
            return angular_noise(self.epsilon, self.dimensions).around(units, source)
        noisy = units + multivariate_laplace(len(units), self.dimensions, self.epsilon, source, dtype=np.float64)
        return np.asarray(noisy / np.sqrt(np.einsum("ij,ij->i", noisy, noisy))[:, np.newaxis])

    # What is promised -----------------------------------------------------------------------------------------

    def promise(self) -> Guarantee:
        angle = self.form == "angle"
        slack = 4.0 * self.epsilon * UNIT_ERROR
        if angle:
            slack += angular_noise(self.epsilon, self.dimensions).slack
        return self.projected_promise(
            Notion.METRIC,
            self.epsilon,
            slack=slack,
            metric=Metric(
                "angle between the vectors of two texts, in radians" if angle else "distance of two unit vectors",
                diameter=math.nextafter(math.pi, 4.0) if angle else 2.0,
                typical=self._typical(angle),
                fingerprint=self.projection.digest,
                kind=MetricKind.OTHER if angle else MetricKind.EUCLIDEAN,
            ),
            shown={"released numbers": self.dimensions},
            assumptions=(IDEALIZED_VECTORS,),
        )

    def _typical(self, angle: bool) -> float:
        """The median distance of two public sentences."""
        vectors = self.projection.public_vectors
        half = len(vectors) // 2
        cosines = np.einsum("ij,ij->i", vectors[:half], vectors[half : 2 * half])
        return float(np.median(np.arccos(np.clip(cosines, -1, 1)) if angle else np.sqrt(2 - 2 * cosines)))
