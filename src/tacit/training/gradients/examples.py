"""The gradients of each example of a batch as an engine knows them: losses, the squared norm for each parameter, and
enough to add the gradients up with a factor for each example."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from tacit.errors import BadParameterError

Batch = Mapping[str, Tensor]
"""Tensors whose first axis is the examples."""

Loss = Callable[[nn.Module, Batch], Tensor]
"""The losses (B,) of the examples of a batch; the loss of one example may depend on nothing else in the batch."""


class UnsupportedModelError(BadParameterError):
    """The norm of an example's gradient cannot be proven for this model."""


def size_of(batch: Batch) -> int:
    return int(next(iter(batch.values())).shape[0])


def part_of(batch: Batch, rows: slice) -> dict[str, Tensor]:
    return {name: values[rows] for name, values in batch.items()}


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    parameters = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    if not parameters:
        raise BadParameterError("nothing-to-train", "the model has no trainable parameter: choose another strategy")
    return parameters


@contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


# Uses ---------------------------------------------------------------------------------------------------------------


@dataclass
class Outer:
    """One use of a matrix: per example, sum over t of r_t c_t^T. Columns are dense, (B, T, width); rows are dense too,
    or the ids (B, T) of one-hot rows."""

    rows: Tensor
    columns: Tensor

    @property
    def one_hot(self) -> bool:
        return not self.rows.is_floating_point()


@dataclass
class ParameterUses:
    """All uses of one parameter in one batch: outer products, or the gradients (B, *shape) themselves where small;
    of a stack of matrices, those of each slice (the experts of a mixture)."""

    outer: list[Outer] = field(default_factory=list)
    direct: Tensor | None = None
    slices: dict[int, ParameterUses] = field(default_factory=dict)

    def add(self, gradient: Tensor) -> None:
        self.direct = gradient if self.direct is None else self.direct + gradient


Grams = dict[Any, tuple[Tensor, Tensor, Tensor]]
"""Products of two tensors of one batch, with the two tensors."""


# Norms and sums -------------------------------------------------------------------------------------------------------


