"""Callbacks and result of a training."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.card import Card
from tacit.errors import TacitWarning
from tacit.evaluation.predictions import main_score
from tacit.guarantee import Guarantee
from tacit.report import Report
from tacit.training.plan import TrainingPlan

if TYPE_CHECKING:
    from tacit.training.gradients import Checked
    from tacit.training.run import StepReport


class TrainingProgress:
    """Callbacks of a training while it runs; override those that should show something.

    Losses and the shares of clipped gradients are private, and so are the remarks: they are for whoever trains.
    """

    def planned(self, plan: TrainingPlan, notes: tuple[str, ...]) -> None:
        """Noise and steps are fixed, and nothing has been trained yet."""

    def prepared(self, done: int, total: int) -> None:
        """Called when so many of the records have passed the frozen layers."""

    def stepped(self, now: StepReport) -> None:
        """A step is done."""

    def searching(self) -> None:
        """A search for settings is going on. It says no number, because how many trials there are is secret."""

    def remarked(self, message: str) -> None:
        """Something about the records or the gradients that stops nothing."""
        warnings.warn(message, TacitWarning, stacklevel=2)

    def warned(self, message: str) -> None:
        """Something about the model that stops nothing."""
        warnings.warn(message, TacitWarning, stacklevel=2)


@dataclass(frozen=True)
class TrainedResult:
    """A trained model: what it promises, where it lies, how well it does.

    scores   a report on rows that are not private, if such rows were given
    checked  how the gradients were computed and how exactly; None where there is no noise, or no single records
    first    whether this is the process that writes and speaks, where several train together
    configuration  the options that made it, as they stand on its card
    """

    guarantee: Guarantee
    folder: Path
    task: str
    scores: Report | None = None
    checked: Checked | None = None
    first: bool = True
    configuration: Mapping[str, object] = field(default_factory=dict)

    @property
    def card(self) -> Card:
        return Card(self.guarantee, configuration=self.configuration)

    @property
    def score(self) -> float | None:
        """The measure of the task on the test rows."""
        return None if self.scores is None else main_score(self.scores.sections[0])

    def __str__(self) -> str:
        return f"{self.folder}: {self.guarantee}"


@dataclass(frozen=True)
class VectorTrainingResult(TrainedResult):
    """A trained classifier of vectors. It has no steps and no gradients, so no plan either."""


@dataclass(frozen=True)
class TrainingResult(TrainedResult):
    """A trained network, the plan of its steps, and the settings that a search has chosen, if there was one."""

    plan: TrainingPlan = field(kw_only=True)
    chosen: Mapping[str, object] = field(default_factory=dict)
