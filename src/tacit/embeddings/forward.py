"""DP-Forward (Du et al., CCS 2023), repaired: the bounded vector of a text with Gaussian noise, drawn once.

    M(x) = g(x) + Z,   |g(x)|_2 <= C = 1,   Z ~ N(0, sigma^2) on each of k numbers, on a public grid

g(x) is the vector of x by a frozen public encoder in k directions of public text (`tacit.embeddings.projection`).

Guarantee: (epsilon, delta) for one whole text against any other, delta 0 with Laplace noise. Proof. `ClipL2` forces
g(x) into the ball of radius C, any two points of which are at most 2 C apart: that is the sensitivity, because any two
texts are neighbors. sigma is the analytic one for it (Balle & Wang 2018), and the noise on the grid is exact
(`tacit.noise.gaussian`). Length, style and words of x are covered, because nothing else leaves.

What the published code does differently, and what that costs (`tacit.auditing.claims.published_forward`):

* sensitivity C in place of 2 C: a claimed epsilon of 8 is 19.1 for one pass;
* new noise in every epoch: three releases of every text, 40.5;
* calibration for *central* privacy with sampling rate 1/n, although each noisy vector is what leaves: 45.5 for one
  pass, 104 for three;
* gradients into the layers below the noise, which see the raw text. Here the encoder is frozen, and whoever trains on
  the released vectors trains on nothing else.

Their noise is on all numbers of a sequence of token vectors. Noise per number is the same for one pooled vector, which
has fewer of them, and for few directions fewer still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.account.delta import check_delta
from tacit.arrays import Floats, Floats32
from tacit.checks import Check, LatentSamples
from tacit.documents.bounds import AnalyticGaussian, Bound, ClipL2, Laplace, LatentNoise, release
from tacit.embeddings.sentences import ProjectedMechanism
from tacit.guarantee import Guarantee, Notion
from tacit.noise.source import Source
from tacit.parameters import EpsilonRange, parameter

NOISES = ("gaussian", "laplace")
LARGEST_LENGTH = 1.0
"""C. Vectors have length 1, so another C would scale the vectors and the noise alike."""


@dataclass(kw_only=True, eq=False)
class Forward(ProjectedMechanism):
    """Sentence vectors with Gaussian noise, for any two texts: for many texts together, as in training a classifier.

    The number of directions was chosen on AG News, CLINC150 and banking77 at epsilon 10 (docs/embed.md).

    noise        "gaussian" (needs delta) or "laplace" (delta 0, and far more noise)
    delta        of the Gaussian noise, well below one over the number of texts
    """

    noise: str = parameter("gaussian", choices=NOISES)
    delta: float = 1e-6

    name: ClassVar[str] = "forward"
    title: ClassVar[str] = "DP-Forward, repaired"
    paper: ClassVar[str] = "Du et al. 2023b"
    notion: ClassVar[str] = Notion.APPROXIMATE.value
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(10.0, 1.0, 100.0)

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.noise == "gaussian":
            AnalyticGaussian(self.delta)

    @property
    def bound(self) -> Bound:
        return ClipL2(LARGEST_LENGTH)

    @property
    def latent_shape(self) -> tuple[int, int]:
        """Positions and width of what gets noise."""
        return 1, self.dimensions

    @property
    def latent_noise(self) -> LatentNoise:
        return Laplace() if self.noise == "laplace" else AnalyticGaussian(self.delta)

    # The private step -----------------------------------------------------------------------------------------

    def embed_texts(self, texts: Sequence[str], source: Source) -> list[Floats32]:
        if self.noise == "gaussian":
            check_delta(self.delta, max(1, len(texts)))
        return list(self.noisy_latents(self.projection.apply(texts)[:, np.newaxis, :], source)[:, 0].astype(np.float32))

    def noisy_latents(self, latents: NDArray[np.floating], source: Source) -> Floats:
        """Bounded and noisy vectors (texts, 1, dimensions)."""
        return release(latents, self.bound, self.latent_noise, self.epsilon, source)

    # What is promised -----------------------------------------------------------------------------------------

    @property
    def noise_scale(self) -> float:
        """sigma, or the scale of the Laplace noise."""
        return self.latent_noise.scale(self.bound, self.dimensions, self.epsilon)

    def checks(self) -> tuple[Check, ...]:
        promised = self.promise()
        family = "laplace" if self.noise == "laplace" else "normal"
        return (LatentSamples(promised.epsilon, family, promised.delta, promised.slack),)

    def promise(self) -> Guarantee:
        pure = self.noise == "laplace"
        n, bound = self.dimensions, self.bound
        sensitivity = bound.l1_sensitivity(n) if pure else bound.l2_sensitivity(n)
        shown: dict[str, object] = {
            "bound": bound.kind,
            "C": bound.C,
            "released numbers": n,
            "l1 sensitivity" if pure else "l2 sensitivity": sensitivity,
            "noise scale": self.noise_scale,
        }
        return self.projected_promise(
            Notion.PURE if pure else Notion.APPROXIMATE,
            self.epsilon,
            delta=0.0 if pure else self.delta,
            shown=shown,
        )

    def _shown_parameters(self) -> dict[str, object]:
        shown = super()._shown_parameters()
        if self.noise == "laplace":
            shown.pop("delta", None)
        return shown
