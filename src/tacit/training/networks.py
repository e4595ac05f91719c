"""LSTM networks whose per-example gradients can be proven: from scratch, or on top of a frozen encoder.

Two models, which save and load like any model of transformers once this module is imported:

    tacit-bilstm         word pieces, embedding, bidirectional LSTM, head: `BiLSTM` of Senge, Igamberdiev & Habernal
                         (EMNLP 2022; thesis chapter 4), trained from scratch
    tacit-encoder-lstm   a frozen pre-trained encoder, bidirectional LSTM, head: `Tr/No/LSTM` of the same paper

Their layers are those of `tacit.training.recurrent`. Heads: one or more numbers per text (classification, regression;
mean over the positions), a label per piece, and the first and last piece of an answer.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import transformers
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import (
    BaseModelOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)

from tacit.training.frozen_encoder import FrozenEncoder, FrozenEncoderConfig, OnFrozenEncoder, with_frozen_body
from tacit.training.recurrent import Head, Recurrent, initialize

# From scratch -------------------------------------------------------------------------------------------------------


class BiLstmConfig(PretrainedConfig):
    """Shape of a BiLSTM: `embedding` numbers per word piece, `hidden` per direction, `layers`."""

    model_type = "tacit-bilstm"

    def __init__(
        self,
        vocab_size: int = 1000,
        embedding: int = 100,
        hidden: int = 128,
        layers: int = 1,
        dropout: float = 0.25,
        pad_token_id: int | None = 0,
        **more: Any,
    ) -> None:
        self.vocab_size, self.embedding, self.hidden, self.layers = vocab_size, embedding, hidden, layers
        self.dropout = dropout
        # What other models call it.
        self.hidden_size, self.num_hidden_layers = 2 * hidden, layers
        super().__init__(**{"pad_token_id": pad_token_id, **more})


class _BiLstm(PreTrainedModel):
    config_class = BiLstmConfig
    base_model_prefix = "body"
    config: BiLstmConfig

    def _init_weights(self, module: nn.Module) -> None:
        initialize(module, 0.1)


class BiLstmModel(_BiLstm):
    """Embedding and recurrence, without a head."""

    def __init__(self, config: BiLstmConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.embedding)
        self.recurrent = Recurrent(config.embedding, config.hidden, config.layers, config.dropout)
        self.post_init()  # type: ignore[no-untyped-call]

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        assert isinstance(value, nn.Embedding)
        self.embeddings = value

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: object) -> BaseModelOutput:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        return BaseModelOutput(last_hidden_state=self.recurrent(self.embeddings(input_ids), mask))


# On a frozen encoder ------------------------------------------------------------------------------------------------


class EncoderLstmConfig(FrozenEncoderConfig):
    """The shape of what learns: `hidden` numbers per direction, `layers`."""

    model_type = "tacit-encoder-lstm"

    def __init__(
        self,
        encoder: dict[str, object] | None = None,
        hidden: int = 128,
        layers: int = 1,
        dropout: float = 0.25,
        **more: Any,
    ) -> None:
        self.hidden, self.layers, self.dropout = hidden, layers, dropout
        self.hidden_size = 2 * hidden
        super().__init__(encoder, **more)


class _EncoderLstm(OnFrozenEncoder):
    config_class = EncoderLstmConfig
    config: EncoderLstmConfig


class EncoderLstmModel(_EncoderLstm, FrozenEncoder):
    """Only what comes after the encoder learns."""

    def __init__(self, config: EncoderLstmConfig) -> None:
        super().__init__(config)
        inner = self.encoder.config
        self.recurrent = Recurrent(inner.hidden_size, config.hidden, config.layers, config.dropout)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **_: object,
    ) -> BaseModelOutput:
        read, mask = self.read(input_ids, attention_mask, token_type_ids)
        return BaseModelOutput(last_hidden_state=self.recurrent(read.last_hidden_state, mask))


# Heads --------------------------------------------------------------------------------------------------------------


class WithHead:
    """Body and head; mixed into the bases of bodies."""

    body_class: ClassVar[type[PreTrainedModel]]
    outputs: ClassVar[int | None] = None

    def __init__(self, config: Any) -> None:
        super().__init__(config)  # type: ignore[call-arg]
        self.body = self.body_class(config)
        self.head = Head(config.hidden_size, self.outputs or config.num_labels, config.dropout)
        self.post_init()  # type: ignore[attr-defined]

    def get_input_embeddings(self) -> nn.Module:
        embeddings: nn.Module = self.body.get_input_embeddings()
        return embeddings

    def states(
        self, input_ids: Tensor | None, attention_mask: Tensor | None, more: dict[str, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The states of all positions, and which of them count. Without word pieces, `more` has what a frozen part
        made of them."""
        mask = attention_mask
        if mask is None:
            assert input_ids is not None
            mask = torch.ones_like(input_ids)
        return self.body(input_ids=input_ids, attention_mask=mask, **more).last_hidden_state, mask


