"""Layers that are computed a second time on the way back, instead of being kept (gradient checkpointing).

The first pass through such a layer keeps nothing, so its taps hear nothing. On the way back the layer is computed
again, with the same dropout, and goes back at once: taps are set while it is computed again, wherever that happens (for
graphics cards, in a thread of the way back). A weight that was used there without a tap leaves its ordinary gradient
behind, as everywhere, and the engine refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

FLAG, FUNCTION = "gradient_checkpointing", "_gradient_checkpointing_func"


def recomputable(model: nn.Module) -> list[nn.Module]:
    """The parts of a model of transformers that can be computed again."""
    return [module for module in model.modules() if FLAG in module.__dict__ or hasattr(type(module), FLAG)]


@contextmanager
def recomputed(model: nn.Module, taps: Callable[[], AbstractContextManager[object]], *, active: bool) -> Iterator[None]:
    """While this is active, layers in training mode are computed again on the way back, under `taps`."""

    def again(layer: Callable[..., Any], *args: Any) -> Any:
        def call(*given: Any) -> Any:
            if not torch.is_grad_enabled():
                return layer(*given)
            with taps():
                return layer(*given)

        return checkpoint(call, *_with_a_way_back(args), use_reentrant=True)

    changed = [(module, dict(module.__dict__)) for module in recomputable(model)] if active else []
    for module, _ in changed:
        module.__dict__.update({FLAG: True, FUNCTION: again})
    try:
        yield
    finally:
        for module, before in changed:
            for name in (FLAG, FUNCTION):
                if name in before:
                    module.__dict__[name] = before[name]
                else:
                    module.__dict__.pop(name)


def _with_a_way_back(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, one of which needs a gradient: without any, a layer would not be visited on the way back. Below
    the lowest trained weight nothing needs one."""
    tensors = [i for i, item in enumerate(args) if isinstance(item, Tensor) and item.is_floating_point()]
    if not tensors or any(args[i].requires_grad for i in tensors):
        return args
    first = tensors[0]
    return (*args[:first], args[first].detach().requires_grad_(), *args[first + 1 :])
