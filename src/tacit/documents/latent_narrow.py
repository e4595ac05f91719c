"""Narrow latent (ours, after the future work of Igamberdiev 2023): a small latent trained for its noise from the start.

    z = few learned positions x few numbers, n in all

    large epsilon   z = z * min(1, C / ||z||_2);   y = decode(z + N(0, sigma**2))          (epsilon, delta)
    small epsilon   z = C * softmax(z);            y = decode(z + Laplace(2 C / epsilon))  epsilon

Guarantee: (epsilon, delta) with l2 sensitivity 2 C (analytic Gaussian), or epsilon with l1 sensitivity 2 C (Laplace on
the simplex, which lies in the l1 ball that the bound enforces). Laplace noise on the l2 ball has 2 C sqrt(n).

Why it beats pruning. DP-BART spreads the budget over thousands of numbers that were trained without noise; n is fixed
by what the encoder happens to be. In the l2 ball the noise of a number does not depend on n, so a document is a
Gaussian channel of at most C**2 / (2 ln 2 sigma**2) bits (8 bits at epsilon 50, 62 at 250, 138 at 500; delta 1e-5),
and encoder and decoder learn together which of the text's bits to send. See `tacit.documents.autoencoders.narrow`.

Why the simplex. At epsilon 10 that is 0.7 bits. Laplace noise of scale C / 5 leaves more: with z at one of n corners
the largest of n noisy numbers is the right one with probability .90 for n = 16 and .59 for n = 128, which is 3.2 bits,
and delta is 0. The model for small epsilons was trained for 50 and 100 with a loss in which frequent pieces count
little, so that these bits say what a text is about. Measured on Snips (docs/latent.md): far above narrow-20 at 50 and
100, and at the floor at 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.documents.autoencoders.base import Autoencoder
from tacit.documents.bounds import Bound
from tacit.documents.latent import NOISES, LatentMechanism
from tacit.errors import BadInputError
from tacit.parameters import parameter

LOW, HIGH = "narrow-20-low", "narrow-20"
LOW_UP_TO = 150.0
"""Built-in models: the one for few bits up to this epsilon, the other one above. Epsilon is no secret."""


@dataclass(kw_only=True, eq=False)
class NarrowLatent(LatentMechanism):
    """A narrow latent, trained with clipping and noise on public text.

    model   by default the built-in one for this epsilon: narrow-20-low up to 150, narrow-20 above
    noise   "trained" is the noise that the model was trained with: Laplace for narrow-20-low, Gaussian for narrow-20
    """

    model: str = parameter("", service_values=(LOW, HIGH))
    noise: str = parameter("trained", choices=("trained", *NOISES))

    name: ClassVar[str] = "narrow"
    title: ClassVar[str] = "Narrow latent"
    paper: ClassVar[str] = "Tacit, after Igamberdiev 2023"
    model_needed: ClassVar[str] = "narrow BART (included)"

    @property
    def model_name(self) -> str:
        return self.model or built_in_model(self.epsilon, self.noise)

    @property
    def noise_kind(self) -> str:
        if self.noise != "trained":
            return self.noise
        return str((self.autoencoder.record.trained_for or {}).get("noise", "gaussian"))

    def choose_bound(self, autoencoder: Autoencoder) -> Bound:
        trained = autoencoder.record.trained_bound()
        if self.name not in autoencoder.mechanisms or trained is None:
            raise BadInputError(
                "wrong-kind-of-model",
                "a narrow model is needed, and this one is of the kind '{kind}': use 'narrow-20', or train one with "
                "'tacit pretrain autoencoder' ({option.kind[narrow]})",
                kind=autoencoder.kind,
            )
        return trained


def built_in_model(epsilon: float, noise: str = "trained") -> str:
    """The built-in model for an epsilon. The one for small epsilons knows Laplace noise only."""
    return LOW if epsilon <= LOW_UP_TO and noise in ("trained", "laplace") else HIGH
