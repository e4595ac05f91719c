"""The tasks that models are trained for: the columns of each, and their usual names."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from pydantic import Field

from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import LabelColumn, Length, QuestionColumn, TextColumn
from tacit.needs import BLEU, Ability


class TaskRows(Config):
    """The task, the columns of its rows by role, and how much of a row is read."""

    task: ClassVar[str]
    roles: ClassVar[tuple[str, ...]]
    scoring: ClassVar[tuple[Ability, ...]] = ()
    """The packages that scores on test rows need."""

    length: Length = 64

    def columns(self) -> dict[str, str]:
        """The columns by role: the field `text_column` names the one of the role `text`."""
        named = {role: getattr(self, f"{role}_column") for role in self.roles}
        return {role: column for role, column in named.items() if column}


class _LabeledRows(TaskRows):
    roles = ("text", "label", "pair")

    text_column: TextColumn = "text"
    label_column: LabelColumn[str] = "label"
    pair_column: Annotated[
        str | None,
        Field(description="The column of the second text, if there are pairs."),
        Option(Group.DATA),
    ] = None


class ClassifyRows(_LabeledRows):
    """Texts, or pairs of texts, and a label."""

    task = "classify"


class RegressRows(_LabeledRows):
    """Texts, or pairs of texts, and a number."""

    task = "regress"


class TagRows(TaskRows):
    """Words and their tags, separated by spaces."""

    task = "tag"
    roles = ("text", "tags")

    text_column: TextColumn = "tokens"
    tags_column: Annotated[str, Field(description="The column of the tags."), Option(Group.DATA)] = "tags"


class AnswerRows(TaskRows):
    """Questions, and answers that stand in a context word for word."""

    task = "answer"
    roles = ("question", "context", "answer")

    length: Annotated[
        Length, Field(description="Word pieces of a question and its context that are read at a time.")
    ] = 384
    question_column: QuestionColumn[str] = "question"
    context_column: Annotated[str, Field(description="The column of the context."), Option(Group.DATA)] = "context"
    answer_column: Annotated[str, Field(description="The column of the answer."), Option(Group.DATA)] = "answer"


class WriteRows(TaskRows):
    """Texts for a causal language model."""

    task = "write"
    roles = ("text",)

    text_column: TextColumn = "text"


class FillRows(TaskRows):
    """Texts for a masked language model."""

    task = "fill"
    roles = ("text",)

    text_column: TextColumn = "text"


class TranslateRows(TaskRows):
    """Texts, and a text for each."""

    task = "translate"
    roles = ("source", "target")
    scoring = (BLEU,)

    source_column: Annotated[str, Field(description="The column of the source."), Option(Group.DATA)] = "source"
    target_column: Annotated[str, Field(description="The column of the target."), Option(Group.DATA)] = "target"


TASK_ROWS: Final[dict[str, type[TaskRows]]] = {
    rows.task: rows for rows in (ClassifyRows, RegressRows, TagRows, AnswerRows, WriteRows, FillRows, TranslateRows)
}
"""The rows of each task."""

TASK_NAMES: Final = tuple(TASK_ROWS)
