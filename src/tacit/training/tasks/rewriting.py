"""A rewriting model (BART) that learns to repeat private texts through its bounded latent.

As DP-BART uses it: the encoder reads a text of constant length, its output is clamped to C with the kept columns only,
and the decoder attends to all positions of that and to nothing else. The loss of a text is that of saying it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from tacit.errors import NoGuaranteeError
from tacit.training.gradients import Batch
from tacit.training.tasks.base import IGNORED, Encoded, Row, Task, cross_entropy_per_token

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass
class Rewriting(Task):
    """filling: the id that fills up a text; encoder_mask: whether the encoder ignores it; clip, kept: the bound of the
    latent, if the model has one. The tokenizer gives the ids of a text, all of one length."""

    filling: int = 0
    encoder_mask: bool = False
    clip: float | None = None
    kept: tuple[int, ...] | None = None

    name: ClassVar[str] = "rewrite"
    help: ClassVar[str] = "a rewriting model: say a text again"
    roles: ClassVar[tuple[str, ...]] = ("text",)
    model_class: ClassVar[str] = "AutoModelForSeq2SeqLM"
    fixed_inputs: ClassVar[bool] = False

    def settings(self) -> dict[str, object]:
        kept = None if self.kept is None else list(self.kept)
        return {**super().settings(), "clip": self.clip, "kept": kept, "encoder_mask": self.encoder_mask}

    def encode(self, row: Row, tokenizer: PreTrainedTokenizerBase, *, train: bool) -> Encoded:
        return {"input_ids": [int(piece) for piece in tokenizer(row["text"])]}

    def latents(self, model: PreTrainedModel, ids: Tensor) -> Tensor:
        mask = (ids != self.filling).long() if self.encoder_mask else torch.ones_like(ids)
        latents: Tensor = model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
        if self.clip is not None:
            latents = latents.clamp(-self.clip, self.clip)
        if self.kept is not None:
            released = latents.new_zeros(latents.shape[-1])
            released[list(self.kept)] = 1.0
            latents = latents * released
        return latents

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        ids = batch["input_ids"]
        network = cast("PreTrainedModel", model)
        latents = self.latents(network, ids)
        previous = ids.roll(1, dims=1)
        previous[:, 0] = int(network.config.decoder_start_token_id)
        logits = model(
            encoder_outputs=(latents,),
            attention_mask=torch.ones_like(ids),
            decoder_input_ids=previous,
            use_cache=False,
        ).logits
        return cross_entropy_per_token(logits, ids.masked_fill(ids == self.filling, IGNORED))

    def predict(
        self, model: nn.Module, batch: Batch, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Row]
    ) -> list[str]:
        raise NoGuaranteeError(
            "rewriter-without-noise",
            "a rewriting model is used with noise: rewrite with the mechanism dp-bart, whose model is this folder",
        )

    def probe(self, generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        ids = [int(piece) for piece in generator.integers(0, len(tokenizer), self.length)]
        used = int(generator.integers(2, self.length + 1))
        return {"input_ids": [*ids[:used], *[self.filling] * (self.length - used)]}
