"""A BART with further layers between encoder and decoder, which are trained and saved with it: the neck."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from tacit.documents.autoencoders.bart import BartAutoencoder
from tacit.documents.autoencoders.base import Record
from tacit.documents.autoencoders.weights import save_tensors

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel

NECK_FILE = "neck.safetensors"


class NeckedAutoencoder(BartAutoencoder):
    """A BART whose latent is as wide as the narrowest place of its neck, the linear map `down`."""

    def __init__(self, model: PreTrainedModel, tokenizer: Any, record: Record, neck: nn.Module) -> None:
        super().__init__(model, tokenizer, record)
        self.neck = neck
        self._module = torch.nn.ModuleDict({"model": model, "neck": neck})

    @property
    def width(self) -> int:
        down = self.neck.down
        assert isinstance(down, torch.nn.Linear)
        return int(down.out_features)

    @property
    def module(self) -> nn.Module:
        return self._module

    def save_weights(self, folder: Path) -> None:
        super().save_weights(folder)
        save_tensors(self.neck, folder / NECK_FILE)
