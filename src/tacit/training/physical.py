"""How many records are worked on at a time, by what memory there is: from public numbers and made-up records alone.

What a pass keeps for the way back grows with the records and their length. It is counted on two made-up batches: the
difference is what the additional positions take. The estimate leaves room for what is not counted (the products that
norms need, the library's own memory), and where it is too large after all, the number is halved and the step goes on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from tacit.training.gradients import Batch, Loss
from tacit.training.gradients.examples import size_of

MOST: Final = 512
MOST_ON_PROCESSOR: Final = 32
"""More records at a time do not make a processor faster."""
ROOM: Final = 3.0
"""So many times what a pass keeps is counted on."""


def fitting(model: nn.Module, loss: Loss, probes: Sequence[Batch], length: int, batch: int) -> int:
    """The number of records of the longest length that should fit into the memory that is free, a power of two: at most
    as many as a step is planned to have."""
    device = next(model.parameters()).device
    most = min(MOST_ON_PROCESSOR if device.type == "cpu" else MOST, max(1, batch))
    return largest_power(min(most, free_memory(device) / (ROOM * bytes_per_position(model, loss, probes) * length)))


def largest_power(number: float) -> int:
    """The largest power of two that is not above a number; at least 1.

    >>> largest_power(100), largest_power(0.5)
    (64, 1)
    """
    return int(2 ** (int(max(1.0, number)).bit_length() - 1))


def bytes_per_position(model: nn.Module, loss: Loss, probes: Sequence[Batch]) -> float:
    """The bytes that a pass keeps of one position of one record, by two made-up batches."""
    (few, kept), (many, more) = sorted((_positions(batch), _kept_bytes(model, loss, batch)) for batch in probes[:2])
    if many > few and more > kept:
        return (more - kept) / (many - few)
    return max(1.0, more / many)


def _positions(batch: Batch) -> int:
    longest = max((values.shape[1] for values in batch.values() if values.dim() > 1), default=1)
    return size_of(batch) * int(longest)


def _kept_bytes(model: nn.Module, loss: Loss, batch: Batch) -> int:
    """The bytes that a pass keeps for the way back, each once; the weights are there anyway."""
    own = {parameter.data_ptr() for parameter in model.parameters()}
    seen: dict[int, int] = {}

    def keep(value: Tensor) -> Tensor:
        if value.data_ptr() not in own:
            seen[value.data_ptr()] = value.numel() * value.element_size()
        return value

    with saved_tensors_hooks(keep, lambda value: value):
        losses = loss(model, batch)
    return sum(seen.values()) + losses.numel() * losses.element_size()


def free_memory(device: torch.device) -> float:
    """The bytes that are free on a device."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return float(torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory())
    return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
