"""The options of all jobs that build a sketch: private rows, their public labels, and what is summed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from tacit.encoders import encoder_needs
from tacit.errors import BadParameterError
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import (
    AutoDelta,
    Data,
    Dataset,
    Force,
    Format,
    LabelColumn,
    Labels,
    Ledger,
    TestSeed,
    UserColumn,
    UsualColumn,
)
from tacit.jobs.sources import needs_of_source
from tacit.jobs.values import CommaSeparated
from tacit.matching.features import FeatureMap, default_map
from tacit.matching.pure import pure_map
from tacit.needs import Ability, needs_of_ledger
from tacit.text.files import STANDARD_STREAM
from tacit.text.files.memory import is_in_memory

PrivateRows = Annotated[Data, Field(description="The private rows: csv, tsv, jsonl, parquet, txt (also .gz).")]


class SketchedRows(Config):
    """Private rows, their public labels, and what is summed: the options of all jobs that build a sketch."""

    data: PrivateRows
    column: UsualColumn = None
    label_column: LabelColumn[str | None] = None
    labels: Annotated[
        Labels[tuple[str, ...]],
        CommaSeparated,
        Field(description="All labels, from public knowledge; rows with any other are left out."),
        Varied(metavar="A,B,C"),
    ] = ()
    labels_from: Annotated[
        Path | None, Field(description="The same, in a file with one label per line."), Option(Group.DATA)
    ] = None
    declare_labels_public: Annotated[
        bool,
        Field(description="The labels that occur in DATA are declared public; the card says so."),
        Option(Group.PRIVACY),
    ] = False
    other: Annotated[
        str | None,
        Field(description="The label of the list as which rows with any other label count."),
        Option(Group.DATA, metavar="LABEL"),
    ] = None
    bins: Annotated[
        tuple[float, ...],
        CommaSeparated,
        Field(description="The label column holds numbers: public edges of their bins."),
        Option(Group.DATA, comma_separated=True, metavar="0,2,4"),
    ] = ()
    topics: Annotated[
        int | None,
        Field(ge=1, description="Without a label column: so many public topics take its place (64 by default)."),
        Option(Group.DATA),
    ] = None
    format: Format = None
    delta: AutoDelta = "auto"
    pure: Annotated[
        bool,
        Field(description="Promise epsilon alone, without delta: other noise on fewer features, which costs utility."),
        Option(Group.PRIVACY),
    ] = False
    user_column: Annotated[
        UserColumn[str | None],
        Field(description="The column that says who wrote a row: the promise is then made to users."),
        Varied(group=Group.PRIVACY),
    ] = None
    seed: TestSeed = None
    encoders: Annotated[
        tuple[str, ...],
        Field(description="Sentence encoder: 'static', 'minilm', one of a plug-in, a folder, or a hub name; may be "
              "repeated (by default static)."),
        Option(Group.MODEL),
    ] = ("static",)  # fmt: skip
    vocabulary: Annotated[
        int,
        Field(ge=0, description="Count so many words of the public vocabulary as well; they share the budget."),
        Option(Group.MODEL, metavar="N"),
    ] = 0
    ledger: Ledger = None
    dataset: Annotated[
        Dataset[str | None],
        Field(description="Name of the data set in the ledger: releases of one name add up. By default the name of the "
              "input."),
    ] = None  # fmt: skip
    force: Force = False

    def needs(self) -> list[Ability]:
        encoders = [need for name in self.encoders for need in encoder_needs(name)]
        return [*encoders, *needs_of_source(self.data, self.format), *needs_of_ledger(self.ledger)]

    @model_validator(mode="after")
    def _labels_come_from_one_place(self) -> Self:
        ways = [bool(self.labels), self.labels_from is not None, self.declare_labels_public, bool(self.bins)]
        if self.label_column is None and any(ways):
            raise BadParameterError(
                "labels-without-column", "name the column of the labels with {option.label_column[NAME]}"
            )
        if self.label_column is not None and sum(ways) != 1:
            raise BadParameterError(
                "labels-of-one-kind",
                "say once which labels there are: {option.labels[A,B,C]}, {option.labels_from[FILE]}, "
                "{option.bins[0,2,4]} for numbers, or {option.declare_labels_public} if those that occur in the data "
                "are no secret",
            )
        if self.label_column is not None and self.topics is not None:
            raise BadParameterError("topics-and-labels", "{option.topics} take the place of {option.label_column}")
        if self.other is not None and not (self.labels or self.labels_from):
            raise BadParameterError("other-without-list", "{option.other} belongs to a list of {option.labels}")
        return self

    @model_validator(mode="after")
    def _the_ledger_has_a_name_for_the_data(self) -> Self:
        if self.ledger is None and self.dataset is not None:
            raise BadParameterError("no-ledger", "{option.dataset} is for a ledger: name it with {option.ledger[FILE]}")
        if self.ledger is not None and self.dataset is None and not self._has_name:
            raise BadParameterError(
                "dataset-without-name", "these rows have no name for the ledger: give one with {option.dataset[NAME]}"
            )
        return self

    @model_validator(mode="after")
    def _users_can_be_read_twice(self) -> Self:
        if self.data == STANDARD_STREAM and (self.user_column is not None or self.declare_labels_public):
            raise BadParameterError(
                "read-once",
                "standard input can be read only once, and {option.user_column} and {option.declare_labels_public} "
                "read the rows several times: name a file",
            )
        return self

    @model_validator(mode="after")
    def _pure_leaves_out_what_it_has_no_room_for(self) -> Self:
        if self.pure and self.delta != "auto":
            raise BadParameterError(
                "pure-has-no-delta", "{option.pure} promises epsilon alone: leave {option.delta} out"
            )
        if self.pure and self.vocabulary:
            raise BadParameterError(
                "pure-has-no-words", "{option.pure} has room for few features: leave {option.vocabulary} out"
            )
        return self

    @property
    def _has_name(self) -> bool:
        return not is_in_memory(self.data) and self.data != STANDARD_STREAM

    def feature_map(self) -> FeatureMap:
        """The features that are summed."""
        return pure_map(self.encoders) if self.pure else default_map(self.encoders, words=self.vocabulary)
