"""The answers to the questions of the guide, as options."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import Data, Epsilon, Format, LabelColumn, Labels, UserColumn, UsualColumn
from tacit.jobs.guide.questions import Purpose, Reader, Secret
from tacit.jobs.sources import needs_of_source
from tacit.jobs.values import CommaSeparated
from tacit.needs import Ability


class GuideConfig(Config):
    """The answers to the guide's questions: the secret, its readers, the purpose, the size, the public text."""

    job: ClassVar[str] = "guide"

    data: Annotated[
        Data,
        Field(description="The private file. Only the names of its columns and the number of its rows are looked at."),
        Varied(metavar="[FILE]"),
    ] = None
    protect: Annotated[
        Secret | None,
        Field(description="What one secret is: which word was written, a whole text, or a person with all texts."),
        Option(Group.PRIVACY, metavar="word|text|person"),
    ] = None
    seen_by: Annotated[
        Reader | None,
        Field(description="Who may see the originals: a curator who holds the file, or nobody but their authors."),
        Option(Group.PRIVACY, metavar="curator|nobody"),
    ] = None
    purpose: Annotated[
        Purpose | None,
        Field(description="What the result is for: share a corpus, train a classifier, collect from users or places, "
              "find topics."),
        Option(Group.DATA, metavar="share|classifier|collect|topics"),
    ] = None  # fmt: skip
    private_rows: Annotated[
        int | None,
        Field(ge=1, description="How many rows there are; counted if FILE is given."),
        Option(Group.DATA, name="rows", metavar="N"),
    ] = None
    rows_per_person: Annotated[
        int | None,
        Field(ge=1, description="How many rows one person has at most; several, if that is not said."),
        Option(Group.DATA, metavar="N"),
    ] = None
    public_text: Annotated[
        str | None,
        Field(description="A file of public text of the same kind; only the names of its columns are looked at."),
        Option(Group.DATA, metavar="FILE"),
    ] = None
    column: Annotated[UsualColumn, Field(description="The column of texts; by default by its name.")] = None
    label_column: Annotated[
        LabelColumn[str | None], Field(description="The column of labels; by default by its name.")
    ] = None
    user_column: Annotated[
        UserColumn[str | None], Field(description="The column that says whose row it is; by default by its name.")
    ] = None
    labels: Annotated[
        Labels[tuple[str, ...]],
        CommaSeparated,
        Field(description="All labels, from public knowledge, if they are known."),
        Varied(metavar="A,B,C"),
    ] = ()
    epsilon: Annotated[
        Epsilon[float | None],
        Field(gt=0, description="Another privacy budget than the one that is recommended."),
    ] = None
    format: Format = None

    def needs(self) -> list[Ability]:
        return [] if self.data is None else needs_of_source(self.data, self.format)

    @property
    def several_rows(self) -> bool:
        """Whether a person may have several rows; on the safe side where nobody knows."""
        return self.rows_per_person != 1
