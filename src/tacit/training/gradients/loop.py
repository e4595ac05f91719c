"""One example at a time, with all rows of its unit: slow, needs nothing but autograd, and is what every other engine is
compared with."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tacit.training.gradients.examples import Batch, Loss, PerExample, part_of, trainable
from tacit.training.gradients.named_units import UNITS, count_of


class Loop:
    name = "loop"

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        self.model, self.loss = model, loss
        self.parameters = trainable(model)

    def learn(self, *batches: Batch) -> None:
        """Nothing to learn: one example cannot be mixed up with another."""

    def run(self, batch: Batch) -> PerExample:
        names, parameters = list(self.parameters), list(self.parameters.values())
        losses: list[Tensor] = []
        rows: list[tuple[Tensor | None, ...]] = []
        for i in range(count_of(batch)):
            loss = self.loss(self.model, _alone(batch, i)).sum()
            rows.append(torch.autograd.grad(loss, parameters, allow_unused=True))
            losses.append(loss.detach())
        gradients = {}
        for k, name in enumerate(names):
            column = [row[k] for row in rows]
            if any(g is not None for g in column):
                gradients[name] = torch.stack([torch.zeros_like(parameters[k]) if g is None else g for g in column])
        return PerExample.of_gradients(torch.stack(losses), gradients)


def _alone(batch: Batch, number: int) -> Batch:
    """The rows of one example."""
    if UNITS not in batch:
        return part_of(batch, slice(number, number + 1))
    own = batch[UNITS] == number
    return {name: values[own] for name, values in batch.items() if name != UNITS}
