"""Models trained so that no single user can be recognized in them, in a simulation of federated training.

result = tacit.federate("classify", "reviews.csv", user_column="author", epsilon=8, output="model")
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from tacit.errors import BadParameterError
from tacit.jobs.config import Group, Option, Varied
from tacit.jobs.fields import (
    AnyOptimizer,
    Bands,
    Clipping,
    LearningRate,
    Noise,
    ReplaceOne,
    SomeEpochs,
    Strategy,
    TrainingEpsilon,
    UserColumn,
)
from tacit.jobs.train import config_for
from tacit.jobs.training.by_user import RowsPerUser
from tacit.jobs.training.options import TaskConfigs, TaskTraining
from tacit.jobs.training.result import TrainingProgress, TrainingResult
from tacit.needs import Ability
from tacit.needs import check as check_needs
from tacit.training.start import usual_rate

SERVER_RATE: Final = 1.0
"""The usual learning rate of a server with plain steps: the mean of the updates."""
USUAL_SUM_BITS: Final = 32


class FederateConfig(TaskTraining):
    """Users with their rows, a model for a task, and what pays for what it learns of a user."""

    epsilon: Annotated[
        TrainingEpsilon[float],
        Field(description="The privacy budget of one user; 'inf' trains without privacy, for comparison."),
    ]
    user_column: UserColumn[str]
    algorithm: Annotated[
        Literal["fedavg", "ftrl"],
        Field(description="fedavg: users drawn at random, secretly; ftrl: users in a fixed order, correlated noise."),
        Option(Group.PRIVACY),
    ] = "fedavg"
    strategy: Strategy[str] = "head"
    epochs: Annotated[SomeEpochs, Field(description="Passes over the users, on average.")] = 5.0
    cohort: Annotated[
        int,
        Field(ge=1, description="Users per round, on average; large cohorts need less noise."),
        Option(Group.TRAINING),
    ] = 100
    noise: Annotated[
        Noise[Literal["buffered", "banded", "tree", "independent", "skellam"] | None],
        Field(description="ftrl: kind of its noise; buffered by default, skellam for sums of whole numbers."),
    ] = None
    bands: Annotated[
        Bands[int], Field(description="ftrl: bands of the banded noise, each a vector as large as what is trained.")
    ] = 16
    sum_bits: Annotated[
        int,
        Field(ge=16, le=48, description="skellam: sums of whole numbers are taken modulo 2^BITS."),
        Option(Group.PRIVACY, metavar="BITS"),
    ] = USUAL_SUM_BITS
    smallest_cohort: Annotated[
        int | None,
        Field(ge=1, description="skellam: users who answer in a round at least; each adds one of so many shares of the "
              "noise. By default half of the cohort."),
        Option(Group.PRIVACY),
    ] = None  # fmt: skip
    local_epochs: Annotated[
        int, Field(ge=1, description="Passes of a user over their own rows in a round."), Option(Group.TRAINING)
    ] = 1
    local_batch: Annotated[int, Field(ge=1, description="Rows per local step."), Option(Group.TRAINING)] = 16
    local_rate: Annotated[
        float, Field(gt=0, description="Learning rate of the local steps (SGD)."), Option(Group.TRAINING)
    ] = 0.1
    rows_per_user: Annotated[
        RowsPerUser[int],
        Field(description="Most rows of a user that count in a round, drawn anew each time."),
        Varied(group=Group.TRAINING),
    ] = 128
    learning_rate: Annotated[
        LearningRate[float | None],
        Field(description="Of the server. By default 1 for sgd, else as in training on records."),
    ] = None
    optimizer: Annotated[AnyOptimizer, Field(description="How the server steps.")] = "adam"
    momentum: Annotated[float, Field(description="Of the server, for sgd."), Option(Group.TRAINING)] = 0.0
    clipping: Clipping = "automatic"
    replace_one: Annotated[
        ReplaceOne, Field(description="Neighbors differ by replacing a user (twice the sensitivity).")
    ] = False

    @model_validator(mode="after")
    def _noise_belongs_to_an_algorithm(self) -> Self:
        if self.algorithm == "fedavg" and self.noise is not None:
            raise BadParameterError(
                "noise-without-ftrl",
                "{option.noise} is for ftrl: fedavg draws users at random, and its noise is independent",
            )
        if self.noise != "skellam" and (self.smallest_cohort is not None or self.sum_bits != USUAL_SUM_BITS):
            raise BadParameterError(
                "only-for-whole-numbers",
                "{option.sum_bits} and {option.smallest_cohort} are for sums of whole numbers: add "
                "{option.noise[skellam]}",
            )
        if self.smallest_cohort is not None and self.smallest_cohort > self.cohort:
            raise BadParameterError(
                "impossible-count",
                "a smallest cohort of {smallest:,} is more than the {cohort:,} users of a round",
                smallest=self.smallest_cohort,
                cohort=self.cohort,
            )
        if self.noise == "skellam" and self.clipping not in ("flat", "automatic", "damped"):
            raise BadParameterError(
                "clipping-not-in-whole-numbers",
                "sums of whole numbers have one bound for the whole update: choose {option.clipping[flat]} or "
                "{option.clipping[automatic]}",
            )
        return self

    def needs(self) -> list[Ability]:
        return self.needs_with(self.strategy, self.epsilon)

    @property
    def rate(self) -> float:
        """The learning rate of the server, by default the usual one."""
        if self.learning_rate is not None:
            return self.learning_rate
        return SERVER_RATE if self.optimizer == "sgd" else usual_rate(self.strategy, private=True)


CONFIGS: Final[TaskConfigs[FederateConfig]] = TaskConfigs(FederateConfig, "federate")
"""The configuration of each task, those of plug-ins too."""


def run(config: FederateConfig, progress: TrainingProgress | None = None) -> TrainingResult:
    """A model that has learned from the users of a configuration, in its folder, with its card."""
    from tacit.jobs.training.users import train_on_users

    return train_on_users(config, progress or TrainingProgress())


def federate(
    task: str,
    data: object,
    *,
    user_column: str,
    output: str | Path,
    epsilon: float,
    progress: TrainingProgress | None = None,
    **options: Any,
) -> TrainingResult:
    """A model for a task whose promise is made to users, each with any number of rows; files or data in memory, options
    as in the task's configuration (`tacit.jobs.federate.CONFIGS`)."""
    config = config_for(CONFIGS, task)(
        data=data, user_column=user_column, output=Path(output), epsilon=epsilon, **options
    )
    check_needs("tacit.federate", config.needs())
    return run(config, progress)
