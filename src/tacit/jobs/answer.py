"""Answers with private examples: sets of them vote, and a label is drawn for every question.

made = tacit.answer(["where is my parcel?"], examples="tickets.csv", label_column="intent", labels=[...], epsilon=2)
made.rows, made.card
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, model_validator

from tacit.errors import BadParameterError
from tacit.jobs.charging import check_name_for_ledger
from tacit.jobs.config import Group, Option, Varied
from tacit.jobs.fields import Data, Epsilon, LabelColumn, Output, QuestionColumn
from tacit.jobs.prompted_rows import PromptedRows, SetCount, check_label_source
from tacit.jobs.released_rows import ReleasedRows
from tacit.jobs.running import on_its_device
from tacit.jobs.sources import Source, needs_of_source
from tacit.needs import Ability, needs_of_language_model, needs_of_ledger, needs_of_place
from tacit.places import refuse_existing
from tacit.progress import WorkProgress
from tacit.text.files import format_of

USERS = "users"
ANSWER = "answer"


def users_or_number(value: Any) -> object:
    """`users` as it is; anything else as a number."""
    return value if value == USERS else int(value) if isinstance(value, str) and value.isdigit() else value


class AnswerConfig(PromptedRows):
    """Questions, the private examples that answer them, and what pays for the answers."""

    job: ClassVar[str] = "answer"

    questions: Annotated[
        Source,
        Field(description="The questions: csv, tsv, jsonl, parquet, txt. They are not protected."),
        Option(Group.DATA, positional=True, metavar="QUESTIONS"),
    ]
    data: Annotated[
        Data,
        Field(description="The private examples: texts with labels."),
        Varied(positional=False, name="examples", metavar="FILE"),
    ]
    output: Annotated[Output[Path], Field(description="The answered questions; their card stands beside them.")] = Path(
        "answers.csv"
    )
    epsilon: Annotated[
        Epsilon[float],
        Field(gt=0, description="The privacy budget of one example or user, for all questions together."),
    ]
    label_column: LabelColumn[str]
    question_column: Annotated[
        QuestionColumn[str | None],
        Field(description="The column of the questions; by default the only one, or 'text'."),
    ] = None
    sets: Annotated[
        SetCount,
        BeforeValidator(users_or_number),
        Field(description="How many sets vote; or 'users': every user is a set, whose vote counts twice as much."),
        Option(Group.PRIVACY, metavar="N|users"),
    ] = 40
    set_examples: Annotated[
        int, Field(ge=1, le=64, description="Examples of a set that are shown."), Option(Group.MODEL, metavar="N")
    ] = 4

    def needs(self) -> list[Ability]:
        return [
            *needs_of_language_model(self.model),
            *needs_of_source(self.data, self.format),
            *needs_of_source(self.questions, None),
            *needs_of_ledger(self.ledger),
            *needs_of_place(str(self.output)),
        ]

    @model_validator(mode="after")
    def _labels_are_public_and_the_ledger_has_a_name(self) -> Self:
        check_label_source(self, self.label_column)
        check_name_for_ledger(self)
        return self

    @model_validator(mode="after")
    def _sets_can_vote(self) -> Self:
        if self.sets == USERS and self.user_column is None:
            raise BadParameterError(
                "sets-without-users", "{option.sets[users]} needs {option.user_column[NAME]}, which says who they are"
            )
        if self.sets != USERS and int(self.sets) < 1:
            raise BadParameterError("impossible-sets", "at least one set has to vote, not {sets}", sets=self.sets)
        return self

    @property
    def set_is_user(self) -> bool:
        return self.sets == USERS

    def check_files(self) -> None:
        """Refuse what cannot be written before anything is spent."""
        format_of(str(self.output))
        refuse_existing(self.output, force=self.force)


@dataclass(frozen=True)
class AnswerPlan:
    """The price of a question within a budget, and how much a vote counts.

    votes  how many sets would vote
    even   how many votes ahead a label is e times as likely as another
    """

    epsilon: float
    delta: float
    questions: int
    question_epsilon: float
    votes: int
    even: float


@dataclass(frozen=True)
class AnsweredQuestions(ReleasedRows):
    """Questions with their answers, column by column, with their card."""

    plan: AnswerPlan

    @property
    def answers(self) -> list[str]:
        return list(self.columns[ANSWER])


@on_its_device
def run(config: AnswerConfig, progress: WorkProgress | None = None) -> AnsweredQuestions | AnswerPlan:
    """Answered questions in a file, with their card; with `dry_run` the plan alone."""
    config.check_files()
    from tacit.jobs.answering import answered_questions, dry_plan

    return dry_plan(config) if config.dry_run else answered_questions(config, progress)


def answer(
    questions: object, *, examples: object, progress: WorkProgress | None = None, **options: Any
) -> AnsweredQuestions | AnswerPlan:
    """Answers to questions by private vote over sets of private examples; files or data in memory, options as in
    `AnswerConfig`.

        made = tacit.answer("questions.csv", examples="tickets.csv", label_column="intent", labels=[...], epsilon=2)
        made.answers, made.card
    """
    return run(AnswerConfig(questions=questions, data=examples, **options), progress)
