"""A pre-trained encoder that stays as it is, below something new that learns from what it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from tacit.errors import BadParameterError
from tacit.training.recurrent import initialize


class FrozenEncoderConfig(PretrainedConfig):
    """`encoder` is the configuration of the frozen encoder, as a dictionary with its model_type."""

    def __init__(self, encoder: dict[str, object] | None = None, **more: Any) -> None:
        self.encoder = encoder or {"model_type": "bert"}
        super().__init__(**more)

    def encoder_config(self) -> PretrainedConfig:
        """The configuration of the encoder by itself."""
        kind = AutoConfig.for_model(str(self.encoder["model_type"]))
        return type(kind).from_dict(self.encoder)


class OnFrozenEncoder(PreTrainedModel):
    """A model that has a frozen encoder somewhere, with or without a head."""

    config_class = FrozenEncoderConfig
    base_model_prefix = "body"
    config: FrozenEncoderConfig

    def _init_weights(self, module: nn.Module) -> None:
        initialize(module, 0.02)


class FrozenEncoder(OnFrozenEncoder):
    """A body whose encoder stays as it is, without dropout."""

    def __init__(self, config: FrozenEncoderConfig) -> None:
        super().__init__(config)
        self.encoder = AutoModel.from_config(config.encoder_config(), trust_remote_code=False)

    def get_input_embeddings(self) -> nn.Module:
        embeddings: nn.Module = self.encoder.get_input_embeddings()
        return embeddings

    def train(self, mode: bool = True) -> FrozenEncoder:
        super().train(mode)
        self.encoder.eval()
        return self

    @torch.no_grad()
    def read(
        self, input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None, **more: bool
    ) -> tuple[BaseModelOutput, Tensor]:
        """The output of the encoder, and which positions count."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        kinds = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        return self.encoder(input_ids=input_ids, attention_mask=mask, **kinds, **more), mask


def with_frozen_body(
    model: PreTrainedModel,
    heads: Mapping[str, type[PreTrainedModel]],
    config_of: Callable[[PretrainedConfig, dict[str, Any]], FrozenEncoderConfig],
    *,
    strategy: str,
    needs: tuple[str, ...] = ("hidden_size",),
) -> PreTrainedModel:
    """The body of a pre-trained model, frozen, below the one of the heads that is of the kind that the model had.

    heads      the class of each kind of task, by the class of transformers
    config_of  the configuration of the whole, from that of the encoder and the labels
    needs      what must be known of the encoder
    """
    body = cast("PreTrainedModel", model.base_model)
    kind = next((head for name, head in heads.items() if type(model).__name__.endswith(name[len("AutoModel") :])), None)
    known = all(hasattr(body.config, name) for name in needs)
    if kind is None or body is model or not known:
        raise BadParameterError(
            "strategy-does-not-fit",
            "the strategy '{strategy}' is made for encoders that classify, tag or answer: choose lora for this model",
            strategy=strategy,
        )
    labels = {name: getattr(model.config, name) for name in ("id2label", "label2id", "problem_type")}
    made = kind(config_of(body.config, labels))
    encoder = made.get_submodule("body.encoder")
    # Poolers and the like, which the new body may have and the old one not, are never used.
    encoder.load_state_dict(body.state_dict(), strict=False)
    for parameter in encoder.parameters():
        parameter.requires_grad_(False)
    return made
