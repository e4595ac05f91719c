"""The torch functions with known algebra: each runs with the parameter detached and a tap at its output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from tacit.training.gradients.examples import (
    Outer,
    UnsupportedModelError,
)
from tacit.training.gradients.taps.derived import Derived, added, multiplied, source_of
from tacit.training.gradients.taps.passes import KeptInput, TapPass, is_tap

SINGLE = torch.float32
"""Whatever the model computes in: what is added up over positions is added up in single precision."""


def _linear(pass_: TapPass, value: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor | None:
    return _product(pass_, value, weight, bias, transposed=False)


def _addmm(pass_: TapPass, bias: Tensor, value: Tensor, weight: Tensor, **scales: object) -> Tensor | None:
    if scales or (pass_.name_of(weight) is None and pass_.name_of(bias) is None):
        return None
    return _product(pass_, value, weight, bias, transposed=True)


def _product(pass_: TapPass, value: Tensor, weight: Tensor, bias: Tensor | None, *, transposed: bool) -> Tensor | None:
    """W x + b, with W (out, in), or (in, out) if transposed."""
    weight_name, bias_name = pass_.name_of(weight), pass_.name_of(bias)
    if weight_name is None and bias_name is None:
        return None
    fixed_weight = weight.detach() if weight_name else weight
    fixed_bias = bias.detach() if bias is not None and bias_name else bias
    if transposed:
        assert fixed_bias is not None
        output = torch.addmm(fixed_bias, value, fixed_weight)
    else:
        output = F.linear(value, fixed_weight, fixed_bias)
    # What was multiplied: with autocast, the input in 16 bits.
    kept = KeptInput(value.to(output.dtype), weight_name) if weight_name else None

    def listen(gradient: Tensor) -> None:
        if kept is not None and weight_name is not None:
            inputs = pass_.sides(kept.value, gradient)
            rows, columns = (inputs, gradient) if transposed else (gradient, inputs)
            pass_.records[weight_name].outer.append(Outer(rows, columns))
        if bias_name is not None:
            pass_.records[bias_name].add(gradient.sum(1, dtype=SINGLE))

    return pass_.tap(output, weight_name or str(bias_name), listen)


def _embedding(
    pass_: TapPass,
    ids: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor | None:
    name = pass_.name_of(weight)
    if name is None:
        return None
    if max_norm is not None or scale_grad_by_freq:
        raise UnsupportedModelError(
            "model-mixes-examples",
            "'{name}' rescales its rows by the batch (max_norm or scale_grad_by_freq)",
            name=name,
        )
    output = F.embedding(ids, weight.detach(), padding_idx)
    if pass_.relative is not None:
        pass_.relative = ids
        return output
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]

    def listen(gradient: Tensor) -> None:
        rows = pass_.sides(ids, gradient)[..., 0]
        if padding_idx is not None:
            gradient = gradient.masked_fill((rows == padding_idx)[..., None], 0.0)
        pass_.records[name].outer.append(Outer(rows, gradient))

    return pass_.tap(output, name, listen)


def _layer_norm(
    pass_: TapPass,
    value: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor | None:
    weight_name, bias_name = pass_.name_of(weight), pass_.name_of(bias)
    if weight_name is None and bias_name is None:
        return None
    if len(normalized_shape) != 1:
        return None
    fixed = [None if p is None else p.detach() for p in (weight, bias)]
    output = F.layer_norm(value, normalized_shape, fixed[0], fixed[1], eps)
    kept = KeptInput(value, str(weight_name))

    def listen(gradient: Tensor) -> None:
        if weight_name is not None:
            unscaled = pass_.sides(F.layer_norm(kept.value.to(SINGLE), normalized_shape, eps=eps), gradient)
            pass_.records[weight_name].add(torch.einsum("btd,btd->bd", gradient.to(SINGLE), unscaled))
        if bias_name is not None:
            pass_.records[bias_name].add(gradient.sum(1, dtype=SINGLE))

    return pass_.tap(output, str(weight_name or bias_name), listen)


def _rms_norm(
    pass_: TapPass,
    value: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor | None:
    name = pass_.name_of(weight)
    if name is None or len(normalized_shape) != 1:
        return None
    assert weight is not None
    unscaled = F.rms_norm(value, normalized_shape, eps=eps)
    return _scaled(pass_, name, weight, unscaled)


def _weight_and_value(pass_: TapPass, left: object, right: object) -> tuple[str, Tensor, Tensor] | None:
    """Name and weight of the side that is a parameter, and the other side, if one is a vector of the other's width."""
    weight, value = (left, right) if pass_.name_of(left) is not None else (right, left)
    name = pass_.name_of(weight)
    if name is None or pass_.name_of(value) is not None:
        return None
    if not isinstance(weight, Tensor) or not isinstance(value, Tensor):
        return None
    if weight.dim() != 1 or value.dim() < 2 or value.shape[-1] != weight.shape[0]:
        return None
    return name, weight, value


def _multiply(pass_: TapPass, left: object, right: object) -> Tensor | None:
    sides = _weight_and_value(pass_, left, right)
    return multiplied(pass_, left, right) if sides is None else _scaled(pass_, *sides)


def _scaled(pass_: TapPass, name: str, weight: Tensor, value: Tensor) -> Tensor:
    kept = KeptInput(value, name)

    def listen(gradient: Tensor) -> None:
        sides = pass_.sides(kept.value.to(SINGLE), gradient)
        pass_.records[name].add(torch.einsum("btd,btd->bd", gradient.to(SINGLE), sides))

    return pass_.tap(value * weight.detach(), name, listen)


