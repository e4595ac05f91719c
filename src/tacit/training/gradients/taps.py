"""Per-example clipping in one backward pass: exact norms, shared and tied weights included, nothing stored per example.

Every use of a trainable parameter W of shape (R, C) in a transformer adds outer products to an example's gradient:

    linear         W x_t        gradient of W:  sum over t of  g_t x_t^T
    embedding      W[id_t]      gradient of W:  sum over t of  e(id_t) g_t^T,   e one-hot

with x the input, g the gradient of the loss at the output, t the position. So the gradient of example b is
sum over t of r_t c_t^T, and its squared norm needs no gradient at all (Goodfellow 2015; Li et al. 2022, ghost norms):

    |sum_t r_t c_t^T|^2 = sum over t, t' of (r_t . r_t') (c_t . c_t')

If W is used several times (an embedding that is also the output layer, a recurrent weight), t runs over the positions
of all uses, and the cross terms are part of the sum. For an embedding against a linear use, r_t . r_t' is the gradient
of the logits of position t' at the token of position t: a gather, not a product.

Once the norms are known, the clipped sum over all examples is one matrix product per parameter, as in ordinary training
(book-keeping, Bu et al. 2023), with each example's side scaled by its factor. There is no second backward pass.

How uses are found: while the loss is computed, calls of torch functions are intercepted *by parameter*. A use with
known algebra runs with the parameter detached, and its output carries a tap that receives g. Every other way from a
trainable parameter to the loss leaves an ordinary gradient on the parameter after the backward pass, and then the
engine refuses, naming the operation. So a parameter cannot be missed: its gradient either went through taps or stops
the run.

Which axis is the batch is decided once for each use (`learn`), from batches of two sizes, and never guessed from the
shape of a training batch: a batch as large as a sequence is long cannot be mistaken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.overrides import TorchFunctionMode, resolve_name

from tacit.errors import BadParameterError
from tacit.training.gradients.examples import (
    Batch,
    Grams,
    Loss,
    Outer,
    ParameterUses,
    PerExample,
    UnsupportedModelError,
    safe_squared_norm,
    size_of,
    squared_norm,
    trainable,
)


class _Context(Protocol):
    """The values of a forward pass that its backward pass needs."""

    listener: Callable[[Tensor], None]


class _Tap(torch.autograd.Function):
    """The identity; on the way back it hands the gradient to a listener. The anchor keeps it in the graph even where
    nothing below it needs a gradient."""

    @staticmethod
    def forward(ctx: _Context, value: Tensor, anchor: Tensor, listener: Callable[[Tensor], None]) -> Tensor:
        ctx.listener = listener
        return value.view_as(value)

    @staticmethod
    def backward(ctx: _Context, *gradients: Tensor) -> tuple[Tensor, None, None]:
        ctx.listener(gradients[0].detach())
        return gradients[0], None, None


def _tapped(value: Tensor, anchor: Tensor, listener: Callable[[Tensor], None]) -> Tensor:
    result: Tensor = _Tap.apply(value, anchor, listener)  # type: ignore[no-untyped-call]
    return result


# Intercepting torch functions ---------------------------------------------------------------------------------------


@dataclass
class _Site:
    """One place where a parameter is used: how the batch lies in its output."""

    layout: str  # "batch": axis 0; "rows": axis 0 is batch x positions; "one": axis 0 has length 1 and is broadcast


class _Intercept(TorchFunctionMode):
    def __init__(self, pass_: _Pass) -> None:
        super().__init__()
        self._pass = pass_

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        handler = _HANDLERS.get(func)
        if handler is not None:
            result = handler(self._pass, *args, **kwargs)
            if result is not None:
                return result
        elif self._pass.learning:
            self._pass.note_unknown(func, args)
        return func(*args, **kwargs)


class _Pass:
    """One forward and backward pass over a batch of known size."""

    def __init__(self, taps: Taps, size: int, *, learning: bool) -> None:
        self.taps = taps
        self.size = size
        self.learning = learning
        self.records: dict[str, ParameterUses] = defaultdict(ParameterUses)
        self.anchor = torch.zeros((), requires_grad=True)
        self.unknown: dict[str, set[str]] = defaultdict(set)
        self._uses: dict[str, int] = defaultdict(int)
        self.relative: Tensor | None = None

    def name_of(self, tensor: object) -> str | None:
        return self.taps.names.get(id(tensor)) if isinstance(tensor, nn.Parameter) else None

    def note_unknown(self, func: Callable[..., Any], args: Sequence[object]) -> None:
        for item in args:
            name = self.name_of(item)
            if name is not None:
                self.unknown[name].add(str(resolve_name(func) or func))

    def tap(self, output: Tensor, site: str, listen: Callable[[Tensor], None]) -> Tensor:
        """The output with a listener that is handed its gradient as (B, positions, ...)."""
        layout = self._layout(site, output)
        size = self.size
        if layout == "one":
            output = output.expand(size, *output.shape[1:])
        if layout == "rows":
            return _tapped(output, self.anchor, lambda g: listen(g.reshape(size, -1, *g.shape[1:])))
        return _tapped(output, self.anchor, lambda g: listen(_with_positions(g)))

    def _layout(self, site: str, output: Tensor) -> str:
        number = self._uses[site]
        self._uses[site] += 1
        # Recurrent models use a weight once per step: all uses beyond the first few are alike.
        key = (site, min(number, 7))
        first = int(output.shape[0]) if output.dim() else 0
        known = self.taps.sites.get(key)
        if self.learning:
            seen = _layout_of(first, self.size)
            if seen is None:
                raise UnsupportedModelError(
                    "batch-axis-unknown",
                    "'{layer}' is used with an output of shape {shape} for {examples} examples: which part belongs "
                    "to which example cannot be told",
                    layer=site,
                    shape=tuple(output.shape),
                    examples=self.size,
                )
            if known is not None and known.layout != seen:
                raise UnsupportedModelError(
                    "batch-axis-unknown",
                    "'{layer}' has its batch in different places for different batch sizes",
                    layer=site,
                )
            self.taps.sites[key] = _Site(seen)
            return seen
        if known is None:
            raise UnsupportedModelError(
                "layer-used-otherwise",
                "'{layer}' is used in a way that did not occur when the model was checked: check it in training mode",
                layer=site,
            )
        expected = {"batch": first == self.size, "one": first == 1, "rows": first % self.size == 0}
        if not expected[known.layout]:
            raise UnsupportedModelError(
                "layer-used-otherwise",
                "'{layer}' has an output of shape {shape}, unlike before",
                layer=site,
                shape=tuple(output.shape),
            )
        return known.layout

    def sides(self, value: Tensor, site_gradient: Tensor) -> Tensor:
        """An input in the layout of the gradient at its output: (B, positions, ...)."""
        positions = site_gradient.shape[1]
        if value.shape[0] == 1 and self.size > 1:
            value = value.expand(self.size, *value.shape[1:])
        return value.reshape(self.size, positions, -1)


class _Kept:
    """An input, kept for the way back; refused if it was changed in place in between."""

    def __init__(self, value: Tensor, name: str) -> None:
        self._value = value.detach()
        self._version = self._value._version
        self._name = name

    @property
    def value(self) -> Tensor:
        if self._value._version != self._version:
            raise UnsupportedModelError(
                "changed-in-place", "an input of '{name}' was changed in place after it was used", name=self._name
            )
        return self._value


def _layout_of(first: int, size: int) -> str | None:
    if first == size:
        return "batch"
    if first == 1:
        return "one"
    return "rows" if first and first % size == 0 else None


def _with_positions(gradient: Tensor) -> Tensor:
    """(B, ..., width) as (B, positions, width)."""
    if gradient.dim() == 1:
        return gradient[:, None, None]
    if gradient.dim() == 2:
        return gradient[:, None]
    return gradient.flatten(1, -2) if gradient.dim() > 3 else gradient


def _linear(pass_: _Pass, value: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor | None:
    return _product(pass_, value, weight, bias, transposed=False)


def _addmm(pass_: _Pass, bias: Tensor, value: Tensor, weight: Tensor, **scales: object) -> Tensor | None:
    if scales or (pass_.name_of(weight) is None and pass_.name_of(bias) is None):
        return None
    return _product(pass_, value, weight, bias, transposed=True)


def _product(pass_: _Pass, value: Tensor, weight: Tensor, bias: Tensor | None, *, transposed: bool) -> Tensor | None:
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
    kept = _Kept(value, weight_name) if weight_name else None

    def listen(gradient: Tensor) -> None:
        if kept is not None and weight_name is not None:
            inputs = pass_.sides(kept.value, gradient)
            rows, columns = (inputs, gradient) if transposed else (gradient, inputs)
            pass_.records[weight_name].outer.append(Outer(rows, columns))
        if bias_name is not None:
            pass_.records[bias_name].add(gradient.sum(1))

    return pass_.tap(output, weight_name or str(bias_name), listen)


def _embedding(
    pass_: _Pass,
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
    pass_: _Pass,
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
    kept = _Kept(value, str(weight_name))

    def listen(gradient: Tensor) -> None:
        if weight_name is not None:
            unscaled = pass_.sides(F.layer_norm(kept.value, normalized_shape, eps=eps), gradient)
            pass_.records[weight_name].add(torch.einsum("btd,btd->bd", gradient, unscaled))
        if bias_name is not None:
            pass_.records[bias_name].add(gradient.sum(1))

    return pass_.tap(output, str(weight_name or bias_name), listen)


def _rms_norm(
    pass_: _Pass, value: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor | None:
    name = pass_.name_of(weight)
    if name is None or len(normalized_shape) != 1:
        return None
    assert weight is not None
    unscaled = F.rms_norm(value, normalized_shape, eps=eps)
    return _scaled(pass_, name, weight, unscaled)


def _weight_and_value(pass_: _Pass, left: object, right: object) -> tuple[str, Tensor, Tensor] | None:
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


def _multiply(pass_: _Pass, left: object, right: object) -> Tensor | None:
    sides = _weight_and_value(pass_, left, right)
    return None if sides is None else _scaled(pass_, *sides)


def _scaled(pass_: _Pass, name: str, weight: Tensor, value: Tensor) -> Tensor:
    kept = _Kept(value, name)

    def listen(gradient: Tensor) -> None:
        pass_.records[name].add(torch.einsum("btd,btd->bd", gradient, pass_.sides(kept.value, gradient)))

    return pass_.tap(value * weight.detach(), name, listen)


def _add(pass_: _Pass, left: object, right: object, alpha: float = 1.0) -> Tensor | None:
    sides = _weight_and_value(pass_, left, right)
    if sides is None or alpha != 1.0:
        return None
    name, weight, value = sides
    return pass_.tap(value + weight.detach(), name, lambda g: pass_.records[name].add(g.sum(1)))


def _matmul(pass_: _Pass, value: object, weight: object) -> Tensor | None:
    name = pass_.name_of(weight)
    if name is None or not isinstance(value, Tensor) or not isinstance(weight, Tensor):
        return None
    if weight.dim() != 2 or value.dim() < 2:
        return None
    return _product_without_bias(pass_, name, value, weight)


def _product_without_bias(pass_: _Pass, name: str, value: Tensor, weight: Tensor) -> Tensor:
    kept = _Kept(value, name)

    def listen(gradient: Tensor) -> None:
        inputs = pass_.sides(kept.value, gradient)
        pass_.records[name].outer.append(Outer(inputs, gradient))

    return pass_.tap(torch.matmul(value, weight.detach()), name, listen)


_HANDLERS: dict[Callable[..., Any], Callable[..., Tensor | None]] = {
    F.linear: _linear,
    torch.addmm: _addmm,
    F.embedding: _embedding,
    F.layer_norm: _layer_norm,
    F.rms_norm: _rms_norm,
    torch.mul: _multiply,
    Tensor.mul: _multiply,
    Tensor.__mul__: _multiply,
    Tensor.__rmul__: _multiply,
    torch.add: _add,
    Tensor.add: _add,
    Tensor.__add__: _add,
    Tensor.__radd__: _add,
    torch.matmul: _matmul,
    Tensor.matmul: _matmul,
    Tensor.__matmul__: _matmul,
    torch.mm: _matmul,
}


# Relative position tables: one bias per head and distance, added to all examples alike --------------------------------


@contextmanager
def _relative_biases(model: nn.Module, pass_: _Pass) -> Iterator[None]:
    """The attention of T5 and its kin looks up biases of shape (1, heads, queries, keys) without a batch axis; while
    this is active they are given one, so that each example's share of the gradient can be seen."""
    changed = []
    for module in model.modules():
        table = getattr(module, "relative_attention_bias", None)
        if isinstance(table, nn.Embedding) and hasattr(module, "compute_bias"):
            name = pass_.taps.names.get(id(table.weight))
            if name is not None:
                compute = cast("Callable[..., Tensor]", module.compute_bias)
                module.__dict__["compute_bias"] = _with_batch_axis(pass_, name, table, compute)
                changed.append(module)
    try:
        yield
    finally:
        for module in changed:
            del module.__dict__["compute_bias"]


