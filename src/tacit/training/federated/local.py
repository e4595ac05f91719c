"""The training on one user's device: some SGD on their own rows, from the current weights (McMahan et al. 2017).

The update is the difference between the weights after and before. It is a function of the weights, of this user's rows
and of randomness of its own (order, dropout), which comes from the key, the round and the user: whether somebody else
takes part changes nothing about it. That is why clipping whole updates bounds what one user can do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tacit.devices import seed_torch
from tacit.errors import BadParameterError
from tacit.noise.source import Source
from tacit.training.gradients import Batch, Loss


@dataclass(frozen=True)
class LocalTraining:
    """epochs over the user's rows, in batches of `batch`, at the learning rate `rate`. At most `rows` rows of a user
    count in a round, drawn anew each time: a user with thousands of rows takes no longer than others."""

    epochs: int = 1
    batch: int = 16
    rate: float = 0.1
    rows: int = 128

    def __post_init__(self) -> None:
        for name, value in (("epochs", self.epochs), ("batch", self.batch), ("rows", self.rows)):
            if value < 1:
                raise BadParameterError(
                    "impossible-count",
                    "local training needs at least 1 of '{name}', not {value}",
                    name=name,
                    value=value,
                )
        if not self.rate > 0:
            raise BadParameterError(
                "impossible-learning-rate", "the local learning rate must be positive, not {rate}", rate=self.rate
            )

    @property
    def label(self) -> str:
        return f"SGD at {self.rate:g}, {self.epochs} x at most {self.rows:,} rows, {self.batch} at a time"


def local_update(
    model: nn.Module,
    parameters: Mapping[str, nn.Parameter],
    loss: Loss,
    collate: Callable[[Sequence[int]], Batch],
    rows: Sequence[int],
    local: LocalTraining,
    source: Source,
) -> tuple[dict[str, Tensor], float]:
    """The update of one user and the mean loss of the first pass; the weights are as before when this returns."""
    generator = source.generator
    seed_torch(int(generator.integers(2**62)))
    start = {name: parameter.detach().clone() for name, parameter in parameters.items()}
    # Whatever a model keeps besides its weights (running means, counters) must not carry anything from user to user.
    kept = {name: buffer.detach().clone() for name, buffer in model.named_buffers()}
    chosen = [rows[i] for i in generator.permutation(len(rows))[: local.rows]]
    first_losses: list[float] = []
    weights = list(parameters.values())
    for epoch in range(local.epochs):
        if epoch:
            chosen = [chosen[i] for i in generator.permutation(len(chosen))]
        for begin in range(0, len(chosen), local.batch):
            losses = loss(model, collate(chosen[begin : begin + local.batch]))
            if epoch == 0:
                first_losses += losses.detach().tolist()
            gradients = torch.autograd.grad(losses.mean(), weights, allow_unused=True)
            with torch.no_grad():
                for weight, gradient in zip(weights, gradients, strict=True):
                    if gradient is not None:
                        weight.sub_(gradient, alpha=local.rate)
    with torch.no_grad():
        update = {name: parameter.detach() - start[name] for name, parameter in parameters.items()}
        for name, parameter in parameters.items():
            parameter.copy_(start[name])
        for name, buffer in model.named_buffers():
            buffer.copy_(kept[name])
    return update, sum(first_losses) / len(first_losses)
