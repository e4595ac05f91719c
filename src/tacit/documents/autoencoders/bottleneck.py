"""A BART with a linear bottleneck after its encoder: what the thesis compared the pruning of neurons with.

    z = down(encode(x)), (positions, k) numbers, are released;   the decoder attends to up(z)

Igamberdiev 2023, section 6.3.4, "a bottleneck layer and its inverse": down begins as k orthonormal directions, drawn at
random, and up as their transpose, so that the values of z are as large as those of the encoder; both are then trained
with the whole model (`tacit.documents.pretraining.prune`). The released numbers are clamped like those of any BART, so
the guarantee is that of DP-BART with a latent of k columns: down reads one document, and up sees noisy numbers only.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import torch

from tacit.documents.autoencoders.bart import BartAutoencoder, load_bart, load_tokenizer
from tacit.documents.autoencoders.base import Record
from tacit.documents.autoencoders.necked import NECK_FILE, NeckedAutoencoder
from tacit.documents.autoencoders.weights import load_tensors
from tacit.errors import BadParameterError
from tacit.noise.source import public_generator

if TYPE_CHECKING:
    from torch import Tensor


class LinearNeck(torch.nn.Module):
    """The layer and its inverse, both without constants: a latent of zeros says nothing."""

    def __init__(self, model_width: int, width: int) -> None:
        super().__init__()
        self.down = torch.nn.Linear(model_width, width, bias=False)
        self.up = torch.nn.Linear(width, model_width, bias=False)

    @classmethod
    def drawn(cls, model_width: int, width: int, seed: int) -> LinearNeck:
        """Orthonormal directions, a function of the seed; the inverse is their transpose."""
        if not 1 <= width < model_width:
            raise BadParameterError(
                "impossible-width",
                "a bottleneck of {width} does not fit a model {model_width} wide: choose fewer {option.stages} or a "
                "smaller {option.quantile}",
                width=width,
                model_width=model_width,
            )
        directions, _ = np.linalg.qr(public_generator(seed).standard_normal((model_width, width)))
        drawn = cls(model_width, width)
        with torch.no_grad():
            drawn.down.weight.copy_(torch.from_numpy(directions.T))
            drawn.up.weight.copy_(torch.from_numpy(directions))
        return drawn


class BottleneckAutoencoder(NeckedAutoencoder):
    """A BART whose latent has k numbers in each position."""

    kind: ClassVar[str] = "bottleneck"
    mechanisms: ClassVar[tuple[str, ...]] = ("dp-bart",)
    neck: LinearNeck

    @property
    def full_width(self) -> int:
        """Width of the encoder, of which the bottleneck leaves less."""
        return int(self.model.config.d_model)

    def latents(self, ids: Tensor) -> Tensor:
        latents: Tensor = self.neck.down(super().latents(ids))
        return latents

    def memory(self, latents: Tensor) -> Tensor:
        memory: Tensor = self.neck.up(latents)
        return memory

    @classmethod
    def load_weights(cls, folder: str, record: Record) -> Self:
        tensors = load_tensors(Path(folder) / NECK_FILE)
        width, model_width = tensors["down.weight"].shape
        neck = LinearNeck(model_width, width)
        neck.load_state_dict({name: value.float() for name, value in tensors.items()})
        return cls(load_bart(folder), load_tokenizer(folder), record, neck)

    @classmethod
    def of(cls, bart: BartAutoencoder, record: Record, width: int, seed: int) -> Self:
        """A BART with a new bottleneck, to be trained on public text."""
        return cls(bart.model, bart.tokenizer, record, LinearNeck.drawn(bart.width, width, seed))
