"""Gradients of all examples at once by `torch.func.vmap`: for models whose operations vmap knows.

vmap runs the loss of a single example, so no example can see another one; it holds the gradients of a chunk of examples
in memory. A model whose control flow depends on its data (many build their attention mask so) is refused by vmap.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tacit.training.gradients.examples import Batch, Loss, PerExample, UnsupportedModelError, trainable
from tacit.training.gradients.named_units import added_up
from tacit.training.memory import is_out_of_memory


class Vmap:
    name = "vmap"

    def __init__(self, model: nn.Module, loss: Loss, *, chunk: int = 32) -> None:
        self.model, self.loss, self.chunk = model, loss, chunk
        self.parameters = trainable(model)

    def learn(self, *batches: Batch) -> None:
        """Try it: vmap says what it cannot do when it is run."""
        for batch in batches:
            self.run(batch)

    def run(self, batch: Batch) -> PerExample:
        fixed = {name: p.detach() for name, p in self.model.named_parameters() if name not in self.parameters}
        buffers = {name: b.detach() for name, b in self.model.named_buffers()}
        values = {name: p.detach() for name, p in self.parameters.items()}

        def loss_of_example(parameters: dict[str, Tensor], example: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
            alone = {name: tensor[None] for name, tensor in example.items()}
            loss = _Called(self.model, {**parameters, **fixed, **buffers})
            result = self.loss(loss, alone).sum()
            return result, result.detach()

        per_example = torch.func.vmap(
            torch.func.grad(loss_of_example, has_aux=True),
            in_dims=(None, 0),
            randomness="different",
            chunk_size=self.chunk,
        )
        try:
            gradients, losses = per_example(values, dict(batch))
        except (RuntimeError, ValueError, NotImplementedError) as error:
            if is_out_of_memory(error):
                raise
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise UnsupportedModelError(
                "engine-cannot-run-model", "vmap cannot run this model: {reason}", reason=first
            ) from error
        return PerExample.of_gradients(*added_up(batch, losses, gradients))


class _Called(nn.Module):
    """The model with these parameters, for a loss that calls it like any model."""

    def __init__(self, model: nn.Module, values: dict[str, Tensor]) -> None:
        super().__init__()
        self.__dict__["_wrapped"] = (model, values)

    def forward(self, *args: object, **kwargs: object) -> object:
        model, values = self.__dict__["_wrapped"]
        return torch.func.functional_call(model, values, args, kwargs, tie_weights=True)

    def __getattr__(self, name: str) -> Any:
        if name in ("_parameters", "_buffers", "_modules"):
            return super().__getattr__(name)
        return getattr(self.__dict__["_wrapped"][0], name)
