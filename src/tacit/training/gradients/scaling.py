"""Per-example gradients whose numbers are multiplied by fixed public factors before they are clipped.

    |s * g_b|  for each example b,  and  sum over b of f_b (s * g_b)  =  s * sum over b of f_b g_b

The sum needs no gradient of an example by itself; the norm does, because factors of single numbers do not pass through
the algebra of outer products. So the gradients of one weight are written out, a few examples at a time, and forgotten.

Rounding. Gradients that are written out and those that are added up are sums over the same positions t, in another
order, of factors that have 32 bits, or 16 which are exact in 32 (`examples.single`): a number is off by at most SAFETY
sqrt(positions) u times the sum of |r_t| |c_t| (`examples.safe_squared_norm`), each of the two times, so s * that sum of
absolute values is added to the norm twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tacit.training.gradients.examples import SAFETY, UNIT, Outer, ParameterUses, PerExample, single

WRITTEN_OUT = 2**24
"""How many numbers of gradients are written out at a time."""


@dataclass
class ScaledPerExample(PerExample):
    """The gradients of one batch, times `scales`."""

    scales: Mapping[str, Tensor] = field(default_factory=dict)

    @torch.no_grad()
    def weighted_sums(self, factors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: value.mul_(self.scales[name]) for name, value in super().weighted_sums(factors).items()}


@torch.no_grad()
def scaled(result: PerExample, scales: Mapping[str, Tensor]) -> ScaledPerExample:
    """The same gradients, each number times its scale; the result itself is used up."""
    norms = {
        name: _squared_norms(record, scales[name], result._shapes[name]) for name, record in result._records.items()
    }
    return ScaledPerExample(result.losses, norms, result._records, result._shapes, scales=scales)


def _squared_norms(record: ParameterUses, scale: Tensor, shape: torch.Size) -> Tensor:
    """Not less than the squared norms of what is added up, one for each example."""
    if record.slices:
        parts = [_squared_norms(uses, scale[place], shape[1:]) for place, uses in record.slices.items()]
        of_slices = torch.stack(parts).sum(0)
        if record.direct is None and not record.outer:
            return of_slices
        # Whatever of the slices the rest overlaps, the norm of a sum is at most the sum of the norms.
        rest = _squared_norms(ParameterUses(record.outer, record.direct), scale, shape)
        return (of_slices.sqrt() + rest.sqrt()).square()
    if not record.outer:
        assert record.direct is not None
        return (single(record.direct) * scale).flatten(1).square().sum(1)
    examples = record.outer[0].columns.shape[0]
    together = max(1, WRITTEN_OUT // shape.numel())
    positions = sum(use.columns.shape[1] for use in record.outer)
    parts = []
    for start in range(0, examples, together):
        rows = slice(start, start + together)
        whole, sizes = (_written_out(record, rows, shape, absolute=absolute) for absolute in (False, True))
        norm = torch.linalg.vector_norm((whole * scale).flatten(1), dim=1)
        error = torch.linalg.vector_norm((sizes * scale).flatten(1), dim=1)
        parts.append((norm + 2.0 * SAFETY * positions**0.5 * UNIT * error).square())
    return torch.cat(parts)


def _written_out(record: ParameterUses, rows: slice, shape: torch.Size, *, absolute: bool) -> Tensor:
    """The gradients of some examples; with `absolute`, the sums of the absolute values of their terms."""
    total: Tensor | None = None
    for use in record.outer:
        part = _outer(use, rows, shape, absolute=absolute)
        total = part if total is None else total.add_(part)
    assert total is not None
    if record.direct is not None:
        direct = single(record.direct[rows])
        total += direct.abs() if absolute else direct
    return total


def _outer(use: Outer, rows: slice, shape: torch.Size, *, absolute: bool) -> Tensor:
    left, right = single(use.rows[rows]), single(use.columns[rows])
    if absolute:
        right = right.abs()
    if use.one_hot:
        made = right.new_zeros(len(left), *shape)
        for gradient, ids, values in zip(made, left, right, strict=True):
            gradient.index_add_(0, ids, values)
        return made
    return torch.bmm((left.abs() if absolute else left).transpose(1, 2), right).reshape(-1, *shape)
