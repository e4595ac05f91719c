"""The layers of our own networks: a recurrence whose per-example gradients can be proven, and the head.

    i, f, g, o = split( W x_t + U h_{t-1} + b )
    c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(g),      h_t = sigmoid(o) tanh(c_t)

(Hochreiter & Schmidhuber 1997, with forget gate). torch.nn.LSTM is one opaque operation, in which no engine can tell
the examples of a batch apart. Here W x is one matrix product for all positions and U h one per step, so every use of a
weight is a linear one: the engine `taps` adds up the uses of all steps, cross terms included.

Padding changes nothing: a padded position keeps the state as it was, in both directions, so an example's loss does not
depend on the longest example of its batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
