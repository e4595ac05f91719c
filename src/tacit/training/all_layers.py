"""A head on all layers of a frozen encoder: little to train, and hardly anything that the encoder knows is lost.

The last layer of a sentence encoder is made for the meaning of a text; what part of speech a word has, or whether it
belongs to a name, stands in the layers below (Tenney, Das & Pavlick 2019). So the head reads all of them:

    x = [ n(h_0), n(h_1), ..., n(h_L) ] / sqrt(L + 1),        n(h) = (h - mean h) / deviation of h

where h_0 are the embeddings. Without n, which has no weights, the layers with the largest numbers would use up the
clipping bound. A linear head on x is a convex problem with few weights, which is what noise disturbs least: the noise
of a step grows with the square root of the number of weights. Nothing below the head changes, so its output is
computed once for every record (`tacit.training.frozen`).

    tacit-encoder-layers    a frozen encoder, all of its layers side by side, head
"""

from __future__ import annotations

import math
from typing import Any, Final, cast

import torch
import transformers
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from tacit.training.frozen_encoder import FrozenEncoder, FrozenEncoderConfig, OnFrozenEncoder, with_frozen_body
from tacit.training.networks import ForAnswers, ForSequences, ForTokens


class EncoderLayersConfig(FrozenEncoderConfig):
    """The encoder, and the dropout before the head."""

    model_type = "tacit-encoder-layers"

    def __init__(self, encoder: dict[str, object] | None = None, dropout: float = 0.0, **more: Any) -> None:
        self.dropout = dropout
        super().__init__(encoder, **more)
        inner = self.encoder_config()
        self.hidden_size = int(inner.hidden_size) * (int(inner.num_hidden_layers) + 1)
        if "pad_token_id" not in more:
            self.pad_token_id = getattr(inner, "pad_token_id", None)


class _EncoderLayers(OnFrozenEncoder):
    config_class = EncoderLayersConfig
    config: EncoderLayersConfig


class EncoderLayersModel(_EncoderLayers, FrozenEncoder):
    """All layers of the encoder."""

    wholly_frozen: Final = True

    def __init__(self, config: EncoderLayersConfig) -> None:
        super().__init__(config)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **_: object,
    ) -> BaseModelOutput:
        layers = self.read(input_ids, attention_mask, token_type_ids, output_hidden_states=True)[0].hidden_states
        assert layers is not None
        same_size = [nn.functional.layer_norm(layer, layer.shape[-1:]) for layer in layers]
        states = torch.cat(same_size, -1) / math.sqrt(len(same_size))
        return BaseModelOutput(last_hidden_state=cast("torch.FloatTensor", states))


class EncoderLayersForSequenceClassification(ForSequences, _EncoderLayers):
    body_class = EncoderLayersModel


class EncoderLayersForTokenClassification(ForTokens, _EncoderLayers):
    body_class = EncoderLayersModel


class EncoderLayersForQuestionAnswering(ForAnswers, _EncoderLayers):
    body_class = EncoderLayersModel


HEADS: Final[dict[str, type[PreTrainedModel]]] = {
    "AutoModelForSequenceClassification": EncoderLayersForSequenceClassification,
    "AutoModelForTokenClassification": EncoderLayersForTokenClassification,
    "AutoModelForQuestionAnswering": EncoderLayersForQuestionAnswering,
}
"""The class of each kind of task."""


def on_all_layers(model: PreTrainedModel) -> PreTrainedModel:
    """The body of a pre-trained model, frozen, with a new head of the kind that the model had on all of its layers."""
    return with_frozen_body(
        model,
        {} if getattr(model.config, "is_encoder_decoder", False) else HEADS,
        lambda encoder, labels: EncoderLayersConfig(encoder=encoder.to_dict(), **labels),
        strategy="all-layers",
        needs=("hidden_size", "num_hidden_layers"),
    )


AutoConfig.register(EncoderLayersConfig.model_type, EncoderLayersConfig, exist_ok=True)
AutoModel.register(EncoderLayersConfig, EncoderLayersModel, exist_ok=True)
for _name, _class in HEADS.items():
    getattr(transformers, _name).register(EncoderLayersConfig, _class, exist_ok=True)
