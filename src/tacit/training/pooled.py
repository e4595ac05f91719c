"""Encoders that stand for a text by the mean of its positions, as sentence encoders were trained to.

The usual head of BERT reads the first position alone. In a sentence encoder such as MiniLM that position says little: a
linear model on it gets .745 of SST-2 right, on the mean .796 (6,000 training phrases, development set). A head that
starts from the better place needs fewer noisy steps.

`tacit-mean-pooled` saves and loads like any model of transformers once this module is imported.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import Tensor
from transformers.modeling_outputs import SequenceClassifierOutput

from tacit.training.networks import AutoConfig, AutoModel, Configuration, Head, Network, initialize


class MeanPooledConfig(Configuration):  # type: ignore[misc]
    model_type = "tacit-mean-pooled"

    def __init__(self, encoder: dict[str, Any] | None = None, dropout: float = 0.1, **rest: Any) -> None:
        self.encoder = dict(encoder or {"model_type": "bert"})
        self.dropout = dropout
        self.hidden_size = int(self.encoder_config().hidden_size)
        super().__init__(**rest)

    def encoder_config(self) -> Any:
        given = dict(self.encoder)
        return AutoConfig.for_model(given.pop("model_type"), **given)


class MeanPooledForSequenceClassification(Network):  # type: ignore[misc]
    config_class = MeanPooledConfig
    base_model_prefix = "body"
    _supports_sdpa = True

    def __init__(self, config: MeanPooledConfig) -> None:
        super().__init__(config)
        self.body = AutoModel.from_config(config.encoder_config())
        if hasattr(self.body, "pooler"):
            self.body.pooler = None
        self.head = Head(config.hidden_size, config.num_labels, config.dropout)
        self.post_init()

    def _init_weights(self, module: torch.nn.Module) -> None:
        initialize(module, 0.02)

    def get_input_embeddings(self) -> Any:
        return self.body.get_input_embeddings()

    def forward(
        self, input_ids: Tensor | None = None, attention_mask: Tensor | None = None, **more: Any
    ) -> SequenceClassifierOutput:
        states = self.body(input_ids=input_ids, attention_mask=attention_mask, **more).last_hidden_state
        mask = torch.ones(states.shape[:2], dtype=torch.long) if attention_mask is None else attention_mask
        weights = mask.to(states)[..., None]
        return SequenceClassifierOutput(logits=self.head((states * weights).sum(1) / weights.sum(1).clamp_min(1.0)))


def mean_pooled(folder: str, options: dict[str, Any]) -> MeanPooledForSequenceClassification:
    """A pre-trained encoder with a new head on the mean of its positions."""
    body = AutoModel.from_pretrained(folder)
    config = MeanPooledConfig(
        encoder=body.config.to_dict(), pad_token_id=getattr(body.config, "pad_token_id", None), **options
    )
    made = MeanPooledForSequenceClassification(config)
    made.body.load_state_dict(body.state_dict(), strict=False)
    return made


AutoConfig.register(MeanPooledConfig.model_type, MeanPooledConfig, exist_ok=True)
_auto: Any = transformers.AutoModelForSequenceClassification
_auto.register(MeanPooledConfig, MeanPooledForSequenceClassification, exist_ok=True)
