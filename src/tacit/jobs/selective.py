"""Models that learn the harmless part of texts without noise, and the sensitive places privately.

result = tacit.jobs.selective.train("letters.csv", sensitive="patterns", epsilon=3, output="writer")
print(result.card)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.errors import BadParameterError
from tacit.jobs.config import Group, Option
from tacit.jobs.fields import (
    Data,
    LabelColumn,
    Length,
    Model,
    Output,
    PublicName,
    SomeEpochs,
    Strategy,
    Task,
    TextColumn,
    TrainingEpsilon,
)
from tacit.jobs.sources import Source, needs_of_rows
from tacit.jobs.training.options import ADAPTED, RecordTraining, needs_of_budget
from tacit.jobs.training.result import TrainingProgress, TrainingResult
from tacit.needs import ADAPTERS, Ability, needs_of_encoder, needs_of_language_model, needs_of_ledger
from tacit.training.start import usual_rate

if TYPE_CHECKING:
    from tacit.training.plan import TrainingPlan
    from tacit.training.redaction import Redacted
    from tacit.training.run import StepReport

WRITER = "smollm2"
USUAL_MODELS = {"write": WRITER, "fill": "minilm", "classify": "minilm"}
FIRST_RATES = 0.2
"""Without noise, smaller steps than the private phase takes."""


class SelectiveConfig(RecordTraining):
    """Private records, what is sensitive in them, and two phases of training."""

    job: ClassVar[str] = "train selective"

    data: Annotated[Data, Field(description="The private records (csv, tsv, jsonl, txt …).")]
    output: Output[Path]
    epsilon: Annotated[TrainingEpsilon[float], Field(description="The privacy budget of the second, private phase.")]
    sensitive: Annotated[
        str,
        Field(description="What is sensitive: 'patterns', 'spacy', 'spacy:PIPELINE', or a file, one word a line."),
        Option(Group.PRIVACY),
    ] = "patterns"
    first: Annotated[
        Literal["redacted", "public", "private"],
        Field(
            description="First phase: 'redacted' (only redacted places are protected), or for whole records 'public' "
            "or 'private'."
        ),
        Option(Group.PRIVACY),
    ] = "redacted"
    public_data: Annotated[
        Source,
        Field(description="For a public first phase: a file of public texts."),
        Option(Group.DATA, metavar="FILE"),
    ] = None
    public: Annotated[PublicName, Field(description="The name by which that text is known to be public.")] = None
    first_epsilon: Annotated[
        float | None,
        Field(description="For a private first phase: its budget, which is added."),
        Option(Group.PRIVACY),
    ] = None
    task: Task[Literal["write", "fill", "classify"]] = "write"
    text_column: TextColumn = "text"
    label_column: Annotated[LabelColumn[str], Field(description="For classify: the column of labels.")] = "label"
    model: Annotated[
        Model[str | None],
        Field(description="A folder or a hub name; by default 'smollm2' for write, 'minilm' for fill and classify."),
    ] = None
    strategy: Annotated[Strategy[str], Field(description="What is trained: lora, full, last-2 …")] = "lora"
    first_epochs: Annotated[SomeEpochs, Field(description="Passes of the first phase.")] = 1.0
    epochs: Annotated[SomeEpochs, Field(description="Passes of the second phase, on average.")] = 5.0
    first_batch: Annotated[int, Field(ge=1, description="Records per step without noise."), Option(Group.TRAINING)] = 32
    length: Length = 64

    def needs(self) -> list[Ability]:
        weights = needs_of_language_model if self.chosen_model == WRITER else needs_of_encoder
        return [
            *weights(self.chosen_model),
            *([ADAPTERS] if self.strategy in ADAPTED else []),
            *needs_of_budget(self.epsilon),
            *needs_of_ledger(self.ledger),
            *needs_of_rows(self.data),
        ]

    @model_validator(mode="after")
    def _first_phase_has_what_it_needs(self) -> Self:
        if (self.first == "public") != (self.public_data is not None):
            raise BadParameterError(
                "public-phase-without-text",
                "{option.first[public]} and {option.public_data} belong together: give both or none",
            )
        if self.first == "public" and not (self.public or "").strip():
            raise BadParameterError(
                "public-text-without-name",
                "name the public text with {option.public[NAME]}: it is learned without any protection",
            )
        if (self.first == "private") != (self.first_epsilon is not None):
            raise BadParameterError(
                "private-phase-without-budget",
                "{option.first[private]} and {option.first_epsilon} belong together: give both or none",
            )
        if self.sensitive == "none":
            raise BadParameterError(
                "nothing-sensitive",
                "selective training needs something sensitive: give patterns, spacy or a word list",
            )
        return self

    @model_validator(mode="after")
    def _model_fits_the_task(self) -> Self:
        if self.chosen_model == WRITER and self.task != "write":
            raise BadParameterError(
                "model-only-writes",
                "'{model}' writes texts: for '{task}' give another {option.model}, such as minilm",
                model=WRITER,
                task=self.task,
            )
        return self

    @property
    def chosen_model(self) -> str:
        return self.model or USUAL_MODELS[self.task]

    @property
    def rate(self) -> float:
        """The learning rate of the private phase."""
        return usual_rate(self.strategy, private=True) if self.learning_rate is None else self.learning_rate

    def columns(self) -> dict[str, str]:
        """The columns of the task, by role; they are saved with the model, which asks for them again to predict."""
        text = {"text": self.text_column}
        return {**text, "label": self.label_column} if self.task == "classify" else text


class SelectiveProgress(TrainingProgress):
    """Callbacks of the redaction and of both phases. What was redacted is private."""

    def redacted(self, redacted: Redacted) -> None:
        """The texts are redacted, and nothing has been trained yet."""

    def phases_planned(self, first: TrainingPlan, second: TrainingPlan) -> None:
        """Noise and steps of both phases are fixed."""

    def phase_stepped(self, phase: int, now: StepReport) -> None:
        """A step of the phase 1 or 2 is done."""


def run(config: SelectiveConfig, progress: SelectiveProgress | None = None) -> TrainingResult:
    """A model that has learned in two phases, in its folder, with its card."""
    from tacit.jobs.training.phases import train_in_two_phases

    return train_in_two_phases(config, progress or SelectiveProgress())


def redacted_texts(config: SelectiveConfig, most: int) -> list[str]:
    """The first texts with placeholders for what is sensitive: private, for a look at what the redaction leaves."""
    from tacit.jobs.training.phases import redaction_of

    return [row["text"] for row in redaction_of(config).redacted.rows[:most]]


def train(
    data: object,
    *,
    output: str | Path,
    epsilon: float,
    progress: SelectiveProgress | None = None,
    **options: Any,
) -> TrainingResult:
    """A model that learns redacted text without noise, then the original text under differential privacy; a file or
    data in memory, options as in `SelectiveConfig`."""
    return run(SelectiveConfig(data=data, output=Path(output), epsilon=epsilon, **options), progress)