def _with_batch_axis(
    pass_: _Pass, name: str, table: nn.Embedding, compute: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    def compute_bias(*args: object, **kwargs: object) -> Tensor:
        pass_.relative = torch.empty(0)
        try:
            values = compute(*args, **kwargs)
            ids = pass_.relative
        finally:
            pass_.relative = None
        if ids.numel() == 0 or values.dim() != 4 or values.shape[0] != 1:
            raise UnsupportedModelError(
                "layer-used-otherwise", "'{name}' is a table of relative positions used in an unknown way", name=name
            )
        shape = tuple(table.weight.shape)

        def listen(gradient: Tensor) -> None:  # (B, heads x queries, keys)
            by_position = gradient.reshape(pass_.size, shape[1], -1).transpose(1, 2)
            summed = by_position.new_zeros(pass_.size, *shape)
            summed.index_add_(1, ids.flatten(), by_position)
            pass_.records[name].add(summed)

        return pass_.tap(values, name, listen)

    return compute_bias


# The engine -----------------------------------------------------------------------------------------------------------


class Taps:
    """The engine for one model and one loss. `learn` first, on two batches of different sizes; then `run`."""

    name = "taps"

    def __init__(self, model: nn.Module, loss: Loss) -> None:
        self.model = model
        self.loss = loss
        self.parameters = trainable(model)
        self.names = {id(parameter): name for name, parameter in self.parameters.items()}
        self.sites: dict[tuple[str, int], _Site] = {}

    def learn(self, *batches: Batch) -> None:
        """See how each parameter is used. Batches must have different sizes, above 1, none of which is the length of a
        sequence or the width of a layer (3 and 5 do)."""
        sizes = {size_of(batch) for batch in batches}
        if len(sizes) < 2 or min(sizes) < 2:
            raise BadParameterError("too-few-batches", "checking a model takes batches of two different sizes above 1")
        for batch in batches:
            self._run(batch, learning=True)

    def run(self, batch: Batch) -> PerExample:
        return self._run(batch, learning=False)

    def _run(self, batch: Batch, *, learning: bool) -> PerExample:
        size = size_of(batch)
        pass_ = _Pass(self, size, learning=learning)
        for parameter in self.parameters.values():
            parameter.grad = None
        with _relative_biases(self.model, pass_), _Intercept(pass_):
            losses = self.loss(self.model, batch)
        if losses.shape != (size,):
            raise BadParameterError(
                "wrong-shape",
                "the loss must have one value per example, ({size},), not {shape}",
                size=size,
                shape=tuple(losses.shape),
            )
        torch.autograd.backward(losses.sum())
        self._refuse_leaks(pass_)
        grams: Grams = {}
        with torch.no_grad():
            norms = {name: squared_norm(record, grams) for name, record in pass_.records.items()}
            safe = {name: safe_squared_norm(pass_.records[name], norm, grams) for name, norm in norms.items()}
        shapes = {name: parameter.shape for name, parameter in self.parameters.items()}
        return PerExample(losses.detach(), norms, dict(pass_.records), shapes, safe)

    def _refuse_leaks(self, pass_: _Pass) -> None:
        leaks = [name for name, parameter in self.parameters.items() if parameter.grad is not None]
        if not leaks:
            return
        for parameter in self.parameters.values():
            parameter.grad = None
        used = ", ".join(sorted(pass_.unknown.get(leaks[0], ()))) or "an operation without known algebra"
        more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
        raise UnsupportedModelError(
            "no-gradient-per-example",
            "the gradient of '{parameter}'{more} cannot be told apart by example: it is used by {used}",
            parameter=leaks[0],
            more=more,
            used=used,
        )