def _add(pass_: TapPass, left: object, right: object, alpha: float = 1.0) -> Tensor | None:
    sides = _weight_and_value(pass_, left, right)
    if alpha != 1.0:
        return None
    if sides is None:
        return added(pass_, left, right)
    name, weight, value = sides
    return pass_.tap(value + weight.detach(), name, lambda g: pass_.records[name].add(g.sum(1, dtype=SINGLE)))


def _add_in_place(pass_: TapPass, left: object, right: object, alpha: float = 1.0) -> Tensor | None:
    """A sum beside the output of a tap, which must not be changed: `a += b` takes what is returned. A model that does
    not take it computes something else than with one example at a time, and is refused for that."""
    if isinstance(left, Tensor) and isinstance(right, Tensor) and is_tap(left) and alpha == 1.0:
        return left + right
    return None


def _matmul(pass_: TapPass, value: object, weight: object) -> Tensor | None:
    if pass_.name_of(value) is not None:
        return _product_from_left(pass_, value, weight)
    source = source_of(pass_, weight)
    if source is not None and source.transposed and isinstance(value, Tensor) and value.dim() >= 2:
        return _product_with_transposed(pass_, source, value)
    name = pass_.name_of(weight)
    if name is None or not isinstance(value, Tensor) or not isinstance(weight, Tensor):
        return None
    if weight.dim() != 2 or value.dim() < 2:
        return None
    return _product_without_bias(pass_, name, value, weight)


def _product_without_bias(pass_: TapPass, name: str, value: Tensor, weight: Tensor) -> Tensor:
    output = torch.matmul(value, weight.detach())
    kept = KeptInput(value.to(output.dtype), name)

    def listen(gradient: Tensor) -> None:
        inputs = pass_.sides(kept.value, gradient)
        pass_.records[name].outer.append(Outer(inputs, gradient))

    return pass_.tap(output, name, listen)


def _product_with_transposed(pass_: TapPass, source: Derived, value: Tensor) -> Tensor:
    """x W^T."""
    output, name = torch.matmul(value, source.value.detach()), source.name
    kept = KeptInput(value.to(output.dtype), name)

    def listen(gradient: Tensor) -> None:
        pass_.records[name].outer.append(Outer(gradient, pass_.sides(kept.value, gradient)))

    return pass_.tap(output, name, listen)


def _product_from_left(pass_: TapPass, weight: object, value: object) -> Tensor | None:
    """W X with X (B, in, positions)."""
    name = pass_.name_of(weight)
    if name is None or not isinstance(weight, Tensor) or not isinstance(value, Tensor):
        return None
    if weight.dim() != 2 or value.dim() != 3:
        return None
    output = torch.matmul(weight.detach(), value)
    kept = KeptInput(value.to(output.dtype), name)

    def listen(gradient: Tensor) -> None:
        pass_.records[name].outer.append(Outer(gradient.transpose(1, 2), kept.value.transpose(1, 2)))

    return pass_.tap(output, name, listen)


def _conv1d(
    pass_: TapPass,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] | str = 0,
    dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
) -> Tensor | None:
    """A convolution of each channel with a kernel of its own, one step at a time (Mamba); no other kind."""
    source, bias_name = source_of(pass_, weight), pass_.name_of(bias)
    plain = stride in (1, (1,)) and dilation in (1, (1,)) and not isinstance(padding, str)
    own_kernels = weight.shape[0] == groups and weight.shape[1] == 1
    if (source is None and bias_name is None) or not plain or not own_kernels or input.dim() != 3:
        return None
    assert not isinstance(padding, str)
    around = padding[0] if isinstance(padding, tuple) else padding
    kept = KeptInput(input, source.name if source is not None else str(bias_name))
    fixed_bias = bias.detach() if bias is not None and bias_name else bias
    output = F.conv1d(input, weight.detach() if source is not None else weight, fixed_bias, 1, around, 1, groups)

    def listen(gradient: Tensor) -> None:  # (B, channels, positions)
        if source is not None:
            windows = F.pad(kept.value, (around, around)).unfold(2, weight.shape[2], 1)
            kernels = torch.einsum("bct,bctk->bck", gradient.to(SINGLE), windows.to(SINGLE))
            pass_.records[source.name].add(source.back(kernels[:, :, None]))
        if bias_name is not None:
            pass_.records[bias_name].add(gradient.sum(2, dtype=SINGLE))

    return pass_.tap(output, kept.name, listen)


OPERATIONS: dict[Callable[..., Any], Callable[..., Tensor | None]] = {
    F.linear: _linear,
    torch.addmm: _addmm,
    F.embedding: _embedding,
    F.layer_norm: _layer_norm,
    F.rms_norm: _rms_norm,
    F.conv1d: _conv1d,
    torch.mul: _multiply,
    Tensor.mul: _multiply,
    Tensor.__mul__: _multiply,
    Tensor.__rmul__: _multiply,
    torch.add: _add,
    Tensor.add: _add,
    Tensor.__add__: _add,
    Tensor.__radd__: _add,
    Tensor.add_: _add_in_place,
    Tensor.__iadd__: _add_in_place,
    torch.matmul: _matmul,
    Tensor.matmul: _matmul,
    Tensor.__matmul__: _matmul,
    torch.mm: _matmul,
}
