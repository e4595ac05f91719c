"""Options that all jobs with private training have."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast

from pydantic import BeforeValidator, Field, model_validator

from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency
from tacit.jobs.charging import check_name_of_rows, check_something_is_spent
from tacit.jobs.config import Config, Group, Option, Varied, quotable
from tacit.jobs.fields import (
    AutoDelta,
    Batch,
    Bound,
    Clipping,
    Data,
    DatasetOfInput,
    Device,
    Labels,
    LearningRate,
    Ledger,
    Model,
    Output,
    Physical,
    Rank,
    ReplaceOne,
    Resume,
    Schedule,
    SomeEpochs,
    StartSeed,
    Tensorboard,
    TestRows,
    TestSeed,
    Tokenizer,
    TrainingEpsilon,
    Trials,
)
from tacit.jobs.group_fields import ByClass, GroupColumn
from tacit.jobs.sources import needs_of_rows
from tacit.jobs.training.tasks import TASK_ROWS, TaskRows
from tacit.jobs.values import count_or_auto, split_at_commas
from tacit.needs import ACCOUNTING, ADAPTERS, OPACUS, TENSORBOARD, Ability, needs_of_encoder, needs_of_ledger
from tacit.training.task_registry import TASKS

ADAPTED = ("lora", "ia3")


class PrivateTraining(Config):
    """The options of every training under differential privacy: what pays for it, how long and how far it steps."""

    epsilon: TrainingEpsilon[float | None] = None
    delta: AutoDelta = "auto"
    trials: Trials = 1
    seed: TestSeed = None
    epochs: SomeEpochs = 5.0
    learning_rate: LearningRate[float | None] = None
    bound: Bound = 1.0
    resume: Resume = False
    device: Device = "auto"
    ledger: Ledger = None
    dataset: DatasetOfInput = None

    @model_validator(mode="after")
    def _the_ledger_has_a_name_for_the_data(self) -> Self:
        check_something_is_spent(self, spends=self.spends_budget)
        check_name_of_rows(self, self.charged_rows)
        return self

    @property
    def charged_rows(self) -> object:
        """The private rows whose budget is spent."""
        return self.__dict__.get("data")

    @property
    def spends_budget(self) -> bool:
        """Whether private rows are read that no budget has paid for yet."""
        return True

    @property
    def chosen_delta(self) -> float | None:
        """The delta that was given; None where it follows from the number of records."""
        return None if self.delta == "auto" else self.delta

    @property
    def adjacency(self) -> Adjacency:
        """How neighbors differ: by a record that one of them does not have."""
        return Adjacency.ADD_REMOVE


class EitherNeighbors(PrivateTraining):
    """Training whose neighbors may also differ by replacing a record."""

    replace_one: ReplaceOne = False

    @property
    def adjacency(self) -> Adjacency:
        """How neighbors differ."""
        return Adjacency.REPLACE_ONE if self.replace_one else Adjacency.ADD_REMOVE


class RecordTraining(PrivateTraining):
    """The options of training whose steps take single records."""

    batch: Batch = 256
    grow_to: Annotated[
        int | None,
        Field(ge=2, description="Let batches grow: from the batch size to this one, doubling, each for as many steps."),
        Option(Group.TRAINING),
    ] = None
    physical: Annotated[
        Physical[int],
        BeforeValidator(count_or_auto),
        Field(description="Records worked on at a time, or 'auto': what memory allows. No influence on the result."),
        Varied(metavar="N|auto"),
    ] = 32


def _label_names(value: object) -> object:
    parts = split_at_commas(() if value is None else value)
    if not isinstance(parts, tuple | list):
        return parts
    names = tuple(map(str, parts))
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadParameterError(
            "label-listed-twice",
            "'{label}' is listed twice: give every label once, as in {option.labels[a,b,c]}",
            label=quotable(twice),
        )
    return names


class TaskTraining(TaskRows, EitherNeighbors):
    """The options of training a model for one of the tasks, by records or by users."""

    data: Data
    output: Output[Path]
    model: Model[str] = "minilm"
    tokenizer: Tokenizer = None
    rank: Rank = 8
    start_seed: StartSeed = None
    clipping: Clipping = "flat"
    schedule: Schedule = "linear"
    average: Annotated[
        float | None,
        Field(gt=0, le=1, description="Save the mean of the weights after each of the last steps, not the last "
              "weights: over this share of all steps. It costs no budget and evens out noise."),
        Option(Group.TRAINING, metavar="SHARE"),
    ] = None  # fmt: skip
    labels: Annotated[
        Labels[tuple[str, ...]],
        BeforeValidator(_label_names),
        Field(description="All labels, with commas, if they are known: then DATA does not even show which ones occur."),
    ] = ()
    test: TestRows = None
    group_column: GroupColumn = None
    by_class: ByClass = False
    tensorboard: Tensorboard = False

    @model_validator(mode="after")
    def _groups_are_of_test_rows(self) -> Self:
        if self.test is None and (self.group_column is not None or self.by_class):
            raise BadParameterError(
                "groups-without-test",
                "scores by group are those of test rows, which are not private: give {option.test[ROWS]}, or score "
                "later, with 'tacit predict'",
            )
        return self

    @property
    def chosen_start_seed(self) -> int:
        """The seed of new weights: a resumed run starts from the same ones."""
        return (self.seed or 0) if self.start_seed is None else self.start_seed

    def task_options(self) -> dict[str, Any]:
        """Options of this task alone, as its class takes them."""
        return {}

    def needs_with(self, strategy: str, epsilon: float | None) -> list[Ability]:
        """The packages that model, strategy, budget and rows need."""
        return [
            *needs_of_model(self.model, self.tokenizer, strategy),
            *([TENSORBOARD] if self.tensorboard else []),
            *needs_of_budget(epsilon),
            *needs_of_ledger(self.ledger),
            *needs_of_rows(self.data),
            *needs_of_rows(self.test),
            *([] if self.test is None else self.scoring),
        ]


Trained = TypeVar("Trained", bound=TaskTraining)


class TaskConfigs(Mapping[str, type[Trained]]):
    """The configuration of each task by name. Those of plug-ins are made when they are used.

    base      what the configurations of all tasks have
    job       the job that they configure: train or federate
    own       those of Tacit's tasks that have further options
    by_model  what the configurations of a plug-in's task have, by the class of its model
    """

    def __init__(
        self,
        base: type[Trained],
        job: str,
        own: Sequence[type[Trained]] = (),
        by_model: Mapping[str, type[Trained]] | None = None,
    ) -> None:
        self._base = base
        self._job = job
        self._own = _own_configs(base, job, own)
        self._by_model = by_model or {}
        self._of_plugins: dict[str, type[Trained]] = {}

    def __getitem__(self, task: str) -> type[Trained]:
        if task in self._own:
            return self._own[task]
        if task not in TASKS:
            raise KeyError(task)
        if task not in self._of_plugins:
            from tacit.jobs.training.plugin_tasks import config_of_plugin

            self._of_plugins[task] = config_of_plugin(task, self._job, self._base, self._own, self._by_model)
        return self._of_plugins[task]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._own, *TASKS.of_plugins()])

    def __len__(self) -> int:
        return len(self._own) + len(TASKS.of_plugins())

    def __contains__(self, task: object) -> bool:
        return task in self._own or task in TASKS

    @property
    def own(self) -> Mapping[str, type[Trained]]:
        """The configurations of Tacit's tasks."""
        return self._own


