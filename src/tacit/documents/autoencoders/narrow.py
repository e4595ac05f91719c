"""A BART with a narrow latent: few positions, few dimensions, trained from scratch with clipping and noise.

    read   pieces + k learned queries -> encoder -> last k outputs -> linear map to d dimensions: latent (k, d)
           with an l1 bound: its softmax over all k d numbers, a point of the simplex
    write  noisy latent * sqrt(k d) / C -> linear map back to the model's width -> decoder

DP-BART prunes a model that was trained without noise; a model of our own can be trained for the noise from the start
(named as future work by Igamberdiev 2023). With l2 clipping to C and noise sigma per number, the latent of n = k d
numbers is a Gaussian channel whose capacity is

    n / 2 * log2(1 + C**2 / (n sigma**2))   <   C**2 / (2 ln 2 sigma**2)   bits for one document,

and sigma / C depends on epsilon and delta only. `capacity_bits` computes it: a few times as many numbers as bits are
enough, and more only make the decoder's work harder.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch

from tacit.documents.autoencoders.bart import BartAutoencoder, load_bart, load_tokenizer
from tacit.documents.autoencoders.base import Record
from tacit.documents.autoencoders.necked import NECK_FILE, NeckedAutoencoder
from tacit.documents.autoencoders.weights import load_tensors
from tacit.documents.bounds import AnalyticGaussian, ClipL2

if TYPE_CHECKING:
    from torch import Tensor


def capacity_bits(epsilon: float, delta: float, n: int) -> float:
    """Bits that a latent of n numbers can carry at most: l2 clipping, analytic Gaussian noise."""
    sigma = AnalyticGaussian(delta).scale(ClipL2(1.0), n, epsilon)
    return n / 2 * math.log2(1 + 1 / (n * sigma**2))


class Neck(torch.nn.Module):
    """Queries and the two linear maps."""

    def __init__(self, model_width: int, positions: int, width: int) -> None:
        super().__init__()
        self.queries = torch.nn.Parameter(torch.randn(positions, model_width) * 0.1)
        self.down = torch.nn.Linear(model_width, width)
        self.up = torch.nn.Linear(width, model_width)
        self.places = torch.nn.Parameter(torch.randn(positions, model_width) * 0.1)
        self.norm = torch.nn.LayerNorm(model_width)


class NarrowAutoencoder(NeckedAutoencoder):
    """A BART whose decoder sees a few narrow positions only."""

    kind: ClassVar[str] = "narrow"
    mechanisms: ClassVar[tuple[str, ...]] = ("narrow",)
    neck: Neck

    @property
    def length(self) -> int:
        return int(self.model.config.max_position_embeddings) - self.positions

    @property
    def on_simplex(self) -> bool:
        """Whether the latent is a point of the simplex, which an l1 bound leaves as it is."""
        return (self.record.bound or {}).get("kind") == "l1"

    def latents(self, ids: Tensor) -> Tensor:
        embedded = self.model.get_encoder().embed_tokens(ids)
        queries = self.neck.queries.expand(len(ids), -1, -1)
        read = self.model.get_encoder()(inputs_embeds=torch.cat([embedded, queries], dim=1)).last_hidden_state
        latents: Tensor = self.neck.down(read[:, -self.positions :])
        if not self.on_simplex:
            return latents
        return torch.softmax(latents.flatten(1), dim=1).reshape(latents.shape) * self._C

    @property
    def _C(self) -> float:  # noqa: N802
        return float((self.record.bound or {"C": 1.0})["C"])

    def memory(self, latents: Tensor) -> Tensor:
        scaled = latents * (math.sqrt(self.positions * self.width) / self._C)
        memory: Tensor = self.neck.norm(self.neck.up(scaled) + self.neck.places)
        return memory

    @classmethod
    def load_weights(cls, folder: str, record: Record) -> Self:
        model = load_bart(folder)
        shapes = load_tensors(Path(folder) / NECK_FILE)
        width, model_width = shapes["down.weight"].shape
        neck = Neck(model_width, record.positions, width)
        neck.load_state_dict({name: value.float() for name, value in shapes.items()})
        return cls(model, load_tokenizer(folder), record, neck)

    @classmethod
    def create_narrow(
        cls,
        tokenizer: Any,
        record: Record,
        *,
        length: int,
        latent_width: int,
        width: int,
        layers: int,
        heads: int,
        feed_forward: int,
    ) -> Self:
        """A new model with random weights."""
        bart = BartAutoencoder.create(
            tokenizer,
            record,
            width=width,
            layers=layers,
            heads=heads,
            feed_forward=feed_forward,
            positions=length + record.positions,
        )
        return cls(bart.model, tokenizer, record, Neck(width, record.positions, latent_width))