class ForSequences(WithHead):
    def forward(
        self, input_ids: Tensor | None = None, attention_mask: Tensor | None = None, **more: Tensor
    ) -> SequenceClassifierOutput:
        states, mask = self.states(input_ids, attention_mask, more)
        weights = mask.to(states.dtype)[..., None]
        mean = (states * weights).sum(1) / weights.sum(1).clamp_min(1.0)
        return SequenceClassifierOutput(logits=self.head(mean))


class ForTokens(WithHead):
    def forward(
        self, input_ids: Tensor | None = None, attention_mask: Tensor | None = None, **more: Tensor
    ) -> TokenClassifierOutput:
        return TokenClassifierOutput(logits=self.head(self.states(input_ids, attention_mask, more)[0]))


class ForAnswers(WithHead):
    outputs = 2

    def forward(
        self, input_ids: Tensor | None = None, attention_mask: Tensor | None = None, **more: Tensor
    ) -> QuestionAnsweringModelOutput:
        start, end = self.head(self.states(input_ids, attention_mask, more)[0]).unbind(-1)
        return QuestionAnsweringModelOutput(start_logits=start, end_logits=end)


class BiLstmForSequenceClassification(ForSequences, _BiLstm):
    body_class = BiLstmModel


class BiLstmForTokenClassification(ForTokens, _BiLstm):
    body_class = BiLstmModel


class BiLstmForQuestionAnswering(ForAnswers, _BiLstm):
    body_class = BiLstmModel


class EncoderLstmForSequenceClassification(ForSequences, _EncoderLstm):
    body_class = EncoderLstmModel


class EncoderLstmForTokenClassification(ForTokens, _EncoderLstm):
    body_class = EncoderLstmModel


class EncoderLstmForQuestionAnswering(ForAnswers, _EncoderLstm):
    body_class = EncoderLstmModel


HEADS: dict[str, tuple[type[PreTrainedModel], type[PreTrainedModel]]] = {
    "AutoModelForSequenceClassification": (BiLstmForSequenceClassification, EncoderLstmForSequenceClassification),
    "AutoModelForTokenClassification": (BiLstmForTokenClassification, EncoderLstmForTokenClassification),
    "AutoModelForQuestionAnswering": (BiLstmForQuestionAnswering, EncoderLstmForQuestionAnswering),
}
"""The class of each kind of task, from scratch and on an encoder."""


def on_frozen_encoder(model: PreTrainedModel, *, hidden: int = 128, layers: int = 1) -> PreTrainedModel:
    """The body of a pre-trained model, frozen, with a new LSTM and the kind of head that the model had."""
    heads = {name: pair[1] for name, pair in HEADS.items()}
    return with_frozen_body(
        model,
        heads,
        lambda encoder, labels: EncoderLstmConfig(
            encoder.to_dict(), hidden, layers, pad_token_id=getattr(encoder, "pad_token_id", None), **labels
        ),
        strategy="frozen-lstm",
    )


for _config, _body in ((BiLstmConfig, BiLstmModel), (EncoderLstmConfig, EncoderLstmModel)):
    AutoConfig.register(_config.model_type, _config, exist_ok=True)
    AutoModel.register(_config, _body, exist_ok=True)
for _name, _pair in HEADS.items():
    for _class in _pair:
        getattr(transformers, _name).register(_class.config_class, _class, exist_ok=True)
