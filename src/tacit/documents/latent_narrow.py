"""Narrow latent (ours, after the future work of Igamberdiev 2023): a small latent trained for its noise from the start.

    z = few learned positions x few numbers, n in all;   z = z * min(1, C / ||z||_2);   y = decode(z + N(0, sigma**2))

Guarantee: (epsilon, delta) with l2 sensitivity 2 C (analytic Gaussian), or epsilon with 2 C sqrt(n) (Laplace).

Why it beats pruning. DP-BART spreads the budget over thousands of numbers that were trained without noise; n is fixed
by what the encoder happens to be. In the l2 ball the noise of a number does not depend on n, so a document is a
Gaussian channel of at most C**2 / (2 ln 2 sigma**2) bits (8 bits at epsilon 50, 62 at 250, 138 at 500; delta 1e-5),
and encoder and decoder learn together which of the text's bits to send. See `tacit.documents.autoencoders.narrow`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.documents.autoencoders.base import Autoencoder
from tacit.documents.bounds import Bound
from tacit.documents.latent import LatentMechanism
from tacit.errors import BadInputError


@dataclass(kw_only=True, eq=False)
class NarrowLatent(LatentMechanism):
    """A narrow latent, trained with clipping and noise from scratch on public text."""

    model: str = "narrow-20"

    name: ClassVar[str] = "narrow"
    title: ClassVar[str] = "Narrow latent"
    paper: ClassVar[str] = "Tacit, after Igamberdiev 2023"

    def choose_bound(self, autoencoder: Autoencoder) -> Bound:
        trained = autoencoder.record.trained_bound()
        if autoencoder.kind != "narrow" or trained is None:
            raise BadInputError(
                f"a narrow model is needed, and this one is of the kind '{autoencoder.kind}': use 'narrow-20', or "
                "train one with 'tacit pretrain autoencoder --kind narrow'"
            )
        return trained
