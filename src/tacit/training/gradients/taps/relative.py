"""Tables of relative positions: one bias per head and distance, added to all examples alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import torch
from torch import Tensor, nn

from tacit.training.gradients.examples import (
    UnsupportedModelError,
)
from tacit.training.gradients.taps.passes import TapPass

METHODS = ("compute_bias", "compute_position_bias")


@contextmanager
def relative_biases(model: nn.Module, pass_: TapPass) -> Iterator[None]:
    """The attention of T5 and its kin looks up biases of shape (1, heads, queries, keys) without a batch axis; while
    this is active they are given one, so that each example's share of the gradient can be seen."""
    changed = []
    for module in model.modules():
        table = getattr(module, "relative_attention_bias", None)
        method = next((method for method in METHODS if hasattr(module, method)), None)
        if isinstance(table, nn.Embedding) and method is not None:
            name = pass_.names.get(id(table.weight))
            if name is not None:
                compute = cast("Callable[..., Tensor]", getattr(module, method))
                module.__dict__[method] = _with_batch_axis(pass_, name, table, compute)
                changed.append((module, method))
    try:
        yield
    finally:
        for module, method in changed:
            del module.__dict__[method]


def _with_batch_axis(
    pass_: TapPass, name: str, table: nn.Embedding, compute: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    def compute_bias(*args: object, **kwargs: object) -> Tensor:
        pass_.relative = torch.empty(0)
        try:
            # Some give every example a copy already (MPNet).
            values = compute(*args, **kwargs)[:1]
            ids = pass_.relative
        finally:
            pass_.relative = None
        if ids.numel() == 0 or values.dim() != 4 or values.shape[0] != 1:
            raise UnsupportedModelError(
                "layer-used-otherwise", "'{name}' is a table of relative positions used in an unknown way", name=name
            )
        shape = tuple(table.weight.shape)

        def listen(gradient: Tensor) -> None:  # (B, heads x queries, keys)
            by_position = gradient.reshape(pass_.size, shape[1], -1).transpose(1, 2).float()
            summed = by_position.new_zeros(pass_.size, *shape)
            summed.index_add_(1, ids.flatten(), by_position)
            pass_.records[name].add(summed)

        return pass_.tap(values, name, listen)

    return compute_bias
