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
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from tacit.errors import BadParameterError
from tacit.training.networks import ForAnswers, ForSequences, ForTokens, initialize


class EncoderLayersConfig(PretrainedConfig):
    """`encoder` is the configuration of the frozen encoder, as a dictionary with its model_type."""

    model_type = "tacit-encoder-layers"

    def __init__(self, encoder: dict[str, object] | None = None, dropout: float = 0.0, **more: Any) -> None:
        self.encoder = encoder or {"model_type": "bert"}
        self.dropout = dropout
        inner = self.encoder_config()
        self.hidden_size = int(inner.hidden_size) * (int(inner.num_hidden_layers) + 1)
        super().__init__(**{"pad_token_id": getattr(inner, "pad_token_id", None), **more})

    def encoder_config(self) -> PretrainedConfig:
        kind = AutoConfig.for_model(str(self.encoder["model_type"]))
        return type(kind).from_dict(self.encoder)


class _EncoderLayers(PreTrainedModel):
    config_class = EncoderLayersConfig
    base_model_prefix = "body"
    config: EncoderLayersConfig

    def _init_weights(self, module: nn.Module) -> None:
        initialize(module, 0.02)


class EncoderLayersModel(_EncoderLayers):
    """The encoder stays as it is, without dropout, and gives all of its layers."""

    wholly_frozen: Final = True

    def __init__(self, config: EncoderLayersConfig) -> None:
        super().__init__(config)
        self.encoder = AutoModel.from_config(config.encoder_config(), trust_remote_code=False)
        self.post_init()  # type: ignore[no-untyped-call]

    def get_input_embeddings(self) -> nn.Module:
        embeddings: nn.Module = self.encoder.get_input_embeddings()
        return embeddings

    def train(self, mode: bool = True) -> EncoderLayersModel:
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **_: object,
    ) -> BaseModelOutput:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        more = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        with torch.no_grad():
            layers = self.encoder(
                input_ids=input_ids, attention_mask=mask, output_hidden_states=True, **more
            ).hidden_states
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
    body = cast("PreTrainedModel", model.base_model)
    kind = next((head for name, head in HEADS.items() if type(model).__name__.endswith(name[len("AutoModel") :])), None)
    config = body.config
    known = all(hasattr(config, name) for name in ("hidden_size", "num_hidden_layers"))
    if kind is None or body is model or not known or getattr(config, "is_encoder_decoder", False):
        raise BadParameterError(
            "strategy-does-not-fit",
            "the strategy 'all-layers' is made for encoders that classify, tag or answer: choose lora for this model",
        )
    labels = {name: getattr(model.config, name) for name in ("id2label", "label2id", "problem_type")}
    made = kind(EncoderLayersConfig(encoder=config.to_dict(), **labels))
    encoder = made.get_submodule("body.encoder")
    # Poolers and the like, which the new body may have and the old one not, are never used.
    encoder.load_state_dict(body.state_dict(), strict=False)
    for parameter in encoder.parameters():
        parameter.requires_grad_(False)
    return made


AutoConfig.register(EncoderLayersConfig.model_type, EncoderLayersConfig, exist_ok=True)
AutoModel.register(EncoderLayersConfig, EncoderLayersModel, exist_ok=True)
for _name, _class in HEADS.items():
    getattr(transformers, _name).register(EncoderLayersConfig, _class, exist_ok=True)
