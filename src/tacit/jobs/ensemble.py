"""An ensemble for private inference: one small model for each shard of the private texts, which never leaves.

tacit.train_ensemble("notes.csv", user_column="author", shards=64, output="ensemble")
tacit.predict_ensemble("ensemble", ["The patient"], tokens=200, ledger="ledger.db", output="answers.csv").texts
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from tacit.errors import BadParameterError
from tacit.jobs.config import Config, Group, Option, file_name
from tacit.jobs.fields import (
    Batch,
    Data,
    Dataset,
    Device,
    LearningRate,
    Length,
    Model,
    Output,
    Rank,
    Resume,
    SomeEpochs,
    StartSeed,
    TextColumn,
    UserColumn,
)
from tacit.jobs.running import on_its_device
from tacit.jobs.sources import needs_of_rows
from tacit.needs import ADAPTERS, Ability, needs_of_language_model
from tacit.needs import check as check_needs
from tacit.progress import WorkProgress
from tacit.text.files.memory import is_in_memory


class EnsembleConfig(Config):
    """Private texts, how they are split, and what is learned from each shard."""

    job: ClassVar[str] = "train ensemble"

    data: Data
    output: Annotated[Output[Path], Field(description="The folder for the ensemble. All of it stays private.")]
    text_column: TextColumn = "text"
    user_column: Annotated[
        UserColumn[str | None],
        Field(description="Protect users with all their rows: the column that names them. By default, single rows."),
    ] = None
    shards: Annotated[
        int,
        Field(ge=2, le=9_999, description="Models that answer together. More of them hide more and know less each."),
        Option(Group.PRIVACY),
    ] = 64
    model: Annotated[
        Model[str], Field(description="'smollm2', a folder, or a hub name: a public causal language model.")
    ] = "smollm2"
    rank: Rank = 8
    length: Annotated[Length, Field(ge=1, description="Word pieces of a text that count.")] = 64
    epochs: Annotated[SomeEpochs, Field(description="Passes over the texts of a shard.")] = 3.0
    batch: Annotated[Batch, Field(description="Texts per step.")] = 8
    learning_rate: Annotated[LearningRate[float], Field(description="How far a step goes.")] = 5e-4
    start_seed: Annotated[StartSeed, Field(description="Seed of new weights and orders, which are public.")] = None
    dataset: Annotated[
        Dataset[str | None],
        Field(description="Name of the data set in the ledger, for all answers. By default the name of the file."),
    ] = None
    resume: Resume = False
    device: Device = "auto"

    def needs(self) -> list[Ability]:
        return [*needs_of_language_model(self.model), ADAPTERS, *needs_of_rows(self.data)]

    @model_validator(mode="after")
    def _the_data_have_a_name(self) -> Self:
        if self.dataset is None and is_in_memory(self.data):
            raise BadParameterError(
                "dataset-without-name", "these rows have no name for the ledger: give one with {option.dataset[NAME]}"
            )
        return self

    @property
    def chosen_dataset(self) -> str:
        return self.dataset or file_name(str(self.data))


@dataclass(frozen=True)
class TrainedEnsemble:
    """An ensemble in its folder, which is private. Rows and empty shards are for the eyes of its holder."""

    folder: Path
    shards: int
    rows: int
    empty: int

    def __str__(self) -> str:
        return f"{self.folder}: {self.shards:,} shards of {self.rows:,} rows"


@on_its_device
def run(config: EnsembleConfig, progress: WorkProgress | None = None) -> TrainedEnsemble:
    """A model for each shard of private texts, in a folder that stays private."""
    from tacit.jobs.training.ensembles import train_shards

    return train_shards(config, progress or (lambda what, done, total: None))


def train_ensemble(
    data: object, *, output: str | Path, progress: WorkProgress | None = None, **options: Any
) -> TrainedEnsemble:
    """An ensemble of private texts, a file or data in memory; options as in `EnsembleConfig`."""
    config = EnsembleConfig(data=data, output=Path(output), **options)
    check_needs("tacit.train_ensemble", config.needs())
    return run(config, progress)
