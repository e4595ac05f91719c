"""Steps whose units consist of several rows: a user with several records. A unit is drawn, worked on and clipped whole.

    g~ = ( sum over the drawn units of clip(g_u) + N(0, (sigma C)^2) ) / planned number of units,
    g_u = the mean over the rows of u that count in this step of their gradients

Which rows of a unit count is drawn for each unit by itself (`RowsOfUnits`). The rows of a unit are never parted: either
all of them are in one batch beside those of other units (`unit_sums.summed_by_unit`), or the unit is alone and its
ordinary gradient is worked out, in as many parts as memory needs (`unit_sums.gradient_of_unit`). Both are the gradient
of the unit; which of them it is depends on its own rows and on how many rows fit into memory.

With 16 bits every unit is alone: its gradient is then a function of its own rows, whatever the rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from tacit.noise.source import StreamKey
from tacit.training.gradients import UNITS, Batch, PerExample
from tacit.training.gradients.unit_sums import SHARE, gradient_of_unit, summed_by_unit
from tacit.training.step import SPREAD, PlainStep, PrivateStep, TrainingStep

MOST_TOGETHER = 3
"""Rows of units that are worked on together. The ordinary gradient of one unit costs less than norms and cross terms:
32 rows of 64 tokens in a small BERT took .88 s in units of 2 rows together and .90 s one by one, in units of 4 1.03 s
and .67 s (CPU seconds of one thread)."""


class RowsOfUnits(Protocol):
    """The rows that stand for a unit in a step."""

    def of(self, units: NDArray[np.int64], step: int, key: StreamKey) -> list[NDArray[np.int64]]:
        """The numbers of the rows of each of these units in a step, at least one; the same ones whenever the step is
        repeated with this key. Those of a unit depend on no other unit."""
        ...


@dataclass
class UnitStep(TrainingStep):
    """The shared part of private and plain steps over units. `lengths` are those of rows; the plan counts units."""

    rows: RowsOfUnits = field(kw_only=True)
    most_together: int = field(default=MOST_TOGETHER, kw_only=True)
    """Units with more rows are worked on by themselves; all of them where it is 0."""

    def drawn(self, step: int, key: StreamKey) -> NDArray[np.int64]:
        """The units of this step, those of similar size and length beside each other."""
        units = super().drawn(step, key)
        rows = self.rows.of(units, step, key)
        self._rows = dict(zip(units.tolist(), rows, strict=True))
        longest = [0 if self.lengths is None else int(self.lengths[mine].max()) for mine in rows]
        order = np.lexsort((longest, [len(mine) for mine in rows]))
        self._longest = dict(zip(units.tolist(), longest, strict=True))
        drawn: NDArray[np.int64] = units[order]
        return drawn

    def _in_order(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        return records

    def _together(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first of these units: as many as are about equally large and have at most `physical` rows, so that little
        is filled up."""
        first = int(records[0])
        if self._is_alone(first):
            return records[:1]
        taken, rows = 0, len(self._rows[first])
        for unit in records.tolist():
            similar = len(self._rows[unit]) <= SPREAD * rows and self._longest[unit] <= SPREAD * self._longest[first]
            fits = (taken + 1) * len(self._rows[unit]) <= self.physical
            if not (similar and fits):
                break
            taken += 1
        return records[: max(1, taken)]

    def _is_alone(self, unit: int) -> bool:
        return len(self._rows[unit]) > min(self.most_together, self.physical)

    def batch_of(self, records: NDArray[np.int64]) -> Batch:
        """The rows of these units, each with its share of its unit."""
        rows = [self._rows[unit] for unit in records.tolist()]
        shares = [np.full(len(mine), 1.0 / len(mine), dtype=np.float32) for mine in rows]
        return self._batch(np.concatenate(rows), np.concatenate(shares))

    def _batch(self, rows: NDArray[np.int64], shares: NDArray[np.float32]) -> Batch:
        batch = self.collate(rows.tolist())
        share = torch.from_numpy(shares).to(next(iter(batch.values())).device)
        # A record of several rows (windows of a long text) has its share in each: its gradient is their sum.
        return {**batch, SHARE: share[batch[UNITS]] if UNITS in batch else share}


@dataclass
class PlainUnitStep(UnitStep, PlainStep):
    """A step without clipping and noise: the mean over the drawn units of the means over their rows. The loss is
    `weighted`."""


@dataclass
class PrivateUnitStep(UnitStep, PrivateStep):
    """A private step over units. The loss of the engine is `weighted`."""

    def gradients_of(self, records: NDArray[np.int64]) -> PerExample:
        """The gradients of some units of this step."""
        if len(records) == 1 and self._is_alone(int(records[0])):
            return self._alone(int(records[0]))
        result = self.engine.run(self.batch_of(records))
        unit_of_row = np.repeat(np.arange(len(records)), [len(self._rows[unit]) for unit in records.tolist()])
        return summed_by_unit(result, torch.from_numpy(unit_of_row), len(records))

    def _alone(self, unit: int) -> PerExample:
        rows = self._rows[unit]
        if self.lengths is not None:
            rows = rows[np.argsort(self.lengths[rows], kind="stable")]
        whole = np.float32(1.0 / len(rows))
        parts = (
            self._batch(rows[start : start + self.physical], np.full(len(rows[start : start + self.physical]), whole))
            for start in range(0, len(rows), self.physical)
        )
        return gradient_of_unit(self.engine.model, self.engine.loss, self.engine.parameters, parts)
