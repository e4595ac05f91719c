"""Tensors made from one weight alone, such as `1 + w` or `-exp(w)`: what a model multiplies in place of the weight.

A derived tensor is computed as usual, so that any use without known algebra leaves an ordinary gradient on the weight,
and the engine refuses. A use with known algebra takes it detached, and what its tap receives is led back to the weight
here: each operation below knows what it makes of a gradient with one more axis in front, the examples.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tacit.training.gradients.taps.passes import TapPass

Back = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Derived:
    """A tensor made from the weight `name`. `back` takes gradients of it (B, *shape) to gradients of the weight;
    `transposed` if it is the weight itself with its two axes exchanged."""

    name: str
    value: Tensor
    back: Back
    transposed: bool = False


def source_of(pass_: TapPass, tensor: object) -> Derived | None:
    """A weight, or what was made of one, as a derived tensor; nothing for any other value."""
    name = pass_.name_of(tensor)
    if name is not None and isinstance(tensor, Tensor):
        return Derived(name, tensor, lambda gradient: gradient)
    known = pass_.derived.get(id(tensor))
    return known if isinstance(known, Derived) else None


def make_derived(pass_: TapPass, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of an operation on a derived tensor and plain numbers, remembered as derived; None if it is none."""
    source = next((known for item in args if (known := source_of(pass_, item)) is not None), None)
    others = [item for item in (*args, *kwargs.values()) if isinstance(item, Tensor)]
    if source is None or len(others) != 1:
        return None
    result = func(*args, **kwargs)
    if not isinstance(result, Tensor) or result is source.value:
        return result
    step = _way_back(func, source, result, args)
    if step is not None:
        earlier, transposed = source.back, func in EXCHANGES and source.value.dim() == 2 and not source.transposed
        plain = pass_.name_of(source.value) is not None
        made = Derived(source.name, result, lambda gradient: earlier(step(gradient)), transposed and plain)
        pass_.derived[id(result)] = made
    return result


def _way_back(func: Callable[..., Any], source: Derived, result: Tensor, args: tuple[Any, ...]) -> Back | None:
    shape, kind = source.value.shape, source.value.dtype
    if func in SHIFTS:
        return lambda gradient: gradient.to(kind)
    if func in OPPOSITES:
        return torch.neg
    if func in EXPONENTIALS:
        factor = result.detach()
        return lambda gradient: gradient * factor
    if func in SCALES:
        number = next(item for item in args if not isinstance(item, Tensor))
        return lambda gradient: gradient * number
    if func in EXCHANGES and len(shape) == 2:
        return lambda gradient: gradient.transpose(1, 2)
    # Axes of length 1 come and go; all numbers stay, in their order.
    if func in VIEWS and result.numel() == math.prod(shape) and _in_order(result, source.value):
        return lambda gradient: gradient.reshape(gradient.shape[0], *shape)
    return None


def _in_order(result: Tensor, source: Tensor) -> bool:
    """Whether a view of a contiguous tensor has its numbers in the same order."""
    return source.is_contiguous() and result.is_contiguous() and result.data_ptr() == source.data_ptr()


def multiplied(pass_: TapPass, left: object, right: object) -> Tensor | None:
    """A product of a derived tensor and values of the examples."""
    sides = _broadcast(pass_, left, right)
    return None if sides is None else sides[0] * sides[1]


def added(pass_: TapPass, left: object, right: object) -> Tensor | None:
    """A sum of a derived tensor and values of the examples."""
    sides = _broadcast(pass_, left, right)
    return None if sides is None else sides[0] + sides[1]


def _broadcast(pass_: TapPass, left: object, right: object) -> tuple[Tensor, Tensor] | None:
    """The derived tensor with a copy per example, whose gradient is that of the example alone; and the other side.

    The examples have to be the first axis of the other side: shapes that say otherwise do not fit, and what fits by
    chance is off from one example at a time, which is compared before a run.
    """
    first, second = source_of(pass_, left), source_of(pass_, right)
    source, value = (first, right) if first is not None else (second, left)
    if source is None or (first is not None and second is not None) or not isinstance(value, Tensor):
        return None
    shape, missing = tuple(source.value.shape), value.dim() - source.value.dim()
    if missing < 0 or (missing == 0 and shape[0] != 1):
        return None
    alone = source.value.detach().reshape(*([1] * missing), *shape)

    def listen(gradient: Tensor) -> None:
        pass_.records[source.name].add(source.back(gradient.reshape(pass_.size, *shape).float()))

    return pass_.tap(alone, source.name, listen), value


SHIFTS = {
    torch.Tensor.float, torch.Tensor.to, torch.Tensor.type_as, torch.add, torch.Tensor.add, torch.Tensor.__add__,
    torch.Tensor.__radd__,
}  # fmt: skip
OPPOSITES = {torch.neg, torch.Tensor.neg, torch.Tensor.__neg__}
EXPONENTIALS = {torch.exp, torch.Tensor.exp}
SCALES = {torch.mul, torch.Tensor.mul, torch.Tensor.__mul__, torch.Tensor.__rmul__}
# What a function mode sees of the properties `.T` and `.mT`.
_PROPERTIES: tuple[Any, ...] = (torch.Tensor.T, torch.Tensor.mT)
EXCHANGES = {torch.Tensor.t, torch.t, *(each.__get__ for each in _PROPERTIES)}
VIEWS = {
    torch.Tensor.__getitem__, torch.Tensor.unsqueeze, torch.unsqueeze, torch.Tensor.squeeze, torch.squeeze,
    torch.Tensor.view, torch.Tensor.reshape,
}  # fmt: skip
DERIVING = SHIFTS | OPPOSITES | EXPONENTIALS | SCALES | EXCHANGES | VIEWS
