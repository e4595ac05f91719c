"""A rewriting model that has learned from private texts, paid for by DP-SGD.

result = tacit.jobs.train_rewriter.train_rewriter("letters.csv", epsilon=8, output="my-bart")
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from tacit.jobs.fields import Clipping, Data, Model, Output, Rank, Strategy, TextColumn, TrainingEpsilon
from tacit.jobs.sources import needs_of_rows
from tacit.jobs.training.options import RecordTraining, needs_of_budget, needs_of_model
from tacit.jobs.training.result import TrainingProgress, TrainingResult
from tacit.needs import Ability, needs_of_ledger
from tacit.training.start import usual_rate


class TrainRewriterConfig(RecordTraining):
    """Private texts, a rewriting model of public text to go on from, and the budget of the training alone."""

    job: ClassVar[str] = "train rewrite"

    data: Data
    output: Output[Path]
    epsilon: Annotated[
        TrainingEpsilon[float], Field(description="The privacy budget of one record, for the training alone.")
    ]
    model: Annotated[Model[str], Field(description="A BART to start from: built-in name, folder, hub name.")] = (
        "bart-20"
    )
    text_column: TextColumn = "text"
    strategy: Annotated[Strategy[str], Field(description="What is trained: lora, full, bias, last-2 …")] = "lora"
    clipping: Clipping = "flat"
    rank: Rank = 8

    def needs(self) -> list[Ability]:
        model = needs_of_model(self.model, None, self.strategy)
        return [
            *model, *needs_of_budget(self.epsilon), *needs_of_ledger(self.ledger), *needs_of_rows(self.data)
        ]  # fmt: skip

    def rate(self, *, private: bool) -> float:
        """The learning rate, by default the usual one."""
        return usual_rate(self.strategy, private=private) if self.learning_rate is None else self.learning_rate


def run(config: TrainRewriterConfig, progress: TrainingProgress | None = None) -> TrainingResult:
    """A rewriting model that has learned from private texts, in its folder, with its card."""
    from tacit.jobs.training.rewriter import train_on_texts

    return train_on_texts(config, progress or TrainingProgress())


def train_rewriter(
    data: object, *, output: str | Path, epsilon: float, progress: TrainingProgress | None = None, **options: Any
) -> TrainingResult:
    """A rewriting model for 'dp-bart' that has learned from private texts; files or data in memory, options as in
    `TrainRewriterConfig`."""
    return run(TrainRewriterConfig(data=data, output=Path(output), epsilon=epsilon, **options), progress)
