"""Units of several rows: a record that is read in several windows, whose gradient is clipped once.

A batch may name the unit of each of its rows, numbers from 0 without gaps in `batch[UNITS]`. The gradient of a unit is
the sum of those of its rows, and everything that an engine returns is about units then: losses, norms, and the sums
that one factor for each unit turns the gradients into.

Proof obligation: for each unit u with rows R(u), norm and sum are those of  G_u = sum over r in R(u) of g_r.

    direct          gradients that are there as numbers are added up by unit, and the norm is that of the very numbers
                    that are multiplied and released
    outer products  g_r = sum over t of r_t c_t^T is linear in its positions t, so the positions of a unit's rows, one
                    row after the other, are those of G_u. Units with fewer rows than the largest of the batch are
                    filled up with zeros, which add nothing to a norm (0 in every inner product) and nothing to a sum.
                    So cross terms between rows of one unit are in its norm, and the bound on rounding counts all its
                    positions
    slices          numbers of their own, so each slice for itself

So if |f_u G_u| <= C for every unit, adding or removing a unit, however many rows it has, moves the sum by at most C;
which rows stand in one batch, and beside which, changes nothing. `check` compares all of it with the loop, which has
one unit alone in a batch and lets autograd add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor

from tacit.training.gradients.examples import Batch, Outer, ParameterUses, single, size_of

UNITS: Final = "unit"
"""The name of the numbers of units in a batch."""


@dataclass
class Units:
    """The units of the rows of one batch.

    of_rows  (R,), the unit of each row, in any order
    least    how many units there are at least: those without a row have the gradient 0
    """

    of_rows: Tensor
    least: int = 0
    _moved: dict[tuple[Any, ...], tuple[Tensor, Tensor]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._counts = torch.bincount(self.of_rows, minlength=self.least)
        order = torch.argsort(self.of_rows, stable=True)
        first = self._counts.cumsum(0) - self._counts
        self._places = torch.empty_like(order)
        self._places[order] = torch.arange(len(order), device=order.device) - first[self.of_rows[order]]

    def __len__(self) -> int:
        return len(self._counts)

    def summed(self, values: Tensor) -> Tensor:
        """(R, ...) as (U, ...): the sum over the rows of each unit."""
        made = values.new_zeros(len(self), *values.shape[1:])
        return made.index_add_(0, self.of_rows, values)

    def joined(self, values: Tensor) -> Tensor:
        """(R, T, ...) as (U, most rows of a unit * T, ...): the positions of a unit's rows one after the other, zeros
        after the last. The same tensor gives the same result, so that what is known of one use is known of the next."""
        key = values.data_ptr(), tuple(values.shape), values.stride()
        if key not in self._moved:
            made = values.new_zeros(len(self), int(self._counts.max()), *values.shape[1:])
            made[self.of_rows, self._places] = values
            # The tensor is kept as well: its place in memory would be given to another one.
            self._moved[key] = made.flatten(1, 2), values
        return self._moved[key][0]

    def of(self, record: ParameterUses) -> ParameterUses:
        """The uses of a parameter by units, from those by rows."""
        direct = None if record.direct is None else self.summed(single(record.direct))
        outer = [Outer(self.joined(use.rows), self.joined(use.columns)) for use in record.outer]
        return ParameterUses(outer, direct, {i: self.of(part) for i, part in record.slices.items()})


def units_of(batch: Batch) -> Units | None:
    """The units of a batch; None where every row is one of its own."""
    return Units(batch[UNITS]) if UNITS in batch else None


def count_of(batch: Batch) -> int:
    """How many gradients a batch has: units, or rows."""
    return int(batch[UNITS].max()) + 1 if UNITS in batch else size_of(batch)


@torch.no_grad()
def added_up(batch: Batch, losses: Tensor, gradients: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """Losses (R,) and gradients (R, *shape) of all rows of a batch as those of its units."""
    units = units_of(batch)
    if units is None:
        return losses, dict(gradients)
    return units.summed(losses), {name: units.summed(single(gradient)) for name, gradient in gradients.items()}
