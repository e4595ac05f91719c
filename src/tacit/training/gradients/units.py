"""Gradients of units that consist of several rows each and are clipped once: a user with several records, a record
with several windows.

The gradient of a unit is the sum of those of its rows, so its norm has a cross term for every two of them. An engine
knows the gradient of row b as sum over the positions t of r_bt c_bt^T (`examples.Outer`), or as the numbers themselves
(`ParameterUses.direct`). Both add up without another pass through the model:

    sum over b in a unit of  sum over t of r_bt c_bt^T  =  sum over the pairs (b, t) of r_bt c_bt^T

is an outer product of the same kind with more positions. So a unit is *one example whose positions are those of all its
rows*: whatever is proven of examples (exact norms with every cross term, the bound on rounding errors, clipped sums,
public factors) holds for units, in the same code. Units with fewer positions are filled up with columns of zeros, which
add zero to every product. Positions of different units never meet: no number of a unit depends on another unit, even
where that one is not finite.

`gradient_of_unit` does without an engine: the gradient of one unit by itself is the ordinary gradient of its loss,
worked out in parts of any size. For units with more rows than are worked on at a time.

A mean over the rows of a unit, or any other weights, is a matter of the loss: `weighted` multiplies each row by its
`SHARE` before it goes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tacit.training.gradients.examples import (
    Batch,
    Grams,
    Loss,
    Outer,
    ParameterUses,
    PerExample,
    _place,
    safe_squared_norm,
    single,
    size_of,
    squared_norm,
    trainable,
)

SHARE = "share of its unit"
"""The entry of a batch with the weight of each row in the gradient of its unit."""


def weighted(loss: Loss) -> Loss:
    """The same losses, each times the share that its row has of its unit; of a batch without shares, the losses."""

    def shared(model: nn.Module, batch: Batch) -> Tensor:
        if SHARE not in batch:
            return loss(model, batch)
        shares = batch[SHARE]
        return loss(model, {name: values for name, values in batch.items() if name != SHARE}) * shares

    return shared


@dataclass(frozen=True)
class Places:
    """Where the rows of a batch belong: `unit` (rows,) and the place among the rows of that unit (rows,)."""

    unit: Tensor
    within: Tensor
    units: int
    most: int

    @classmethod
    def of(cls, unit_of_row: Tensor, units: int) -> Places:
        """From the unit of each row, which need not be in order."""
        order = torch.argsort(unit_of_row, stable=True)
        counts = torch.bincount(unit_of_row, minlength=units)
        first = counts.cumsum(0) - counts
        within = torch.empty_like(unit_of_row)
        within[order] = torch.arange(len(order), device=order.device) - first[unit_of_row[order]]
        return cls(unit_of_row, within, units, max(1, int(counts.max())))

    def positions(self, values: Tensor) -> Tensor:
        """(rows, T, ...) as (units, most rows * T, ...), zero where a unit has no row."""
        made = values.new_zeros(self.units, self.most, *values.shape[1:])
        made[self.unit, self.within] = values
        return made.flatten(1, 2)

    def sums(self, values: Tensor) -> Tensor:
        """(rows, ...) added up to (units, ...)."""
        return values.new_zeros(self.units, *values.shape[1:]).index_add_(0, self.unit, values)


@torch.no_grad()
def summed_by_unit(result: PerExample, unit_of_row: Tensor, units: int) -> PerExample:
    """The gradients of units, from those of their rows; the result itself is used up.

    unit_of_row  (rows,) the number of the unit that each row belongs to, below `units`
    """
    places = Places.of(unit_of_row.to(result.losses.device), units)
    known: dict[tuple[object, ...], tuple[Tensor, Tensor]] = {}
    grams: Grams = {}
    # Uses of one tensor (the queries, keys and values of a layer read the same input) share what is made of it. `known`
    # also keeps that tensor, since its place in memory is what it is known by.
    records = {name: _uses(result._records[name], places, known) for name in list(result._records)}
    norms = {name: squared_norm(record, grams) for name, record in records.items()}
    safe = {name: safe_squared_norm(records[name], norm, grams) for name, norm in norms.items()}
    return PerExample(places.sums(result.losses), norms, records, result._shapes, safe)


def _uses(
    record: ParameterUses, places: Places, known: dict[tuple[object, ...], tuple[Tensor, Tensor]]
) -> ParameterUses:
    def moved(values: Tensor) -> Tensor:
        place = _place(values)
        if place not in known:
            known[place] = places.positions(values), values
        return known[place][0]

    return ParameterUses(
        [Outer(moved(use.rows), moved(use.columns)) for use in record.outer],
        None if record.direct is None else places.sums(single(record.direct)),
        {number: _uses(part, places, known) for number, part in record.slices.items()},
    )


def gradient_of_unit(
    model: nn.Module, loss: Loss, parameters: Mapping[str, nn.Parameter], parts: Iterable[Batch]
) -> PerExample:
    """The gradient of one unit, whose rows are in these batches, as a result with one example.

    It is computed from its own rows alone, so nothing of it depends on another unit, whatever the model does.
    """
    names, values = list(parameters), list(parameters.values())
    sums: dict[str, Tensor] = {}
    total: Tensor | None = None
    for batch in parts:
        losses = loss(model, batch)
        gradients = torch.autograd.grad(losses.sum(), values, allow_unused=True)
        with torch.no_grad():
            part = losses.detach().sum()
            total = part if total is None else total + part
            for name, gradient in zip(names, gradients, strict=True):
                if gradient is not None:
                    sums[name] = single(gradient) if name not in sums else sums[name].add_(single(gradient))
    assert total is not None
    return PerExample.of_gradients(total[None], {name: value[None] for name, value in sums.items()})


def unit_deviation(model: nn.Module, loss: Loss, results: Sequence[tuple[PerExample, Batch]]) -> tuple[float, str]:
    """How far the gradients of units are from ordinary gradients, at most, and of which parameter; on made-up batches,
    whose rows are dealt to units of different sizes. Relative to the longest gradient of a unit."""
    deviation, worst = 0.0, ""
    for result, batch in results:
        rows = size_of(batch)
        unit_of_row = made_up_units(rows)
        units = int(unit_of_row.max()) + 1
        summed = summed_by_unit(result, unit_of_row, units)
        alone = [
            gradient_of_unit(model, loss, trainable(model), [_rows_of(batch, unit_of_row == unit)])
            for unit in range(units)
        ]
        norms = torch.stack([torch.stack(list(unit.squared_norms.values())).sum() for unit in alone]).sqrt()
        scale = max(float(norms.max()), 1e-12)
        factors = torch.linspace(0.25, 1.0, units, device=norms.device)
        ours_norms = {name: value.clone() for name, value in summed.squared_norms.items()}
        ours = summed.weighted_sums(dict.fromkeys(ours_norms, factors))
        theirs = [
            unit.weighted_sums(dict.fromkeys(unit.squared_norms, factors[i : i + 1])) for i, unit in enumerate(alone)
        ]
        for name, parameter in trainable(model).items():
            zero = torch.zeros_like(parameter, dtype=torch.float32)
            expected = torch.stack([unit.get(name, zero) for unit in theirs]).sum(0)
            off_sum = float((ours.get(name, zero) - expected).norm()) / (scale * units)
            each = torch.stack(
                [unit.squared_norms[name][0].sqrt() if name in unit.squared_norms else zero.sum() for unit in alone]
            )
            off_norm = float((ours_norms.get(name, torch.zeros_like(norms)).sqrt() - each).abs().max()) / scale
            off = max(off_sum, off_norm) if off_sum == off_sum and off_norm == off_norm else float("inf")
            if off > deviation:
                deviation, worst = off, name
    return deviation, worst


def made_up_units(rows: int) -> Tensor:
    """Units of one row, two rows, and more, in no order: 3 rows make 2 units, 5 rows 3.

    >>> made_up_units(5).tolist()
    [0, 1, 0, 1, 2]
    """
    return torch.tensor([number % 2 if number < 4 else number - 2 for number in range(rows)])


def _rows_of(batch: Batch, kept: Tensor) -> dict[str, Tensor]:
    return {name: values[kept.to(values.device)] for name, values in batch.items()}
