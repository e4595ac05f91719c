"""Batches that name the unit of each of their rows: a record that is read in several windows, whose gradient is clipped
once.

The units are numbers from 0 without gaps in `batch[UNITS]`. The gradient of a unit is the sum of those of its rows, and
everything that an engine returns for such a batch is about units: losses, norms, and the sums that one factor for each
unit turns the gradients into. `units` says why norms and sums are exact; here they are worked out before the norms of
rows, which nobody needs, and `check` compares all of it with the loop, which has one unit alone in a batch and lets
autograd add up.

So if |f_u G_u| <= C for every unit, adding or removing a unit, however many rows it has, moves the sum by at most C;
which rows stand in one batch, and beside which, changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import torch
from torch import Tensor

from tacit.training.gradients.examples import Batch, ParameterUses, single, size_of
from tacit.training.gradients.units import Places, _uses

UNITS: Final = "unit"
"""The name of the numbers of units in a batch."""


@dataclass
class Units:
    """The units of the rows of one batch.

    of_rows  (R,), the unit of each row: every number from 0 to the largest occurs
    """

    of_rows: Tensor
    _moved: dict[tuple[object, ...], tuple[Tensor, Tensor]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._places = Places.of(self.of_rows, int(self.of_rows.max()) + 1)

    def __len__(self) -> int:
        return self._places.units

    def summed(self, values: Tensor) -> Tensor:
        """(R, ...) as (U, ...): the sum over the rows of each unit."""
        return self._places.sums(values)

    def of(self, record: ParameterUses) -> ParameterUses:
        """The uses of a parameter by units, from those by rows."""
        return _uses(record, self._places, self._moved)


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
