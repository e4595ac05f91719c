"""The course of a run: a CSV file, and for those who like curves, TensorBoard. All of it is private."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import require
from tacit.training.private_folder import LOG, private_folder
from tacit.training.step import StepFacts

COLUMNS = ("step", "epsilon at most", "examples", "loss", "shortened", "bound")
CURVES = "tensorboard"


@dataclass
class StepReport:
    """Handed to the caller after each step. Loss and clipped share are private."""

    step: int
    steps: int
    epsilon: float
    facts: StepFacts


class TrainingLog:
    """The log of a training. A resumed run repeats, and logs again, all steps after the step `after`."""

    def __init__(self, folder: Path, *, after: int = 0, tensorboard: bool = False) -> None:
        self.path = folder / LOG
        self.writer: Any = None
        if tensorboard:
            require("tensorboard", extra="tensorboard", purpose="logging for TensorBoard")
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(str(folder / CURVES), purge_step=after + 1)
        if self.path.exists():
            with self.path.open(newline="") as file:
                kept = [row for row in csv.reader(file) if row and row[0].isdigit() and int(row[0]) <= after]
            self._rewrite(kept)

    def _rewrite(self, rows: list[list[str]]) -> None:
        with self.path.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *rows])

    def write(self, step: int, epsilon: float, facts: StepFacts) -> None:
        if not self.path.exists():
            self._rewrite([])
        with self.path.open("a", newline="") as file:
            row = [step, epsilon, facts.examples, facts.loss, facts.shortened, facts.bound]
            csv.writer(file).writerow(row)
        if self.writer is not None:
            for name, value in zip(COLUMNS[1:], row[1:], strict=True):
                self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


def logged_losses(folder: Path) -> list[float]:
    """The loss of each step of the run in a folder, those before it was resumed included. They are private."""
    with (private_folder(folder) / LOG).open(newline="") as file:
        return [float(row["loss"]) for row in csv.DictReader(file)]
