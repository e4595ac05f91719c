"""The options of all jobs that build a sketch: private rows, their public labels, and what is summed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from tacit.encoders import encoder_needs
from tacit.errors import BadParameterError
from tacit.jobs.charging import check_name_for_ledger
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import (
    AutoDelta,
    CountedLabels,
    Data,
    DatasetOfInput,
    DeclareLabelsPublic,
    Epsilon,
    Force,
    Format,
    LabelColumns,
    Ledger,
    Output,
    PromisedUsers,
    Sentences,
    TestSeed,
    Topics,
    UsualColumn,
)
from tacit.jobs.named_labels import LabelBins, NamedEdges, NamedLabels, named_labels, with_label_columns
from tacit.jobs.sources import needs_of_source
from tacit.jobs.values import sentences_or_auto
from tacit.needs import Ability, needs_of_ledger
from tacit.text.files.memory import is_standard_input

PrivateRows = Annotated[Data, Field(description="The private rows: csv, tsv, jsonl, parquet, txt (also .gz).")]


class SketchedRows(Config):
    """Private rows, their public labels, and what is summed: the options of all jobs that build a sketch."""

    data: PrivateRows
    column: UsualColumn = None
    label_columns: Annotated[
        LabelColumns,
        Field(description="The column of labels; may be repeated, and then labels of all columns stay together."),
    ] = ()
    labels: CountedLabels = ()
    labels_of: Annotated[
        NamedLabels,
        BeforeValidator(named_labels),
        Field(description="With several label columns: all labels of one of them; may be repeated."),
        Option(Group.DATA, metavar="COLUMN=A,B,C"),
    ] = ()
    labels_from: Annotated[
        Path | None, Field(description="The same, in a file with one label per line."), Option(Group.DATA)
    ] = None
    declare_labels_public: DeclareLabelsPublic = False
    labels_from_data: Annotated[
        Literal["private"] | None,
        Field(description="Find the labels in DATA itself: a part of epsilon pays for it, and only labels that many "
              "rows have are found."),
        Option(Group.PRIVACY),
    ] = None  # fmt: skip
    other: Annotated[
        str | None,
        Field(description="The label of the list as which rows with any other label count."),
        Option(Group.DATA, metavar="LABEL"),
    ] = None
    bins: LabelBins = ()
    bins_of: Annotated[
        NamedEdges,
        BeforeValidator(named_labels),
        Field(description="With several label columns: one of them holds numbers, with these edges; may be repeated."),
        Option(Group.DATA, metavar="COLUMN=0,2,4"),
    ] = ()
    topics: Annotated[
        Topics[int | None],
        Field(description="Without a label column: so many public topics take its place (64 by default)."),
    ] = None
    sentences: Annotated[
        Sentences[int | Literal["auto"]],
        BeforeValidator(sentences_or_auto),
        Field(description="How long released texts are: a public number of sentences, or 'auto' for about as long as "
              "the private ones, whose lengths are counted in the same release."),
        Varied(metavar="N|auto"),
    ] = "auto"  # fmt: skip
    format: Format = None
    delta: AutoDelta = "auto"
    pure: Annotated[
        bool,
        Field(description="Promise epsilon alone, without delta: other noise on fewer features, which costs utility."),
        Option(Group.PRIVACY),
    ] = False
    user_column: PromisedUsers = None
    seed: TestSeed = None
    encoders: Annotated[
        tuple[str, ...],
        Field(description="Sentence encoder: 'static', 'minilm', one of a plug-in, a folder, or a hub name; may be "
              "repeated."),
        Option(Group.MODEL),
    ] = ("static",)  # fmt: skip
    vocabulary: Annotated[
        int,
        Field(ge=0, description="Count so many words of the public vocabulary as well; they share the budget."),
        Option(Group.MODEL, metavar="N"),
    ] = 0
    ledger: Ledger = None
    dataset: DatasetOfInput = None
    force: Force = False

    def needs(self) -> list[Ability]:
        encoders = [need for name in self.encoders for need in encoder_needs(name)]
        return [*encoders, *needs_of_source(self.data, self.format), *needs_of_ledger(self.ledger)]

    @model_validator(mode="before")
    @classmethod
    def _one_column_by_its_name(cls, values: object) -> object:
        """Takes `label_column` for one column, as most jobs call it."""
        return with_label_columns(values)

    @property
    def label_column(self) -> str | None:
        """The first label column."""
        return self.label_columns[0] if self.label_columns else None

    @model_validator(mode="after")
    def _labels_come_from_one_place(self) -> Self:
        of_one = [bool(self.labels), self.labels_from is not None, bool(self.bins)]
        of_all = [self.declare_labels_public, self.labels_from_data is not None]
        named = [name for name, _ in (*self.labels_of, *self.bins_of)]
        if not self.label_columns and (any(of_one) or any(of_all) or named):
            raise BadParameterError(
                "labels-without-column", "name the column of the labels with {option.label_column[NAME]}"
            )
        for column in self.label_columns:
            ways = named.count(column) + (sum(of_one) if len(self.label_columns) == 1 else 0)
            if ways + (sum(of_all) if not ways or len(self.label_columns) == 1 else 0) != 1:
                raise self._labels_of_one_kind()
        if len(self.label_columns) > 1 and (any(of_one) or self.other is not None):
            raise BadParameterError(
                "labels-of-which-column",
                "there are several label columns: give the labels of each with {option.labels_of[COLUMN=A,B,C]} or "
                "{option.bins_of[COLUMN=0,2,4]}; rows with any other label are left out",
            )
        if unknown := [column for column in named if column not in self.label_columns]:
            raise BadParameterError(
                "labels-of-no-column",
                "'{column}' is none of the label columns: name it with {option.label_column}, too",
                column=unknown[0],
            )
        if self.label_columns and self.topics is not None:
            raise BadParameterError("topics-and-labels", "{option.topics} take the place of {option.label_column}")
        if self.other is not None and not (self.labels or self.labels_from or self.labels_from_data):
            raise BadParameterError("other-without-list", "{option.other} belongs to a list of {option.labels}")
        return self

    def _labels_of_one_kind(self) -> BadParameterError:
        if len(self.label_columns) > 1:
            return BadParameterError(
                "labels-of-each-column",
                "say once for each label column which labels there are: {option.labels_of[COLUMN=A,B,C]} or "
                "{option.bins_of[COLUMN=0,2,4]}; {option.declare_labels_public} if those that occur in the data are no "
                "secret; or {option.labels_from_data[private]}",
            )
        return BadParameterError(
            "labels-of-one-kind",
            "say once which labels there are: {option.labels[A,B,C]}, {option.labels_from[FILE]}, "
            "{option.bins[0,2,4]} for numbers, {option.declare_labels_public} if those that occur in the data "
            "are no secret, or {option.labels_from_data[private]} to pay for finding them",
        )

    @model_validator(mode="after")
    def _the_ledger_has_a_name_for_the_data(self) -> Self:
        check_name_for_ledger(self)
        return self

    @model_validator(mode="after")
    def _users_can_be_read_twice(self) -> Self:
        twice = self.user_column is not None or self.declare_labels_public or self.labels_from_data is not None
        if twice and is_standard_input(self.data):
            raise BadParameterError(
                "read-once",
                "standard input can be read only once, and {option.user_column}, {option.declare_labels_public} and "
                "{option.labels_from_data} read the rows several times: name a file",
            )
        return self

    @model_validator(mode="after")
    def _pure_leaves_out_what_it_has_no_room_for(self) -> Self:
        if self.pure and self.delta != "auto":
            raise BadParameterError(
                "pure-has-no-delta", "{option.pure} promises epsilon alone: leave {option.delta} out"
            )
        if self.pure and (len(self.label_columns) > 1 or self.labels_from_data is not None):
            raise BadParameterError(
                "pure-has-one-column",
                "{option.pure} has room for one label column with a public list: leave {option.pure} out, or name the "
                "labels of one column",
            )
        if self.pure and self.vocabulary:
            raise BadParameterError(
                "pure-has-no-words", "{option.pure} has room for few features: leave {option.vocabulary} out"
            )
        return self


class SketchConfig(SketchedRows):
    """Private rows, their public labels, what is summed, what pays for it, and where the sketch goes."""

    job: ClassVar[str] = "sketch"

    output: Annotated[Output[Path], Field(description="The sketch; its card stands beside it.")] = Path("sketch.tacit")
    epsilon: Annotated[Epsilon[float], Field(gt=0, description="The privacy budget of one record or user.")]
