"""Answers of an ensemble: tokens drawn under differential privacy, each of them paid for from a ledger.

answers = tacit.predict_ensemble("ensemble", ["Dear customer,"], tokens=1_000, epsilon=3, ledger="ledger.db",
                                 output="answers.csv")
answers.texts, answers.card
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import (
    Data,
    Dataset,
    Delta,
    Device,
    Epsilon,
    Force,
    Format,
    Ledger,
    Length,
    Model,
    Output,
    ReplaceOne,
    Resume,
    Temperature,
    TestSeed,
    UsualColumn,
)
from tacit.jobs.released_rows import ReleasedRows
from tacit.jobs.running import on_its_device
from tacit.jobs.sources import needs_of_source
from tacit.needs import ADAPTERS, MODELS, Ability, needs_of_ledger, needs_of_place
from tacit.needs import check as check_needs
from tacit.places import refuse_existing
from tacit.progress import WorkProgress
from tacit.text.files import format_of


class EnsembleAnswersConfig(Config):
    """An ensemble, the prompts that it continues, and what pays for the tokens."""

    job: ClassVar[str] = "predict ensemble"

    model: Annotated[
        Model[Path],
        Field(description="A folder that 'tacit train ensemble' has made."),
        Varied(positional=True, metavar="ENSEMBLE"),
    ]
    data: Annotated[
        Data,
        Field(description="The prompts, public or your own: txt, csv, jsonl … They are read as they are."),
        Varied(metavar="PROMPTS"),
    ]
    output: Annotated[Output[Path], Field(description="The file of answers; its card stands beside it.")] = Path(
        "answers.csv"
    )
    column: Annotated[UsualColumn, Field(description="The column of prompts; by default the only one, or 'text'.")] = (
        None
    )
    format: Format = None
    epsilon: Annotated[
        Epsilon[float | None],
        Field(gt=0, description="What all tokens of this call may cost together; the band follows from it."),
    ] = None
    delta: Annotated[Delta[float], Field(gt=0, lt=0.5, description="What every probability may grow by.")] = 1e-6
    replace_one: Annotated[
        ReplaceOne, Field(description="Neighbors differ by replacing a unit, which may change two shards.")
    ] = False
    up: Annotated[
        float | None,
        Field(gt=0, description="Instead of an epsilon: a shard raises no probability by more than e^UP (0.5)."),
        Option(Group.PRIVACY),
    ] = None
    down: Annotated[
        float | None,
        Field(gt=0, description="Instead of an epsilon: a shard lowers none by more than e^DOWN (0.5)."),
        Option(Group.PRIVACY),
    ] = None
    way: Annotated[
        Literal["nearest", "mixed"],
        Field(
            description="How a shard is brought into the band: 'nearest' moves each token as far as needed, 'mixed' "
            "the whole law on a line to the public model. The promise is the same."
        ),
        Option(Group.PRIVACY),
    ] = "nearest"
    seed: TestSeed = None
    tokens: Annotated[
        int | None,
        Field(ge=1, description="Tokens that this call pays for; by default as many as all answers can have."),
        Option(Group.BUDGET),
    ] = None
    ledger: Annotated[
        Ledger, Field(description="The ledger that pays: answering spends budget, so there is none without it.")
    ] = None
    dataset: Annotated[
        Dataset[str | None], Field(description="Name of the data set in the ledger; by default that of the ensemble.")
    ] = None
    length: Annotated[Length, Field(ge=1, description="Most tokens of an answer.")] = 40
    prompt_length: Annotated[
        int, Field(ge=1, description="Tokens of a prompt that are read."), Option(Group.WRITING)
    ] = 256
    answers: Annotated[int, Field(ge=1, description="Answers to each prompt."), Option(Group.WRITING)] = 1
    temperature: Annotated[
        Temperature[float], Field(description="Below 1: safer texts. The likeliest token alone cannot be private.")
    ] = 1.0
    device: Device = "auto"
    resume: Annotated[Resume, Field(description="Go on with answers that were stopped, with the noise they had.")] = (
        False
    )
    force: Annotated[Force, Field(description="Replace existing files.")] = False

    def needs(self) -> list[Ability]:
        return [
            MODELS,
            ADAPTERS,
            *needs_of_source(self.data, self.format),
            *needs_of_place(str(self.output)),
            *needs_of_ledger(self.ledger),
        ]

    @model_validator(mode="after")
    def _one_of_budget_and_band(self) -> Self:
        if self.epsilon is not None and (self.up is not None or self.down is not None):
            raise BadParameterError(
                "band-and-budget",
                "the band follows from the budget: give {option.epsilon}, or {option.up} and {option.down}",
            )
        return self

    @property
    def adjacency(self) -> Adjacency:
        """How neighbors differ."""
        return Adjacency.REPLACE_ONE if self.replace_one else Adjacency.ADD_REMOVE

    def check_files(self) -> None:
        """Say what is missing before hours of work, not after."""
        if self.ledger is None:
            raise BadParameterError(
                "answers-without-ledger",
                "every token of an ensemble spends budget of the texts it was made from: name the ledger that counts "
                "it, {option.ledger[FILE]}",
            )
        format_of(str(self.output))
        refuse_existing(self.output, force=self.force)


@dataclass(frozen=True)
class EnsembleAnswers(ReleasedRows):
    """Answers with their prompts and their card.

    drawn       tokens that were drawn; the card counts all that were paid for
    unanswered  answers that no paid token was left for
    spent       what one unit of the data set has now spent, by the ledger
    """

    drawn: int
    unanswered: int
    spent: str


@on_its_device
def run(config: EnsembleAnswersConfig, progress: WorkProgress | None = None) -> EnsembleAnswers:
    """Answers in a file, with their card, paid for from a ledger."""
    config.check_files()
    from tacit.jobs.training.ensemble_answers import released_answers

    return released_answers(config, progress or (lambda what, done, total: None))


def predict_ensemble(
    model: str | Path,
    prompts: object,
    *,
    ledger: str,
    output: str | Path = "answers.csv",
    progress: WorkProgress | None = None,
    **options: Any,
) -> EnsembleAnswers:
    """Answers of an ensemble to prompts, a file or data in memory; options as in `EnsembleAnswersConfig`."""
    config = EnsembleAnswersConfig(model=Path(model), data=prompts, ledger=str(ledger), output=Path(output), **options)
    check_needs("tacit.predict_ensemble", config.needs())
    return run(config, progress)
