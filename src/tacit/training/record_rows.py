"""The rows of records: one for each, or several windows of a long text whose gradients are clipped as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from tacit.training.gradients import UNITS, Batch
from tacit.training.tasks import Encoded, Row, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class RecordRows:
    """The rows of all records, those of one record one after the other.

    starts   where those of each record begin
    counts   how many each record has: never more than the task says beforehand (`Task.most_rows`)
    units    whether batches name the record of each row: they do if records may have several, whether or not one has
    """

    rows: list[Encoded]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    units: bool

    @classmethod
    def of(cls, task: Task, rows: Sequence[Row], tokenizer: PreTrainedTokenizerBase) -> RecordRows:
        """The encoded rows of all records, to learn from."""
        encoded = [task.encode_rows(row, tokenizer) for row in rows]
        counts = np.array([len(own) for own in encoded], dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        return cls([row for own in encoded for row in own], starts, counts, task.most_rows > 1)

    @property
    def several(self) -> NDArray[np.int64] | None:
        """How many rows each record has, if records may have several."""
        return self.counts if self.units else None

    @property
    def firsts(self) -> list[Encoded]:
        """The first row of each record."""
        return [self.rows[start] for start in self.starts.tolist()]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The length of the longest row of each record."""
        lengths = np.array([_length(row) for row in self.rows], dtype=np.int64)
        return np.maximum.reduceat(lengths, self.starts) if len(lengths) else lengths

    def of_records(self, records: Sequence[int]) -> list[int]:
        """The numbers of the rows of these records."""
        ends = self.starts + self.counts
        return [row for record in records for row in range(self.starts[record], ends[record])]

    def batch(self, records: Sequence[int], collate: Callable[[Sequence[Encoded]], Batch]) -> Batch:
        """The batch of these records, which names the units of its rows if records may have several."""
        batch = collate([self.rows[row] for row in self.of_records(records)])
        if not self.units:
            return batch
        numbers = np.repeat(np.arange(len(records)), self.counts[list(records)])
        return {**batch, UNITS: torch.from_numpy(numbers)}


def _length(example: Encoded) -> int:
    return len(example.get("input_ids", ())) + len(example.get("targets", ()))
