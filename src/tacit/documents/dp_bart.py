"""DP-BART: noise on the output of a BART encoder.

Igamberdiev & Habernal, "DP-BART for privatized text rewriting under local differential privacy" (Findings of ACL
2023); Igamberdiev 2023, chapter 6.

    clv   z = clamp(encode(x), -C, C), n = positions * width;           l1 2 C n,  l2 2 C sqrt(n)
    pr    only the kept encoder neurons, the others constant 0;          the same with n = positions * kept
    pr+   pr with a model that was trained on with the noise of this epsilon

    y = beam search over decode(z + noise): all-ones mask, fixed largest length

A BART with a linear bottleneck (`tacit.documents.autoencoders.bottleneck`) is clamped like clv, on fewer columns.
A BART that was trained with another bound (an l2 or l1 norm of the whole latent) is used with that bound, which is what
it knows and what the card then says; it has none of these variants.

On bart-base (20 x 768, C = 0.1) the l2 sensitivities are 24.787 (clv) and 12.066 (pr, 182 kept neurons).

Guarantee: that of `LatentMechanism`, for one whole document, with the sensitivity that the clamp derives.

C is chosen on public text: half the standard deviation of the encoder's values (`estimate_clip`), and half the C of
training, which was one standard deviation (0.2 and 0.1 on bart-base). Clamped harder, more values are at their bounds,
where the signal is as large as the noise allows. Other code for
DP-BART draws one noise vector for all positions, clips to an interval that is wider than its sensitivity assumes, or
uses the classical Gaussian rule above epsilon 1; the parts used here allow none of these.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from tacit.documents.autoencoders.base import Autoencoder, load_for_release
from tacit.documents.autoencoders.built_in import found_models
from tacit.documents.bounds import Bound, ClipValue
from tacit.documents.latent import LatentMechanism
from tacit.documents.pretraining.corpus import PublicText, declared
from tacit.errors import BadInputError, BadParameterError
from tacit.parameters import parameter

VARIANTS = ("clv", "pr", "pr+")
PUBLISHED_C = 0.1
"""The C of the thesis for bart-base, used for models of the hub when none is given."""


@dataclass(kw_only=True, eq=False)
class DPBart(LatentMechanism):
    """DP-BART with any Hugging Face BART.

    model     bart-20 (texts of up to 20 word pieces), a folder, or a name of the hub; in the source repository also
              bart-40 and bart-20-unclipped (trained without clipping, as the one of the paper)
    variant   "clv", "pr" (a pruned model) or "pr+" (pruned and trained for this epsilon); default: what the model is
    clip      C; by default half the one of the checkpoint as in the thesis (the same one for a model that was trained
              with noise and knows its size, and for a norm), half the standard deviation of its values if it was
              trained without clipping, and 0.1 for a model of the hub
    length    positions of a hub model (default 20); a model of 'tacit pretrain' has its own
    """

    model: str = parameter("bart-20", service_values=found_models("bart-20", "bart-20-unclipped", "bart-40"))
    variant: str | None = parameter(None, choices=VARIANTS)
    clip: float | None = None
    length: int | None = parameter(None, service_most=512)

    name: ClassVar[str] = "dp-bart"
    title: ClassVar[str] = "DP-BART"
    paper: ClassVar[str] = "Igamberdiev & Habernal 2023"
    model_needed: ClassVar[str] = "BART (included, or any)"

    def load(self) -> Autoencoder:
        if self.length is None:
            return super().load()
        autoencoder = load_for_release(self.model)
        if self.name not in autoencoder.mechanisms:
            return autoencoder  # refused with its bound
        fixed = autoencoder.kind != "bart" or bool(autoencoder.record.commands)
        if fixed and autoencoder.positions != self.length:
            raise BadParameterError(
                "impossible-length",
                "this model was trained for length {positions}: leave out the length, or choose a model of that "
                "length (bart-20 comes with Tacit, bart-40 with its source repository)",
                positions=autoencoder.positions,
            )
        if fixed:
            return autoencoder
        record = replace(autoencoder.record, positions=self.length)
        return type(autoencoder)(autoencoder.model, autoencoder.tokenizer, record)  # type: ignore[attr-defined, call-arg]

    def choose_bound(self, autoencoder: Autoencoder) -> Bound:
        if self.name not in autoencoder.mechanisms:
            raise BadInputError(
                "wrong-kind-of-model",
                "DP-BART needs a BART, and this model is of the kind '{kind}': use 'bart-20', the folder of a BART, "
                "or a hub name such as facebook/bart-base",
                kind=autoencoder.kind,
            )
        record = autoencoder.record
        trained = record.trained_bound()
        if trained is not None and not isinstance(trained, ClipValue):
            if self.variant is not None:
                raise BadParameterError(
                    "bound-of-another-variant",
                    "this model was trained with the bound {bound} on its whole latent, and variant {variant} "
                    "clamps each value: leave out the variant, or choose a model trained for it",
                    bound=trained.kind,
                    variant=self.variant,
                )
            return trained if self.clip is None else replace(trained, C=self.clip)
        kept = trained.kept if isinstance(trained, ClipValue) else None
        trained_variant = "clv" if kept is None else ("pr+" if record.epsilons() else "pr")
        variant = self.variant or trained_variant
        if variant != "clv" and kept is None:
            raise BadInputError(
                "model-not-pruned",
                "variant {variant} needs a pruned model: make one with 'tacit pretrain prune'",
                variant=variant,
            )
        if variant == "pr+" and not record.epsilons():
            raise BadInputError(
                "model-without-noise",
                "variant pr+ needs a model trained with noise: make one with 'tacit pretrain noise'",
            )
        if trained is None:
            C = PUBLISHED_C if record.sigma is None else record.sigma / 2
        else:
            knows_noise = variant == "pr+" or (kept is None and bool(record.epsilons()))
            C = trained.C if knows_noise else trained.C / 2
        return ClipValue(C if self.clip is None else self.clip, None if variant == "clv" else kept)


@dataclass(frozen=True)
class ClipEstimate:
    """Mean and standard deviation of the encoder's values on public text; C is half the standard deviation."""

    mean: float
    sigma: float
    texts: int

    @property
    def C(self) -> float:  # noqa: N802
        return self.sigma / 2


def estimate_clip(autoencoder: Autoencoder, corpus: PublicText, *, texts: int = 1_000) -> ClipEstimate:
    """Choose C on public text (section 6.3.3: values near normal, mean 0.00, sigma 0.2 on bart-base, so C = 0.1)."""
    chosen = declared(corpus).texts[:texts]
    total = squares = 0.0
    for start in range(0, len(chosen), 64):
        values = autoencoder.encode(chosen[start : start + 64]).astype(np.float64)
        total += float(values.sum())
        squares += float(np.square(values).sum())
    count = len(chosen) * autoencoder.positions * autoencoder.width
    mean = total / count
    return ClipEstimate(mean, max(0.0, squares / count - mean**2) ** 0.5, len(chosen))
