"""Models trained so that no single record can be recognized in them.

result = tacit.train("classify", "reviews.csv", label_column="stars", epsilon=3, output="model")
print(result.card)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from tacit.errors import BadParameterError, check_choice
from tacit.jobs.answer_fields import ThresholdRows
from tacit.jobs.config import Config, Group, Option, Varied, quotable
from tacit.jobs.fields import (
    Bound,
    ComputeAgain,
    Data,
    GradientEngine,
    LayerPrecision,
    Optimizer,
    PublicName,
    Released,
    Strategy,
    Vectors,
)
from tacit.jobs.sources import needs_of_rows
from tacit.jobs.training.by_user import UserTraining
from tacit.jobs.training.helped import HelpedTraining
from tacit.jobs.training.options import (
    TaskConfigs,
    TaskTraining,
    missing_epsilon,
)
from tacit.jobs.training.result import TrainingProgress, TrainingResult, VectorTrainingResult
from tacit.jobs.training.tasks import AnswerRows, ClassifyRows, RegressRows, TagRows
from tacit.jobs.values import split_at_commas
from tacit.needs import OPACUS, Ability, needs_of_ledger, needs_of_place
from tacit.needs import check as check_needs
from tacit.training.start import RANDOM_START, is_from_scratch, usual_rate

if TYPE_CHECKING:
    pass

C = TypeVar("C", bound=Config)


class TrainConfig(TaskTraining, HelpedTraining, UserTraining):
    """Records, a model for a task, and what pays for what it learns."""

    usual_strategy: ClassVar[str] = "lora"

    strategy: Strategy[str | None] = None
    bound: Bound = 3.0
    gradient_engine: GradientEngine = "auto"
    optimizer: Annotated[
        Optimizer[Literal["adamw", "adam", "sgd", "adam-bc"]],
        Field(
            description="How steps follow from gradients; adam-bc takes the known variance of the noise off Adam's "
            "second moment."
        ),
    ] = "adamw"
    precision: LayerPrecision = "float32"
    gradient_checkpointing: ComputeAgain = False
    shard: Annotated[
        bool,
        Field(
            description="Of several processes (torchrun), each holds a part of the weights and of the optimizer: for "
            "models that do not fit into the memory of one together with it."
        ),
        Option(Group.RUN),
    ] = False
    noise_generator: Annotated[
        Literal["secure", "device"],
        Field(
            description="What draws the noise: the secure generator on the processor, or 'device', that of the "
            "graphics card, which is faster and not cryptographic; the card names it."
        ),
        Option(Group.PRIVACY),
    ] = "secure"
    released: Released = None
    public: Annotated[
        PublicName, Field(description="The texts are public; this is their name on the card. No noise.")
    ] = None

    @model_validator(mode="after")
    def _says_what_protects_a_record(self) -> Self:
        if self.released is not None and self.public is not None:
            raise BadParameterError(
                "public-and-released",
                "text is either public or released: give {option.public} or {option.released}, not both",
            )
        without_noise = self.released is not None or self.public is not None
        if without_noise and self.epsilon not in (None, math.inf):
            raise BadParameterError(
                "needless-epsilon",
                "public and released text needs no noise: leave {option.epsilon} out, or the other option",
            )
        if self.epsilon is None and not without_noise and not self.reads_vectors:
            raise missing_epsilon()
        return self

    @model_validator(mode="after")
    def _users_have_private_texts_and_one_plan(self) -> Self:
        if self.user_column is None:
            return self
        if self.tune is not None or self.noise != "independent":
            raise BadParameterError(
                "users-with-another-plan",
                "a training for users has a plan of its own: leave out {option.tune} and {option.noise}, or "
                "{option.user_column}",
            )
        if self.epsilon is None or self.reads_vectors:
            raise BadParameterError(
                "users-without-noise",
                "{option.user_column} says to whom a promise about private texts is made: give {option.epsilon} and "
                "rows of texts, or leave it out",
            )
        return self

    @property
    def spends_budget(self) -> bool:
        return self.epsilon is not None

    def needs(self) -> list[Ability]:
        engine = [OPACUS] if self.gradient_engine == "opacus" else []
        return [*self.needs_with(self.chosen_strategy, self.epsilon), *engine, *self.needs_of_help()]

    @property
    def chosen_strategy(self) -> str:
        return self.strategy or ("full" if is_from_scratch(self.model) else self.usual_strategy)

    def rate(self, *, private: bool) -> float:
        """The learning rate, by default the usual one."""
        if self.learning_rate is not None:
            return self.learning_rate
        return usual_rate(RANDOM_START if is_from_scratch(self.model) else self.chosen_strategy, private=private)

    @property
    def chosen_pooling(self) -> str:
        return "auto"

    @property
    def rows_of_threshold(self) -> object:
        """The public rows that choose a threshold of the trained model, if it has one."""
        return None


class _Pooled(TrainConfig):
    usual_strategy = "bias"

    pooling: Annotated[
        Literal["auto", "mean", "own"],
        Field(description="What the head reads: mean (of all positions), own (the model's habit)."),
        Option(Group.MODEL),
    ] = "auto"

    @property
    def chosen_pooling(self) -> str:
        return self.pooling


class TrainClassify(ClassifyRows, _Pooled):
    """One label for each text, or pair of texts."""

    job: ClassVar[str] = "train classify"

    data: Annotated[Data, Varied(metavar="[DATA]")] = None
    vectors: Annotated[
        Vectors,
        Field(description="Train on this file of 'tacit embed' in place of texts: released vectors (with their card) "
              "at no cost, others with an epsilon."),
        Varied(group=Group.DATA, metavar="FILE"),
    ] = None  # fmt: skip
    label_smoothing: Annotated[
        float,
        Field(description="Share of a label that is spread over all: less sure, less wrong."),
        Option(Group.TRAINING),
    ] = 0.1

    @model_validator(mode="after")
    def _texts_or_vectors(self) -> Self:
        if (self.data is None) == (self.vectors is None):
            raise BadParameterError(
                "texts-or-vectors", "give rows of texts as data, or a file of vectors with {option.vectors[FILE]}"
            )
        if self.vectors is not None and (self.released is not None or self.public is not None):
            raise BadParameterError(
                "texts-or-vectors",
                "vectors have their card beside them: leave out {option.released} and {option.public}",
            )
        return self

    @property
    def reads_vectors(self) -> bool:
        return self.vectors is not None

    @property
    def charged_rows(self) -> object:
        return self.data if self.vectors is None else self.vectors

    def needs(self) -> list[Ability]:
        if self.vectors is None:
            return super().needs()
        return [*needs_of_place(self.vectors), *needs_of_ledger(self.ledger)]

    def task_options(self) -> dict[str, Any]:
        return {"smoothing": self.label_smoothing}


def _two_numbers(value: object) -> object:
    try:
        low, high = (float(part) for part in split_at_commas(value))
    except (TypeError, ValueError):
        if value is None:
            return None
        raise BadParameterError(
            "bad-label-range",
            "{option.label_range} is two numbers with a comma, as in 0,5, not '{value}'",
            value=quotable(value),
        ) from None
    return low, high


class TrainRegress(RegressRows, _Pooled):
    """A number for each text, or pair of texts."""

    job: ClassVar[str] = "train regress"

    label_range: Annotated[
        tuple[float, float] | None,
        BeforeValidator(_two_numbers),
        Field(
            description="Smallest and largest possible label, known beforehand, as in 0,5: the model learns on this "
            "scale, and labels beyond count as the nearer end."
        ),
        Option(Group.TRAINING, comma_separated=True, metavar="LOW,HIGH"),
    ] = None

    def task_options(self) -> dict[str, Any]:
        if self.label_range is None:
            return {}
        low, high = self.label_range
        return {"mean": (low + high) / 2, "scale": (high - low) / 2, "bounded": True}


class TrainTag(TagRows, TrainConfig):
    """A tag for each word."""

    job: ClassVar[str] = "train tag"
    usual_strategy = "last-2"


class TrainAnswer(AnswerRows, TrainConfig):
    """The part of a context that answers a question, word for word."""

    job: ClassVar[str] = "train answer"

    unanswerable: Annotated[
        bool,
        Field(description="Whether a question may have no answer: known beforehand, never read off DATA."),
        Option(Group.TRAINING, off_name="always_answered"),
    ] = True
    windows: Annotated[
        Literal["all", "best"],
        Field(
            description="What is learned from of a context longer than the length: all its windows, added up and "
            "clipped as one record, or the best one alone, which shows the answer."
        ),
        Option(Group.TRAINING),
    ] = "all"
    most_windows: Annotated[
        int,
        Field(ge=1, le=100, description="all: how many windows of a record count at most; a public number."),
        Option(Group.TRAINING),
    ] = 4
    stride: Annotated[
        int | None,
        Field(ge=1, description="Word pieces that neighboring windows share, in training and predictions; by default a "
              "quarter of the length."),
        Option(Group.TRAINING),
    ] = None  # fmt: skip
    threshold_rows: Annotated[
        ThresholdRows,
        Field(
            description="Public rows with the columns of DATA: after training they choose how much better than every "
            "answer no answer must score to be given, so that F1 is largest."
        ),
    ] = None

    @model_validator(mode="after")
    def _a_threshold_is_for_questions_without_answer(self) -> Self:
        if self.threshold_rows is not None and not self.unanswerable:
            raise BadParameterError(
                "threshold-without-use",
                "every question has an answer, so no threshold is used: leave out {option.threshold_rows}, or say that "
                "questions may have none ({option.unanswerable})",
            )
        return self

    @property
    def rows_of_threshold(self) -> object:
        return self.threshold_rows

    def needs(self) -> list[Ability]:
        return [*super().needs(), *needs_of_rows(self.threshold_rows)]

    def task_options(self) -> dict[str, Any]:
        return {
            "unanswerable": self.unanswerable,
            "learned": self.windows,
            "most_windows": self.most_windows,
            "stride": self.stride or 0,
        }


CONFIGS: Final[TaskConfigs[TrainConfig]] = TaskConfigs(
    TrainConfig,
    "train",
    (TrainClassify, TrainRegress, TrainTag, TrainAnswer),
    by_model={"AutoModelForSequenceClassification": _Pooled},
)
"""The configuration of each task, those of plug-ins too."""


def run(config: TrainConfig, progress: TrainingProgress | None = None) -> TrainingResult | VectorTrainingResult:
    """A model that has learned from the records of a configuration, in its folder, with its card."""
    if isinstance(config, TrainClassify) and config.reads_vectors:
        from tacit.jobs.training.vector_models import train_on_vectors

        return train_on_vectors(config)
    if config.tune is not None:
        from tacit.jobs.training.searching import train_by_search

        return train_by_search(config, progress or TrainingProgress())
    from tacit.jobs.training.records import train_on_records

    return train_on_records(config, progress or TrainingProgress())


def train(
    task: str,
    data: object = None,
    *,
    output: str | Path,
    epsilon: float | None = None,
    progress: TrainingProgress | None = None,
    **options: Any,
) -> TrainingResult | VectorTrainingResult:
    """A model for a task, trained under differential privacy; files or data in memory, options as in the task's
    configuration (`tacit.jobs.train.CONFIGS`).

    task     classify, regress, tag, answer, write, fill or translate, or a task of a plug-in
    data     a file, a list of rows, a pandas frame, an Arrow table, a data set
    output   the folder of the model and its card; it must be empty or not exist
    epsilon  the budget of one record; infinite trains without privacy, for comparison

        rows = [{"text": "a fine film", "label": "good"}, ...]
        result = tacit.train("classify", rows, epsilon=3, output="model")
        result.guarantee, result.folder
    """
    config = config_for(CONFIGS, task)(data=data, output=Path(output), epsilon=epsilon, **options)
    check_needs("tacit.train", config.needs())
    return run(config, progress)


def config_for(configs: Mapping[str, type[C]], task: str) -> type[C]:
    """The configuration of a task."""
    check_choice(task, configs, code="no-such-task", what="task")
    return configs[task]
