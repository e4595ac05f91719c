"""Synthetic rows: a model learns to write like private rows, under differential privacy, and writes others.

made = tacit.synthesize("reviews.csv", by="training", label_columns="stars", epsilon=3, rows=1_000, output="rows.csv")
made.texts, made.card
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from tacit.errors import BadParameterError
from tacit.jobs.config import Group, Option, Varied
from tacit.jobs.fields import (
    Canaries,
    Column,
    ComputeAgain,
    CountShare,
    Data,
    Force,
    LabelColumns,
    Labels,
    LayerPrecision,
    Length,
    Model,
    Output,
    SampleSeed,
    Shortest,
    Strategy,
    SynthesisWay,
    SyntheticRowCount,
    Temperature,
    TrainingEpsilon,
)
from tacit.jobs.named_labels import NamedLabels, bad_labels, named_labels
from tacit.jobs.released_rows import ReleasedRows
from tacit.jobs.sources import needs_of_rows
from tacit.jobs.training.by_user import UserTraining
from tacit.jobs.training.options import (
    ADAPTED,
    EitherNeighbors,
    missing_epsilon,
    needs_of_budget,
)
from tacit.jobs.training.result import TrainingProgress
from tacit.needs import (
    ADAPTERS,
    MODELS,
    PLOTS,
    Ability,
    needs_of_language_model,
    needs_of_ledger,
    needs_of_place,
)
from tacit.places import refuse_existing
from tacit.report import Report
from tacit.text.files import format_of


class TrainedSynthesisConfig(EitherNeighbors, UserTraining):
    """Private rows, what pays for what a model learns of them, and how it writes others."""

    job: ClassVar[str] = "synthesize training"

    data: Annotated[
        Data,
        Field(description="The private rows (csv, tsv, jsonl, parquet; also .gz)."),
        Varied(metavar="[DATA]"),
    ] = None
    output: Annotated[Output[Path], Field(description="The file of synthetic rows; its card stands beside it.")] = Path(
        "synthetic.csv"
    )
    by: SynthesisWay[Literal["training"]] = "training"
    rows: SyntheticRowCount[int] = 1_000
    column: Annotated[Column[str], Varied(old_names=("text_column",))] = "text"
    label_columns: LabelColumns = ()
    labels: Annotated[
        Labels[NamedLabels],
        BeforeValidator(named_labels),
        Field(description="All names of a label column, if they are known; otherwise those in DATA are declared "
              "public."),
        Varied(comma_separated=False, metavar="COLUMN=A,B,C"),
    ] = ()  # fmt: skip
    keep_model: Annotated[
        Path | None,
        Field(description="The folder of the model; by default beside the output."),
        Option(Group.DATA, metavar="DIR"),
    ] = None
    from_model: Annotated[
        Path | None,
        Field(description="Write more with such a folder, at no further cost."),
        Option(Group.DATA, metavar="DIR"),
    ] = None
    epsilon: Annotated[
        TrainingEpsilon[float | None], Field(description="The privacy budget of one record, for all; 'inf': none.")
    ] = None
    count_share: CountShare = 0.05
    balanced: Annotated[
        bool,
        Field(description="As many rows for every label, and no budget for counts."),
        Option(Group.PRIVACY),
    ] = False
    model: Annotated[Model[str], Field(description="'smollm2', a folder, or a hub name: a causal language model.")] = (
        "smollm2"
    )
    strategy: Annotated[Strategy[str], Field(description="What is trained: lora, full, last-2 …")] = "lora"
    precision: LayerPrecision = "float32"
    gradient_checkpointing: ComputeAgain = False
    length: Annotated[Length, Field(description="Word pieces of a row, control codes included.")] = 64
    temperature: Temperature[float] = 1.0
    top_p: Annotated[float, Field(description="Nucleus sampling."), Option(Group.WRITING)] = 0.95
    sample_seed: SampleSeed = None
    shortest: Shortest = 2
    keep_duplicates: Annotated[bool, Field(description="Texts may repeat each other."), Option(Group.WRITING)] = False
    perplexity: Annotated[
        float | None,
        Field(description="Drop texts that the public model finds less likely than this."),
        Option(Group.WRITING),
    ] = None
    check: Annotated[
        Path | None,
        Field(description="Compare the finished texts with DATA and write a private report (html or json)."),
        Option(Group.CHECK, metavar="REPORT", private=True),
    ] = None
    canaries: Annotated[
        Canaries,
        Field(description="Coins of 'tacit audit canaries' whose texts stand in DATA."),
        Varied(group=Group.CHECK),
    ] = None
    force: Annotated[Force, Field(description="Replace existing files.")] = False

    def needs(self) -> list[Ability]:
        if self.from_model is not None:
            return [MODELS, *needs_of_place(str(self.output))]
        return [
            *needs_of_language_model(self.model),
            *([ADAPTERS] if self.strategy in ADAPTED else []),
            *needs_of_budget(self.epsilon),
            *needs_of_ledger(self.ledger),
            *needs_of_rows(self.data),
            *needs_of_place(str(self.output)),
            *([PLOTS] if self.check is not None else []),
        ]

    @model_validator(mode="after")
    def _there_is_something_to_write_with(self) -> Self:
        if self.from_model is None and self.data is None:
            raise BadParameterError(
                "rows-missing",
                "give the private rows, or {option.from_model[DIR]} to write with a model that is there already",
            )
        if self.from_model is None and self.epsilon is None:
            raise missing_epsilon()
        if self.from_model is not None and (self.epsilon is not None or self.keep_model is not None):
            raise BadParameterError(
                "budget-of-existing-model",
                "a model that is there has its budget already: leave {option.epsilon} and {option.keep_model} out",
            )
        if self.from_model is not None and self.user_column is not None:
            raise BadParameterError(
                "users-of-existing-model",
                "a model that is there has made its promise already, to records or to users: leave out "
                "{option.user_column}",
            )
        return self

    @model_validator(mode="after")
    def _a_check_has_rows_to_compare(self) -> Self:
        if self.check is None and self.canaries is not None:
            raise BadParameterError(
                "canaries-without-check",
                "{option.canaries} belong to a check: name its report with {option.check[REPORT]}",
            )
        if self.check is not None and self.data is None:
            raise BadParameterError("check-without-rows", "a check compares with the private rows: give DATA as well")
        return self

    @model_validator(mode="after")
    def _labels_are_of_label_columns(self) -> Self:
        if self.column in self.label_columns:
            raise BadParameterError(
                "text-is-label",
                "'{column}' cannot be the text and a label: name another {option.label_columns}",
                column=self.column,
            )
        for column, names in self.labels:
            if column not in self.label_columns:
                raise bad_labels(f"{column}={','.join(names)}")
        return self

    @property
    def spends_budget(self) -> bool:
        return self.from_model is None

    @property
    def folder(self) -> Path:
        """The folder of the model."""
        usual = self.output.with_name(f"{self.output.name.split('.')[0]}-model")
        return self.from_model or self.keep_model or usual

    def check_files(self) -> None:
        """Say what cannot be written before hours of work, not after."""
        format_of(str(self.output))
        for path in (self.output, self.check):
            if path is not None:
                refuse_existing(path, force=self.force)


class SynthesisProgress(TrainingProgress):
    """Callbacks of the training and then of the generation."""

    def worked(self, what: str, done: int, total: int) -> None:
        """Called when so much of the writing, or of a comparison, is done."""


@dataclass(frozen=True)
class SyntheticRows(ReleasedRows):
    """Written rows, column by column, with their card.

    folder   the folder of the model, which writes any amount more at no further cost
    refused  how many texts a filter has refused, by its name
    missing  rows that were asked for and did not pass the filters, by their labels
    report   the private comparison with the rows that the model has learned from, if one was asked for
    """

    folder: Path
    refused: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    report: Report | None = None


def run(config: TrainedSynthesisConfig, progress: SynthesisProgress | None = None) -> SyntheticRows:
    """Synthetic rows in a file, with their card; a model is trained first unless one is there.

    A folder that is finished is only compared with the configuration, and writes.
    """
    config.check_files()
    from tacit.jobs.training.writing import train_writer, write_release

    shown = progress or SynthesisProgress()
    if config.from_model is None:
        train_writer(config, shown)
    return write_release(config, shown)