def _own_configs(base: type[Trained], job: str, own: Sequence[type[Trained]]) -> dict[str, type[Trained]]:
    """A configuration of `base` for each task, with the columns of its rows; `own` are those with further options."""
    written = {config.task: config for config in own}
    return {
        task: written.get(task) or cast("type[Trained]", type(
            f"{job}-{task}".title().replace("-", ""),
            (rows, base),
            {"__doc__": rows.__doc__, "__module__": base.__module__, "job": f"{job} {task}",
             "__annotations__": {"job": ClassVar[str]}},
        ))
        for task, rows in TASK_ROWS.items()
    }  # fmt: skip


def needs_of_model(model: str, tokenizer: str | None, strategy: str, engine: str = "auto") -> list[Ability]:
    """The packages that training a model needs."""
    pieces_of_minilm = model == "bilstm" and not tokenizer
    return [
        *needs_of_encoder("minilm" if pieces_of_minilm else model),
        *([ADAPTERS] if strategy in ADAPTED else []),
        *([OPACUS] if engine == "opacus" else []),
    ]


def needs_of_budget(epsilon: float | None) -> list[Ability]:
    """The packages that accounting needs; none without noise."""
    return [ACCOUNTING] if epsilon is not None and epsilon != math.inf else []


def missing_epsilon() -> BadParameterError:
    """The error of a training on private records that says nothing about privacy."""
    return BadParameterError(
        "missing-epsilon",
        "say how much privacy a record gets: {option.epsilon[3]}, or {option.epsilon[inf]} for none at all",
    )
