"""Synthetic rows by prompting: a public model reads batches of private records, and its words are drawn privately.

made = tacit.synthesize("tickets.csv", by="prompting", label_column="intent", labels=["refund", "delivery"], epsilon=4)
made.texts, made.card

Nothing is trained. Every token is one exponential choice from the clipped, averaged predictions of a batch
(`tacit.training.prompting`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.errors import BadParameterError
from tacit.jobs.charging import check_name_for_ledger
from tacit.jobs.config import Group, Option, Varied
from tacit.jobs.fields import (
    CountShare,
    Data,
    Epsilon,
    Length,
    Output,
    ReplaceOne,
    Shortest,
    SynthesisWay,
    SyntheticRowCount,
    Temperature,
)
from tacit.jobs.prompted_rows import PromptedLabelColumn, PromptedRows, check_label_source
from tacit.jobs.released_rows import ReleasedRows
from tacit.jobs.running import on_its_device
from tacit.jobs.sources import needs_of_source
from tacit.needs import Ability, needs_of_language_model, needs_of_ledger, needs_of_place
from tacit.places import refuse_existing
from tacit.progress import WorkProgress
from tacit.text.files import format_of

TEXT, LABEL = "{text}", "{label}"
PUBLIC_PROMPT = "What people ask and write about {label}, one per line:\n"
PROMPT = PUBLIC_PROMPT + "{text}\n"
USUAL_BOUNDS = {"difference": 4.0, "logits": 5.0}


class PromptingConfig(PromptedRows):
    """Private rows, the public model and prompt that read them, and what pays for the words."""

    job: ClassVar[str] = "synthesize prompting"

    data: Annotated[
        Data,
        Field(description="The private rows (csv, tsv, jsonl, parquet, txt; also .gz)."),
        Varied(metavar="[DATA]"),
    ]
    output: Annotated[Output[Path], Field(description="The file of synthetic rows; its card stands beside it.")] = Path(
        "synthetic.csv"
    )
    by: SynthesisWay[Literal["prompting"]] = "prompting"
    epsilon: Annotated[
        Epsilon[float], Field(gt=0, description="The privacy budget of one record or user, for all rows together.")
    ]
    rows: SyntheticRowCount[int] = 500
    label_column: PromptedLabelColumn = None
    count_share: CountShare = 0.05
    replace_one: ReplaceOne = False
    bounding: Annotated[
        Literal["difference", "logits"],
        Field(description="What of a record's prediction is bounded: its difference to the prediction without any "
              "record, or the logits themselves."),
        Option(Group.PRIVACY),
    ] = "difference"  # fmt: skip
    logit_bound: Annotated[
        float | None,
        Field(gt=0, description="How far the prediction of one record may reach; 4 for 'difference', 5 for 'logits'."),
        Option(Group.PRIVACY, metavar="C"),
    ] = None
    batch_records: Annotated[
        int | None,
        Field(
            ge=1, description="Records of a batch, as planned; by default the fewest with which the budget suffices."
        ),
        Option(Group.PRIVACY, metavar="N"),
    ] = None
    prompt: Annotated[
        str,
        Field(description="What the model is shown of a record: {text} stands for it and {label} for its label. "
              "Public."),
        Option(Group.MODEL, metavar="TEXT"),
    ] = PROMPT  # fmt: skip
    public_prompt: Annotated[
        str,
        Field(description="The same without a record."),
        Option(Group.MODEL, metavar="TEXT"),
    ] = PUBLIC_PROMPT
    candidates: Annotated[
        int,
        Field(ge=2, description="A token is drawn among so many that the prompt without a record likes best."),
        Option(Group.WRITING, metavar="N"),
    ] = 1_000
    length: Annotated[Length, Field(ge=2, description="Tokens of the longest text."), Varied(group=Group.WRITING)] = 32
    temperature: Annotated[
        Temperature[float],
        Field(gt=0, description="Of the draw; lower costs more."),
    ] = 1.0
    shortest: Shortest = 2

    def needs(self) -> list[Ability]:
        return [
            *needs_of_language_model(self.model),
            *needs_of_source(self.data, self.format),
            *needs_of_ledger(self.ledger),
            *needs_of_place(str(self.output)),
        ]

    @model_validator(mode="after")
    def _labels_are_public_and_the_ledger_has_a_name(self) -> Self:
        check_label_source(self, self.label_column)
        check_name_for_ledger(self)
        return self

    @model_validator(mode="after")
    def _the_prompt_has_a_place_for_the_text(self) -> Self:
        if self.prompt.count(TEXT) != 1 or TEXT in self.public_prompt or not self.public_prompt.strip():
            raise BadParameterError(
                "prompt-without-place",
                "{option.prompt} says once where the text goes, with {{text}}, and {option.public_prompt} is the same "
                "without it",
            )
        return self

    @property
    def bound(self) -> float:
        """How far the prediction of one record may reach."""
        return USUAL_BOUNDS[self.bounding] if self.logit_bound is None else self.logit_bound

    def check_files(self) -> None:
        """Refuse what cannot be written before anything is spent."""
        format_of(str(self.output))
        refuse_existing(self.output, force=self.force)


@dataclass(frozen=True)
class LabelPlan:
    """The plan of one label: so many batches of a planned size, tokens from each, texts at most."""

    label: str
    batches: int
    batch_records: int
    tokens: int
    rows: int


@dataclass(frozen=True)
class PromptingPlan:
    """The texts that a budget buys.

    wanted    rows that were asked for
    readings  predictions of the model, one for each record and token
    """

    epsilon: float
    delta: float
    labels: tuple[LabelPlan, ...]
    wanted: int
    readings: int

    @property
    def rows(self) -> int:
        """Texts that the budget usually buys, at most as many as were asked for."""
        return sum(plan.rows for plan in self.labels)


@dataclass(frozen=True)
class PromptedTexts(ReleasedRows):
    """Written rows, column by column, with their card and the plan they were written by.

    refused  texts that a filter has refused, by its name
    """

    plan: PromptingPlan
    refused: Mapping[str, int] = field(default_factory=dict)


@on_its_device
def run(config: PromptingConfig, progress: WorkProgress | None = None) -> PromptedTexts | PromptingPlan:
    """Synthetic rows in a file, with their card; with `dry_run` the plan alone."""
    config.check_files()
    from tacit.jobs.prompted_writing import dry_plan, written_rows

    return dry_plan(config) if config.dry_run else written_rows(config, progress)
