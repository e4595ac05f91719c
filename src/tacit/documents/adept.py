"""ADePT (Krishna, Gupta & Dupuy, EACL 2021), repaired: an LSTM autoencoder whose clipped state gets noise.

    z = [hidden; cell] of the encoder, n numbers;   z = clip(z);   y = decode(z + noise)

As published, z is clipped in the l2 norm, z * min(1, C / ||z||_2), and Laplace noise of scale 2 C / epsilon is added.
That is not epsilon-DP: the Laplace mechanism needs the l1 sensitivity, which is 2 C sqrt(n) (Habernal, "When
differential privacy meets NLP: the devil is in the detail", EMNLP 2021). The pair z = +-(C / sqrt(n)) (1, ..., 1)
attains the loss sqrt(n) * epsilon: 32 epsilon at n = 1,024. Repairs (Igamberdiev 2023, chapters 5 and 6):

    norm="l1"   l1 clip, Laplace with 2 C                              epsilon
    norm="l2"   l2 clip, Laplace with 2 C sqrt(n)                      epsilon
                l2 clip, analytic Gaussian with 2 C                    (epsilon, delta), the default

Guarantee: that of `LatentMechanism`, for one whole document, with the sensitivity that the clip derives.

The second leak of the published system, pre-training on the private text itself, is closed by the record of the model:
it names the public text, and training refuses any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats
from tacit.documents.autoencoders.base import Autoencoder
from tacit.documents.autoencoders.built_in import found_models
from tacit.documents.bounds import (
    Bound,
    ClipL1,
    ClipL2,
)
from tacit.documents.latent import LatentMechanism
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError
from tacit.guarantee import Guarantee, VoidReason
from tacit.mechanism import Release, Rewritten
from tacit.noise.laplace import add_laplace
from tacit.noise.source import Source
from tacit.parameters import parameter


@dataclass(kw_only=True, eq=False)
class Adept(LatentMechanism):
    """ADePT with a correct sensitivity: an LSTM autoencoder with a clipped, noisy state.

    norm   "l2" or "l1": how the state is clipped
    clip   C; by default the one of the checkpoint, or the l2 norm of an average state on public text if it was trained
           without clipping (for l1, C * sqrt(2 n / pi): the l1 norm that a state of l2 norm C has on average)
    beams  1: always the likeliest word piece; more: beam search (10 in the thesis)
    """

    model: str = parameter("adept-20", service_values=found_models("adept-20", "adept-20-wide"))
    norm: str = parameter("l2", choices=("l1", "l2"))
    clip: float | None = None
    beams: int = parameter(1, service_most=16)

    name: ClassVar[str] = "adept"
    title: ClassVar[str] = "ADePT, repaired"
    paper: ClassVar[str] = "Krishna et al. 2021; Habernal 2021; Igamberdiev 2023"
    model_needed: ClassVar[str] = "LSTM autoencoder (included)"

    def choose_bound(self, autoencoder: Autoencoder) -> Bound:
        if self.name not in autoencoder.mechanisms:
            raise BadInputError(
                "wrong-kind-of-model",
                "ADePT needs an LSTM model, and this one is of the kind '{kind}': use 'adept-20', or train one with "
                "'tacit pretrain autoencoder' ({option.kind[adept]})",
                kind=autoencoder.kind,
            )
        C = self.clip
        if C is None:
            trained = autoencoder.record.trained_bound()
            n = autoencoder.positions * autoencoder.width
            if trained is not None:
                C, kind = trained.C, trained.kind
            elif autoencoder.record.sigma is not None:
                C, kind = autoencoder.record.sigma * math.sqrt(n), "l2"
            else:
                raise BadParameterError(
                    "clip-missing", "this model was not trained with clipping: give its C with the option clip"
                )
            if self.norm == "l1" and kind == "l2":
                C *= math.sqrt(2 * n / math.pi)
        return ClipL1(C) if self.norm == "l1" else ClipL2(C)


BROKEN_REASON = (
    "the published ADePT clips in the l2 norm but adds Laplace noise for an l1 sensitivity of 2 C, which really is "
    "2 C sqrt(n): two texts can be told apart with a loss of sqrt(n) * epsilon (Habernal 2021)"
)


@dataclass(kw_only=True, eq=False)
class PublishedAdept(Adept):
    """The published, broken form: a fixture for audits, which must find its mistake. It cannot release anything."""

    norm: str = parameter("l2", choices=("l2",))
    noise: str = parameter("laplace", choices=("laplace",))

    title: ClassVar[str] = "ADePT as published (broken)"
    paper: ClassVar[str] = "Krishna et al. 2021"

    def noisy_latents(self, latents: NDArray[np.floating], source: Source) -> Floats:
        """Latents as published: l2 clip, Laplace scale 2 C / epsilon. For audits on public or made-up latents."""
        bounded = self.bound.apply(latents)
        return add_laplace(bounded, epsilon=self.epsilon, l1_sensitivity=2 * self.bound.C, source=source)

    def promise(self) -> Guarantee:
        return super().promise().voided(BROKEN_REASON, VoidReason.REFUTED)

    def _shown_parameters(self) -> dict[str, object]:
        return {"bound": "l2", "C": self.bound.C, "noise": "laplace", "noise scale": 2 * self.bound.C / self.epsilon}

    def rewrite(self, texts: str | Iterable[str]) -> Release:
        self._refuse()

    def rewrite_texts(self, texts: Sequence[str], source: Source) -> Rewritten:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise NoGuaranteeError(
            "broken-mechanism", "{reason}. Nothing is released with it: use the mechanism 'adept'", reason=BROKEN_REASON
        )


def published_adept(epsilon: float, *, model: str = "adept-20", clip: float | None = None) -> PublishedAdept:
    """The published ADePT, for audits: its guarantee is void, and it refuses to rewrite."""
    return PublishedAdept(epsilon=epsilon, model=model, clip=clip)
