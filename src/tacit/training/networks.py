"""LSTM networks whose per-example gradients can be proven: from scratch, or on top of a frozen encoder.

    i, f, g, o = split( W x_t + U h_{t-1} + b )
    c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g),      h_t = sigmoid(o) tanh(c_t)

(Hochreiter & Schmidhuber 1997, with forget gate). torch.nn.LSTM is one opaque operation, in which no engine can tell
the examples of a batch apart. Here W x is one matrix product for all positions and U h one per step, so every use of a
weight is a linear one: the engine `taps` adds up the uses of all steps, cross terms included.

Padding changes nothing: a padded position keeps the state as it was, in both directions, so an example's loss does not
depend on the longest example of its batch.

Two models, which save and load like any model of transformers once this module is imported:

    tacit-bilstm         word pieces, embedding, bidirectional LSTM, head: `BiLSTM` of Senge, Igamberdiev & Habernal
                         (EMNLP 2022; thesis chapter 4), trained from scratch
    tacit-encoder-lstm   a frozen pre-trained encoder, bidirectional LSTM, head: `Tr/No/LSTM` of the same paper

Heads: one or more numbers per text (classification, regression; mean over the positions), a label per piece, and the
first and last piece of an answer.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

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

from tacit.errors import BadParameterError

# The recurrence -----------------------------------------------------------------------------------------------------


class Direction(nn.Module):
    """One direction of one layer."""

    def __init__(self, inputs: int, hidden: int, *, backward: bool) -> None:
        super().__init__()
        self.inputs = nn.Linear(inputs, 4 * hidden)
        self.recurrent = nn.Linear(hidden, 4 * hidden, bias=False)
        self.hidden, self.backward = hidden, backward

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """(B, T, inputs) and (B, T, 1), 0 or 1, to (B, T, hidden)."""
        projected = self.inputs(values)
        size, length = projected.shape[:2]
        state = cell = projected.new_zeros(size, self.hidden)
        states: list[Tensor] = []
        order = range(length - 1, -1, -1) if self.backward else range(length)
        for number, t in enumerate(order):
            gates = projected[:, t]
            if number:  # the first state is 0
                gates = gates + self.recurrent(state)
            i, f, g, o = gates.chunk(4, -1)
            new_cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            new_state = torch.sigmoid(o) * torch.tanh(new_cell)
            present = mask[:, t]
            cell, state = cell + present * (new_cell - cell), state + present * (new_state - state)
            states.append(state)
        return torch.stack(states[::-1] if self.backward else states, 1)


class Recurrent(nn.Module):
    """Bidirectional layers, (B, T, inputs) to (B, T, 2 hidden); dropout before each."""

    def __init__(self, inputs: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        widths = [inputs, *[2 * hidden] * (layers - 1)]
        self.forwards = nn.ModuleList(Direction(width, hidden, backward=False) for width in widths)
        self.backwards = nn.ModuleList(Direction(width, hidden, backward=True) for width in widths)
        self.dropout = nn.Dropout(dropout)

    def forward(self, values: Tensor, attention_mask: Tensor) -> Tensor:
        mask = attention_mask.to(values.dtype)[..., None]
        for left_to_right, right_to_left in zip(self.forwards, self.backwards, strict=True):
            dropped = self.dropout(values)
            values = torch.cat([left_to_right(dropped, mask), right_to_left(dropped, mask)], -1)
        return values


def initialize(module: nn.Module, deviation: float) -> None:
    """Uniform recurrent weights as in nn.LSTM, with a forget gate that starts open (Jozefowicz et al. 2015)."""
    if isinstance(module, Direction):
        limit = module.hidden**-0.5
        for parameter in module.parameters():
            nn.init.uniform_(parameter, -limit, limit)
        with torch.no_grad():
            module.inputs.bias[module.hidden : 2 * module.hidden] = 1.0
    elif isinstance(module, nn.Embedding):
        nn.init.normal_(module.weight, std=deviation)
    elif isinstance(module, Head):
        nn.init.normal_(module.output.weight, std=deviation)
        nn.init.zeros_(module.output.bias)


class Head(nn.Module):
    """Dropout and one linear layer."""

    def __init__(self, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(inputs, outputs)

    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = self.output(self.dropout(values))
        return result


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


class EncoderLstmConfig(PretrainedConfig):
    """`encoder` is the configuration of the frozen encoder, as a dictionary with its model_type."""

    model_type = "tacit-encoder-lstm"

    def __init__(
        self,
        encoder: dict[str, object] | None = None,
        hidden: int = 128,
        layers: int = 1,
        dropout: float = 0.25,
        **more: Any,
    ) -> None:
        self.encoder = encoder or {"model_type": "bert"}
        self.hidden, self.layers, self.dropout = hidden, layers, dropout
        self.hidden_size = 2 * hidden
        super().__init__(**more)

    def encoder_config(self) -> PretrainedConfig:
        kind = AutoConfig.for_model(str(self.encoder["model_type"]))
        return type(kind).from_dict(self.encoder)


class _EncoderLstm(PreTrainedModel):
    config_class = EncoderLstmConfig
    base_model_prefix = "body"
    config: EncoderLstmConfig

    def _init_weights(self, module: nn.Module) -> None:
        initialize(module, 0.02)


class EncoderLstmModel(_EncoderLstm):
    """The encoder stays as it is, without dropout; only what comes after it learns."""

    def __init__(self, config: EncoderLstmConfig) -> None:
        super().__init__(config)
        inner = config.encoder_config()
        self.encoder = AutoModel.from_config(inner, trust_remote_code=False)
        self.recurrent = Recurrent(inner.hidden_size, config.hidden, config.layers, config.dropout)
        self.post_init()  # type: ignore[no-untyped-call]

    def get_input_embeddings(self) -> nn.Module:
        embeddings: nn.Module = self.encoder.get_input_embeddings()
        return embeddings

    def train(self, mode: bool = True) -> EncoderLstmModel:
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
            states = self.encoder(input_ids=input_ids, attention_mask=mask, **more).last_hidden_state
        return BaseModelOutput(last_hidden_state=self.recurrent(states, mask))


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
    body = cast("PreTrainedModel", model.base_model)
    kind = next(
        (pair[1] for name, pair in HEADS.items() if type(model).__name__.endswith(name[len("AutoModel") :])), None
    )
    if kind is None or body is model or not hasattr(body.config, "hidden_size"):
        raise BadParameterError(
            "strategy-does-not-fit",
            "the strategy 'frozen-lstm' is made for encoders that classify, tag or answer: choose lora for this model",
        )
    labels = {name: getattr(model.config, name) for name in ("id2label", "label2id", "problem_type")}
    config = EncoderLstmConfig(
        encoder=body.config.to_dict(),
        hidden=hidden,
        layers=layers,
        pad_token_id=getattr(body.config, "pad_token_id", None),
        **labels,
    )
    made = kind(config)
    # Poolers and the like, which the new body may have and the old one not, are never used.
    encoder = made.get_submodule("body.encoder")
    encoder.load_state_dict(body.state_dict(), strict=False)
    for parameter in encoder.parameters():
        parameter.requires_grad_(False)
    return made


for _config, _body in ((BiLstmConfig, BiLstmModel), (EncoderLstmConfig, EncoderLstmModel)):
    AutoConfig.register(_config.model_type, _config, exist_ok=True)
    AutoModel.register(_config, _body, exist_ok=True)
for _name, _pair in HEADS.items():
    for _class in _pair:
        getattr(transformers, _name).register(_class.config_class, _class, exist_ok=True)