def single(values: Tensor) -> Tensor:
    """Numbers of 16 bits in single precision, as all norms and sums are computed; ids and other numbers as they are."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def squared_norm(record: ParameterUses, grams: Grams) -> Tensor:
    total: Tensor | None = None
    if record.direct is not None:
        total = single(record.direct).flatten(1).square().sum(1)
    uses = _merged(record.outer)
    for i, first in enumerate(uses):
        for second in uses[i:]:
            part = _inner(first, second, grams) * (1.0 if second is first else 2.0)
            total = part if total is None else total + part
    # Slices are different numbers of the parameter, so their squares add up.
    for record_of_slice in record.slices.values():
        part = squared_norm(record_of_slice, grams)
        total = part if total is None else total + part
    assert total is not None
    return total.clamp_min(0.0)


UNIT = 2.0**-24
"""Half the distance between neighbors of 1 in single precision."""
SAFETY = 8.0


def safe_squared_norm(record: ParameterUses, squared: Tensor, grams: Grams) -> Tensor:
    """A bound on the squared norm of what is added up, rounding included, from the computed one.

    An inner product of d numbers in single precision is off by at most SAFETY sqrt(d) u |a| |b|, u = 2^-24 (Higham &
    Mary 2019, for rounding errors that are independent; the factor leaves room for those that are not). With S the sum
    over the positions of |r_t| |c_t|, which is the length that the gradient would have if nothing canceled,

        the squared norm from products of products is off by at most      2 SAFETY sqrt(width of r + width of c) u S^2
        the sum over the positions that is released, by at most           SAFETY sqrt(positions) u S

    Products of products are added up in double precision. Where there is none, the first one gets SAFETY positions u
    S^2 more: so much are positions^2 terms off whose absolute values add up to at most S^2.

    Both count where the positions cancel: at S = 105 |g| the first one alone is 1 % of |g|^2.
    """
    if record.slices:
        each = [safe_squared_norm(part, squared_norm(part, grams), grams) for part in record.slices.values()]
        return torch.stack(each).sum(0)
    if not record.outer:
        return squared
    size = torch.stack([_uncanceled(use, grams) for use in record.outer]).sum(0)
    width = max((0 if use.one_hot else use.rows.shape[2]) + use.columns.shape[2] for use in record.outer)
    positions = sum(use.columns.shape[1] for use in record.outer)
    added_up = 0.0 if has_doubles(size) else 0.5 * positions
    products = squared + 2.0 * SAFETY * (width**0.5 + added_up) * UNIT * size.square()
    safe: Tensor = (products.sqrt() + SAFETY * positions**0.5 * UNIT * size).square()
    return safe


def _uncanceled(use: Outer, grams: Grams) -> Tensor:
    """Sum over the positions of |r_t| |c_t|."""
    lengths = _lengths(use.columns, grams)
    return lengths.sum(1) if use.one_hot else (lengths * _lengths(use.rows, grams)).sum(1)


def _lengths(side: Tensor, grams: Grams) -> Tensor:
    """|x_t| of each position: the diagonal of x x^T where that is known."""
    known = grams.get((_place(side), _place(side)))
    if known is not None:
        return known[0].diagonal(dim1=1, dim2=2).clamp_min(0.0).sqrt()
    lengths: Tensor = torch.linalg.vector_norm(single(side), dim=2)
    return lengths


def _merged(uses: list[Outer]) -> list[Outer]:
    """Uses of the same kind (the steps of a recurrent layer) as one use with more positions."""
    if len(uses) <= 2:
        return uses
    merged = []
    for one_hot in (False, True):
        same = [use for use in uses if use.one_hot == one_hot]
        if len(same) > 1:
            rows, columns = (torch.cat([getattr(use, side) for use in same], 1) for side in ("rows", "columns"))
            merged.append(Outer(rows, columns))
        else:
            merged += same
    return merged


def _inner(first: Outer, second: Outer, grams: Grams) -> Tensor:
    """Per example, the inner product of the gradients of two uses of one parameter."""
    if first.one_hot and not second.one_hot:
        first, second = second, first
    if first is second and not first.one_hot:
        t, r, c = first.rows.shape[1], first.rows.shape[2], first.columns.shape[2]
        if t * (r + c) > r * c:
            gradient = torch.bmm(single(first.rows).transpose(1, 2), single(first.columns))
            return gradient.flatten(1).square().sum(1)
    columns = _gram(first.columns, second.columns, grams)
    if not first.one_hot and not second.one_hot:
        rows = _gram(first.rows, second.rows, grams)
        return _dot(rows, columns)
    if first.one_hot:
        same = first.rows[:, :, None] == second.rows[:, None, :]
        return _dot(columns, same.to(columns.dtype))
    # r_t of a linear use at the token of t': a gather.
    rows = single(first.rows).gather(2, second.rows[:, None, :].expand(-1, first.rows.shape[1], -1))
    return _dot(rows, columns)


def _gram(left: Tensor, right: Tensor, grams: Grams) -> Tensor:
    """(B, T, T'); remembered, since the queries, keys and values of a layer read the same input.

    A tensor is known by its place in memory, so it is kept as long as its products are: the place of a tensor that is
    gone is given to the next one.
    """
    key = (_place(left), _place(right))
    if key not in grams:
        grams[key] = torch.bmm(single(left), single(right).transpose(1, 2)), left, right
    return grams[key][0]


def _place(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tuple(tensor.shape), tensor.stride()


def has_doubles(values: Tensor) -> bool:
    """Whether the device of these numbers computes in double precision; Apple chips do not."""
    return values.device.type != "mps"


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """Added up in double precision where there is one: the terms may cancel. `safe_squared_norm` knows where not."""
    exact = torch.float64 if has_doubles(left) else torch.float32
    return (left * right).flatten(1).sum(1, dtype=exact).to(left.dtype)


def _without(record: ParameterUses, left_out: Tensor) -> ParameterUses:
    """The record with zeros in place of what some examples have."""
    if not bool(left_out.any()):
        return record

    def zeroed(values: Tensor) -> Tensor:
        return values.masked_fill(left_out.view(-1, *[1] * (values.dim() - 1)), 0)

    uses = [Outer(use.rows if use.one_hot else zeroed(use.rows), zeroed(use.columns)) for use in record.outer]
    slices = {i: _without(part, left_out) for i, part in record.slices.items()}
    return ParameterUses(uses, None if record.direct is None else zeroed(record.direct), slices)


def _weighted_sum(record: ParameterUses, factors: Tensor, shape: torch.Size) -> Tensor:
    """Sum over the examples of factor times gradient. A factor of 0 leaves an example out, whatever its gradient: zero
    times a number that is not finite would not be zero."""
    total: Tensor | None = None
    record = _without(record, factors == 0.0)
    if record.slices:
        stacked = factors.new_zeros(shape)
        for i, part in record.slices.items():
            stacked[i] = _weighted_sum(part, factors, shape[1:])
        return stacked
    if record.direct is not None:
        total = torch.tensordot(factors, single(record.direct), dims=1)
    for use in record.outer:
        if use.one_hot:
            if total is None:
                total = factors.new_zeros(shape)
            scaled = single(use.columns) * factors[:, None, None]
            total.index_add_(0, use.rows.flatten(), scaled.flatten(0, 1))
            continue
        rows, columns = single(use.rows), single(use.columns)
        if rows.shape[2] < columns.shape[2]:
            rows = rows * factors[:, None, None]
        else:
            columns = columns * factors[:, None, None]
        flat_rows, flat_columns = rows.flatten(0, 1).T, columns.flatten(0, 1)
        total = flat_rows @ flat_columns if total is None else torch.addmm(total, flat_rows, flat_columns)
    assert total is not None
    return total.reshape(shape)


# The result -----------------------------------------------------------------------------------------------------------


@dataclass
class PerExample:
    """The gradients of one batch: losses (B,), squared norms (B,) per parameter, and the sums that factors turn them
    into. Parameters that the loss does not depend on are missing."""

    losses: Tensor
    squared_norms: dict[str, Tensor]
    _records: dict[str, ParameterUses]
    _shapes: dict[str, torch.Size]
    safe_squared_norms: dict[str, Tensor] = field(default_factory=dict)
    """Not less than the squared norm of what is added up, rounding included: for clipping."""

    def __post_init__(self) -> None:
        self.safe_squared_norms = self.safe_squared_norms or self.squared_norms

    @torch.no_grad()
    def weighted_sums(self, factors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Sum over the examples of factor times gradient, for each parameter; can be asked once."""
        sums = {}
        for name in list(self._records):
            sums[name] = _weighted_sum(self._records.pop(name), factors[name], self._shapes[name])
        return sums

    @torch.no_grad()
    def weighted_sum(self, name: str, factor: Tensor) -> Tensor:
        """The sum for one parameter, so that no more than one of them is in memory; zero where the loss does not
        depend on it. Can be asked once."""
        record = self._records.pop(name, None)
        if record is None:
            return torch.zeros(self._shapes[name], device=factor.device)
        return _weighted_sum(record, factor, self._shapes[name])

    @classmethod
    @torch.no_grad()
    def of_gradients(cls, losses: Tensor, gradients: Mapping[str, Tensor]) -> PerExample:
        """From the gradients (B, *shape) themselves."""
        norms = {name: single(g).flatten(1).square().sum(1) for name, g in gradients.items()}
        records = {name: ParameterUses(direct=g) for name, g in gradients.items()}
        return cls(losses.detach(), norms, records, {name: g.shape[1:] for name, g in gradients.items()})
