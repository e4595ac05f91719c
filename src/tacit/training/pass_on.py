"""Stand-ins for the part of a model that has been computed already (`tacit.training.frozen`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

if TYPE_CHECKING:
    from torch import FloatTensor


class PassOn(nn.Module):
    """Stands where the embeddings were: takes what has been computed already."""

    def forward(self, *given: object, inputs_embeds: Tensor | None = None, **rest: object) -> Tensor:
        states = inputs_embeds if inputs_embeds is not None else next(x for x in given if x is not None)
        assert isinstance(states, Tensor)
        return states


class PassOnStates(nn.Module):
    """Stands where a whole body was: takes the states that it has computed already."""

    def forward(self, inputs_embeds: Tensor, **_: object) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=cast("FloatTensor", inputs_embeds))
