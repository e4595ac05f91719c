"""Predictions of a trained model, and their scores where the truth is known.

result = tacit.predict("model", ["a fine film", "a waste of time"])
result.predictions
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, model_validator

from tacit.errors import BadInputError, BadParameterError
from tacit.evaluation.predictions import main_score
from tacit.jobs.answer_fields import ThresholdRows
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import (
    Data,
    Device,
    Force,
    Model,
    Output,
    Physical,
    Temperature,
    UserColumn,
)
from tacit.jobs.group_fields import ByClass, GroupColumn
from tacit.jobs.sources import needs_of_rows
from tacit.needs import MODELS, Ability, needs_of_place
from tacit.needs import check as check_needs
from tacit.progress import WorkProgress
from tacit.report import Report

if TYPE_CHECKING:
    from tacit.evaluation.groups import Reader, WantedGroups
    from tacit.training.tasks.ranked_answers import RankedAnswer


def _pairs(value: object) -> object:
    """Columns by role as ROLE=NAME."""
    return tuple(f"{role}={name}" for role, name in value.items()) if isinstance(value, Mapping) else value


class PredictConfig(Config):
    """A trained model, the rows to predict for, and where they go."""

    job: ClassVar[str] = "predict"

    model: Annotated[
        Model[Path],
        Field(description="A folder that 'tacit train' has made."),
        Varied(positional=True, metavar="MODEL"),
    ]
    data: Annotated[Data, Field(description="The rows to predict for: csv, tsv, jsonl, parquet, …")]
    output: Annotated[Output[Path | None], Field(description="Where the rows go, with a column of predictions.")] = None
    role_columns: Annotated[
        tuple[str, ...],
        BeforeValidator(_pairs),
        Field(description="Where the model finds what it reads, if the names differ: text=review …"),
        Option(Group.DATA, metavar="ROLE=NAME", old_names=("-c", "columns")),
    ] = ()
    prediction_column: Annotated[str, Field(description="Name of the new column."), Option(Group.DATA)] = "prediction"
    temperature: Annotated[
        Temperature[float | None],
        Field(gt=0, le=10, description="translate: draw texts at this temperature, not the likeliest ones; a row that "
              "stands there twice then has two of them."),
    ] = None  # fmt: skip
    best: Annotated[
        int | None,
        Field(ge=1, le=20, description="answer: also write so many of the best answers to each question, as JSON with "
              "their scores, in a column of their own."),
        Option(Group.DATA, metavar="N"),
    ] = None  # fmt: skip
    threshold: Annotated[
        float | None,
        Field(description="answer: give no answer where it scores higher than every other by more than this; by "
              "default what training has chosen."),
        Option(Group.DATA),
    ] = None  # fmt: skip
    threshold_rows: Annotated[
        ThresholdRows,
        Field(description="answer: public rows with their answers, which choose the threshold of these predictions."),
    ] = None
    score: Annotated[bool, Field(description="Compare with the target column of DATA."), Option(Group.MEASURES)] = False
    group_column: GroupColumn = None
    by_class: ByClass = False
    user_column: Annotated[
        UserColumn[str | None],
        Field(description="Whose row it is: intervals of groups then draw users again, not rows."),
        Varied(group=Group.MEASURES),
    ] = None
    beside: Annotated[
        Path | None,
        Field(description="The same model without privacy: the report says which group pays how much for it."),
        Option(Group.MEASURES, metavar="MODEL"),
    ] = None
    physical: Annotated[
        Physical[int], Field(ge=1, description="Rows worked on at a time."), Varied(old_names=("batch",))
    ] = 64
    device: Device = "auto"
    force: Annotated[Force, Field(description="Replace an existing output file.")] = False

    @model_validator(mode="after")
    def _groups_for_what_compares_them(self) -> Self:
        if self.group_column is None and not self.by_class:
            for name in ("user_column", "beside"):
                if getattr(self, name) is not None:
                    raise BadParameterError(
                        "comparison-without-groups",
                        "{option." + name + "} belongs to scores by group: say which groups, with {option.group_column"
                        "[NAME]} or {option.by_class}",
                    )
        return self

    @property
    def scored(self) -> bool:
        """Whether predictions are compared with the truth; scores by group need it, too."""
        return self.score or self.group_column is not None or self.by_class

    def wanted(self, read: Reader) -> WantedGroups:
        """The groups that these options ask for, read from the rows."""
        from tacit.evaluation.groups import wanted_groups

        return wanted_groups(read, self.group_column, by_class=self.by_class, user_column=self.user_column)

    def needs(self) -> list[Ability]:
        from tacit.jobs.training.vector_models import is_vector_model

        models = [] if is_vector_model(self.model) else [MODELS]
        rows = [*needs_of_rows(self.data), *needs_of_rows(self.threshold_rows)]
        return [*models, *rows, *needs_of_place(str(self.output or ""))]

    @model_validator(mode="after")
    def _has_one_threshold(self) -> Self:
        if self.threshold is not None and self.threshold_rows is not None:
            raise BadParameterError(
                "two-thresholds",
                "a threshold is given or chosen: {option.threshold} or {option.threshold_rows}",
            )
        return self

    @property
    def wants_answers(self) -> bool:
        """Whether it has options that only answers to questions have."""
        return self.best is not None or self.threshold is not None or self.threshold_rows is not None

    def check_answers(self, task: str, *, answers: bool) -> None:
        """Refuse options of answers for a model of another task."""
        if self.wants_answers and not answers:
            raise BadParameterError(
                "only-for-answers",
                "a model for '{task}' ranks no answers: leave out {option.best}, {option.threshold} and "
                "{option.threshold_rows}",
                task=task,
            )

    def named_columns(self, roles: tuple[str, ...]) -> dict[str, str]:
        """The columns that were named, by role."""
        named = {}
        for item in self.role_columns:
            role, equals, column = item.partition("=")
            if not equals or role not in roles:
                raise BadParameterError(
                    "bad-role",
                    "{option.role_columns} is ROLE=NAME with one of {roles}, not '{item}'",
                    roles=", ".join(roles),
                    item=item,
                )
            named[role] = column
        return named


@dataclass(frozen=True)
class PredictionResult:
    """A prediction for each row, in order, written like the target column; scores, if the truth was compared.

    best       the best answers to each question, if they were asked for
    threshold  from which score no answer was given, if rows chose it
    remarks    what was not read of the rows
    """

    task: str
    predictions: list[str] = field(repr=False)
    scores: Report | None = None
    path: Path | None = None
    best: list[list[RankedAnswer]] | None = field(default=None, repr=False)
    threshold: float | None = None
    remarks: tuple[str, ...] = ()

    @property
    def score(self) -> float | None:
        """The measure of the task, if the predictions were compared with the truth."""
        return None if self.scores is None else main_score(self.scores.sections[0])

    def __len__(self) -> int:
        return len(self.predictions)


def run(config: PredictConfig, progress: WorkProgress | None = None) -> PredictionResult:
    """The predictions of a model; they are written beside the rows if an output is named."""
    from tacit.jobs.training.predictions import predict_for_rows
    from tacit.jobs.training.vector_models import is_vector_model, predict_with_vectors

    if config.output is not None and config.output.exists() and not config.force:
        raise BadInputError("output-exists", "{path} exists: give another name, or {option.force}", path=config.output)
    if is_vector_model(config.model):
        config.check_answers("classify", answers=False)
        return predict_with_vectors(config)
    return predict_for_rows(config, progress or (lambda what, done, total: None))


def predict(
    model: str | Path,
    data: object,
    *,
    output: str | Path | None = None,
    progress: WorkProgress | None = None,
    **options: Any,
) -> PredictionResult:
    """The predictions of a model that `tacit.train` has made; files or data in memory, options as in `PredictConfig`.

    result = tacit.predict("model", ["a fine film"])
    result.predictions
    tacit.predict("model", "test.csv", score=True).scores
    tacit.predict("model", "test.csv", group_column="dialect", beside="model-without-privacy").scores
    """
    place = None if output is None else Path(output)
    config = PredictConfig(model=Path(model), data=data, output=place, **options)
    check_needs("tacit.predict", config.needs())
    return run(config, progress)
