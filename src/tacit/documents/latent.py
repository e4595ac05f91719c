"""One latent mechanism, assembled from typed parts: autoencoder x bound x noise.

    text -- encode -> latent (positions, width) -- bound -> bounded latent -- noise -> noisy latent -- decode -> text

Guarantee of one document, any two documents being neighbors: epsilon (Laplace) or (epsilon, delta) (analytic Gaussian).
Proof: the bounded latents of any two documents differ by at most the sensitivity that the bound derives for the norm of
the noise (`tacit.documents.bounds`); the noise mechanism does the rest; decoding is post-processing. What has to hold
for that, and does:

1. Constant shape. Every latent has the same number of released numbers n, and the decoder an all-ones mask and a fixed
   largest length. Two texts with the same latent have the same output law, whatever their lengths (pitfall P10).
2. No second look. Decoding is given the noisy latents and nothing else.
3. Public parts. Weights, vocabulary, C and kept columns come from public text; the checkpoint says which (pitfall P3).
4. Exact bounds. They hold for the doubles that meet the noise; noise lives on a public grid (`tacit.noise`).

Texts of a batch are encoded together, in batches of one constant shape, so that a latent does not depend on how many
texts are beside it. They are decoded together: there rows would mix noisy latents only.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.account.delta import check_delta
from tacit.arrays import Floats
from tacit.checks import Check, LatentSamples
from tacit.devices import PROCESSOR, device_in_use, device_named, device_of
from tacit.documents.apart import check_latents_apart
from tacit.documents.autoencoders.base import Autoencoder, load_for_release
from tacit.documents.autoencoders.built_in import RECORD_FILE, built_in_folder
from tacit.documents.base import DocumentMechanism
from tacit.documents.bounds import (
    AnalyticGaussian,
    Bound,
    Laplace,
    LatentNoise,
    release,
)
from tacit.errors import BadParameterError
from tacit.guarantee import NOTE, Guarantee, Notion, VoidReason
from tacit.mechanism import Rewritten
from tacit.needs import MODELS, Ability
from tacit.noise.source import Source
from tacit.parameters import EpsilonRange, parameter

NOISES = ("gaussian", "laplace", "none")
NO_NOISE_REASON = "no noise was added (noise=none), so the output is a function of the private text"


@dataclass(kw_only=True, eq=False)
class LatentMechanism(DocumentMechanism):
    """Parameters of all latent mechanisms.

    epsilon   the budget of one document; without effect if noise is "none"
    model     a built-in model, a folder, or (BART) a name of the Hugging Face hub
    noise     "gaussian" (needs delta), "laplace" (delta 0), or "none" for experiments, which voids the guarantee
    delta     of the Gaussian noise, well below one over the number of documents
    beams     width of the beam search (1 is greedy); no influence on privacy
    """

    batch_size: int = parameter(128, low=1, service_most=256)
    model: str = ""
    noise: str = parameter("gaussian", choices=NOISES)
    delta: float = 1e-6
    beams: int = parameter(4, low=1, service_most=16)

    notion: ClassVar[str] = Notion.APPROXIMATE.value
    abilities: ClassVar[tuple[Ability, ...]] = (MODELS,)
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(500.0, 10.0, 5000.0)

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.noise not in ("laplace", "none"):
            AnalyticGaussian(self.delta)

    # To write in a mechanism --------------------------------------------------------------------------------

    @abstractmethod
    def choose_bound(self, autoencoder: Autoencoder) -> Bound:
        """The bound, from the checkpoint and the parameters."""

    # The parts ----------------------------------------------------------------------------------------------

    @cached_property
    def autoencoder(self) -> Autoencoder:
        return self.load()

    @cached_property
    def bound(self) -> Bound:
        return self.choose_bound(self.autoencoder)

    @property
    def model_name(self) -> str:
        """The model that is used."""
        return self.model

    @property
    def noise_kind(self) -> str:
        """The noise that is used: gaussian, laplace or none."""
        return self.noise

    @property
    def latent_noise(self) -> LatentNoise | None:
        if self.noise_kind == "none":
            return None
        return Laplace() if self.noise_kind == "laplace" else AnalyticGaussian(self.delta)

    @property
    def latent_shape(self) -> tuple[int, int]:
        """Positions and width of a latent."""
        return self.autoencoder.positions, self.autoencoder.width

    @property
    def released_numbers(self) -> int:
        """n: how many numbers of one document get noise."""
        return self.bound.count(self.autoencoder.positions, self.autoencoder.width)

    @property
    def reader(self) -> tuple[Any, int] | None:
        model = self.autoencoder  # one that was made for a test may have no tokenizer
        return (model.tokenizer, model.length) if hasattr(model, "tokenizer") else None

    def load(self) -> Autoencoder:
        with self.on_device():
            return cached_autoencoder(self.model_name)

    def load_public(self) -> None:
        _ = self.released_numbers
        # A kind of a plug-in may have no module that could be elsewhere.
        elsewhere = self.device != PROCESSOR and device_named(self.device).type != PROCESSOR
        if elsewhere and device_of(self.autoencoder.module).type != PROCESSOR:
            check_latents_apart(self.autoencoder.encode, self.autoencoder.kind)

    def checks(self) -> tuple[Check, ...]:
        promised = self.promise()
        family = {"gaussian": "normal", "laplace": "laplace"}.get(self.noise_kind)
        return (LatentSamples(promised.epsilon, family, promised.delta, promised.slack),)

    # The private step ---------------------------------------------------------------------------------------

    def rewrite_texts(self, texts: Sequence[str], source: Source) -> Rewritten:
        if self.noise_kind == "gaussian":
            check_delta(self.delta, max(1, len(texts)))
        return super().rewrite_texts(texts, source)

    def rewrite_batch(self, texts: Sequence[str], source: Source) -> list[str]:
        noisy = self.noisy_latents(self.autoencoder.encode(texts), source)
        return self.autoencoder.decode(noisy, beams=self.beams)

    def noisy_latents(self, latents: NDArray[np.floating], source: Source) -> Floats:
        """Bounded and noisy latents: all that the decoder sees."""
        return release(latents, self.bound, self.latent_noise, self.epsilon, source)

    # The guarantee ------------------------------------------------------------------------------------------

    def promise(self) -> Guarantee:
        pure = self.noise_kind == "laplace"
        promised = self._promise(
            Notion.PURE if pure else Notion.APPROXIMATE,
            self.epsilon,
            delta=0.0 if pure else self.delta,
            provenance=self.autoencoder.record.provenance(Path(self.model_name).name),
            assumptions=(
                "the texts of one batch are computed apart from each other, in constant shapes",
                "the model and everything in its record come from public text"
                + (", apart from weights whose own training was paid for" if self.autoencoder.record.private else ""),
            ),
        )
        return promised.voided(NO_NOISE_REASON, VoidReason.NO_NOISE) if self.noise_kind == "none" else promised

    def _shown_parameters(self) -> dict[str, object]:
        shown = {**super()._shown_parameters(), "model": Path(self.model_name).name, "noise": self.noise_kind}
        beams = shown.pop("beams")
        shown["decoding"] = "greedy" if beams == 1 else f"beam search with {beams} beams"
        bound, noise, n = self.bound, self.latent_noise, self.released_numbers
        shown |= {"bound": bound.kind, "C": bound.C, "positions": self.autoencoder.positions, "released numbers": n}
        if noise is not None:
            pure = isinstance(noise, Laplace)
            shown["l1 sensitivity" if pure else "l2 sensitivity"] = (
                bound.l1_sensitivity(n) if pure else bound.l2_sensitivity(n)
            )
            shown["noise scale"] = noise.scale(bound, n, self.epsilon)
        if self.noise_kind != "gaussian":
            shown.pop("delta", None)
        if note := self.note():
            shown[NOTE] = note
        return shown

    def note(self) -> str | None:
        """A model that was trained with noise knows that noise only."""
        trained = self.autoencoder.record.epsilons()
        if not trained or self.noise_kind == "none" or 0.99 * trained[0] <= self.epsilon <= 1.01 * trained[-1]:
            return None
        span = f"{trained[0]:g}" if len(trained) == 1 else f"{trained[0]:g} to {trained[-1]:g}"
        return (
            f"this model was trained for epsilon {span}, not {self.epsilon:g}: the guarantee holds, but the texts "
            "will be worse than those of a model trained for it ('tacit pretrain noise')"
        )


OF_A_MODEL = (RECORD_FILE, "config.json", "card.json", "task.json")


def cached_autoencoder(name: str) -> Autoencoder:
    """A loaded model, shared by mechanisms that differ in other parameters."""
    if not name:
        raise BadParameterError("model-missing", "give a model: a built-in name, a folder, or a hub name")
    folder = built_in_folder(name) or Path(name)
    stamps = [path.stat().st_mtime_ns for path in map(folder.joinpath, OF_A_MODEL) if path.exists()]
    return _cached(name, str(folder.resolve()), tuple(stamps), device_in_use())


@lru_cache(maxsize=4)
def _cached(name: str, folder: str, stamps: tuple[int, ...], device: object) -> Autoencoder:
    return load_for_release(name)
