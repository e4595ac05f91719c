"""A sketch of private rows: sums of public features per public label, released once, as a file of its own.

built = tacit.sketch("tickets.csv", label_column="intent", labels=["refund", "delivery"], epsilon=1, output="s.tacit")
built.sketch.counts, built.card
"""

from __future__ import annotations

import contextlib
import secrets
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from tacit.account.ledger import Reservation, Subject, open_ledger
from tacit.card import Card
from tacit.encoders import encoder_needs
from tacit.errors import BadInputError, BadParameterError, TacitWarning
from tacit.guarantee import Guarantee
from tacit.jobs.config import Config, Group, Option, Varied, file_name
from tacit.jobs.fields import (
    AutoDelta,
    Data,
    Dataset,
    Epsilon,
    Force,
    Format,
    LabelColumn,
    Labels,
    Ledger,
    Output,
    TestSeed,
    UserColumn,
    UsualColumn,
)
from tacit.jobs.sources import needs_of_source
from tacit.jobs.values import CommaSeparated
from tacit.matching.artifact import save_sketch
from tacit.matching.features import FeatureMap, default_map
from tacit.matching.labels import Bins, ListedLabels, PublicLabels, label_name, public_topics
from tacit.matching.sketch import Sketch, build_sketch
from tacit.matching.sums import BLOCK_ROWS, PrivateFindings, RowBlock, RowSource
from tacit.needs import Ability, needs_of_ledger
from tacit.progress import StepProgress
from tacit.text.files import (
    STANDARD_STREAM,
    TableReader,
    cell_string,
    check_column,
    choose_columns,
    open_table,
    text_value,
)
from tacit.text.files.memory import is_in_memory

USUAL_TOPICS = 64
MOST_DECLARED = 10_000


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

    @property
    def _has_name(self) -> bool:
        return not is_in_memory(self.data) and self.data != STANDARD_STREAM

    def feature_map(self) -> FeatureMap:
        """What is summed."""
        return default_map(self.encoders, words=self.vocabulary)


class SketchConfig(SketchedRows):
    """Private rows, their public labels, what is summed, what pays for it, and where the sketch goes."""

    job: ClassVar[str] = "sketch"

    output: Annotated[Output[Path], Field(description="The sketch; its card stands beside it.")] = Path("sketch.tacit")
    epsilon: Annotated[Epsilon[float], Field(gt=0, description="The privacy budget of one record or user.")]


@dataclass(frozen=True)
class SketchResult:
    """A sketch with its card, the file that holds it, and what only the holder of the rows may know (`findings`)."""

    sketch: Sketch
    output: Path | None
    findings: PrivateFindings = field(repr=False)

    @property
    def guarantee(self) -> Guarantee:
        return self.sketch.guarantee

    @property
    def card(self) -> Card:
        return self.sketch.card

    def __str__(self) -> str:
        return str(self.sketch)


def run(config: SketchConfig, progress: StepProgress | None = None) -> SketchResult:
    """The sketch of private rows, saved with its card. Every call spends its budget anew."""
    if config.output.exists() and not config.force:
        raise BadInputError(
            "file-exists", "{path} exists: give another name, or {option.force} to replace it", path=config.output
        )
    return _released(config, config.output, progress)


def sketch(
    data: Any, *, epsilon: float, output: str | Path | None = None, progress: StepProgress | None = None, **options: Any
) -> SketchResult:
    """Noisy sums of public features per public label, from which a corpus can be made later; a file or data in memory,
    options as in `SketchConfig`. Without an output nothing is written: the result holds the sketch and its card.

        rows = [{"text": "where is my parcel", "intent": "delivery"}, ...]
        built = tacit.sketch(rows, label_column="intent", labels=["delivery", "refund"], epsilon=1)
        built.sketch.counts, built.card
    """
    if output is None:
        return _released(SketchConfig(data=data, epsilon=epsilon, **options), None, progress)
    return run(SketchConfig(data=data, epsilon=epsilon, output=Path(output), **options), progress)


def _released(config: SketchConfig, output: Path | None, progress: StepProgress | None) -> SketchResult:
    with _charging(config) as charge:
        built = build_sketch(
            row_source(config, progress),
            label_rule(config),
            config.feature_map(),
            epsilon=config.epsilon,
            delta=None if config.delta == "auto" else config.delta,
            by_user=config.user_column is not None,
            seed=config.seed,
            before_noise=charge.reserve,
        )
        made = built.sketch if output is None else save_sketch(built.sketch, output, force=config.force)
        charge.commit()
    _warn(built.findings)
    return SketchResult(made, output, built.findings)


# Labels -------------------------------------------------------------------------------------------------------------


def label_rule(config: SketchedRows) -> PublicLabels:
    """The labels that the options name."""
    if config.label_column is None:
        return public_topics(config.topics or USUAL_TOPICS, config.encoders[0])
    if config.bins:
        return Bins(config.bins)
    if config.declare_labels_public:
        return ListedLabels(_declared_labels(config), declared=True)
    names = config.labels if config.labels_from is None else _labels_of_file(config.labels_from)
    return ListedLabels(names, config.other)


def _labels_of_file(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(
            "unreadable-labels", "'{path}' cannot be read as UTF-8 text, one label per line: check it", path=path
        ) from error
    return tuple(line.strip() for line in lines if line.strip())


def _declared_labels(config: SketchedRows) -> tuple[str, ...]:
    """All labels that occur, which the user has declared public."""
    assert config.label_column is not None
    names: set[str] = set()
    with open_table(config.data, config.format) as table:
        check_column(config.label_column, table.columns)
        table.select([config.label_column])
        for _, values in table.rows():
            names.add(label_name(values[0]))
            if len(names) > MOST_DECLARED:
                raise BadInputError(
                    "labels-look-like-texts",
                    "the column '{column}' has more than {most:,} different values: is it a label?",
                    column=config.label_column,
                    most=MOST_DECLARED,
                )
    return tuple(sorted(names - {""}))


# Rows ---------------------------------------------------------------------------------------------------------------


def row_source(config: SketchedRows, progress: StepProgress | None = None) -> RowSource:
    """The rows of a configuration in blocks."""

    def blocks() -> Iterator[RowBlock]:
        with open_table(config.data, config.format) as table:
            yield from _blocks(config, table, progress)

    return blocks


def _blocks(config: SketchedRows, table: TableReader, progress: StepProgress | None) -> Iterator[RowBlock]:
    kept = [name for name in (config.label_column, config.user_column) if name is not None]
    text = choose_columns(table.columns, () if config.column is None else (config.column,), kept).texts[0]
    table.select([text, *kept])
    label_place = None if config.label_column is None else 1
    user_place = None if config.user_column is None else len(kept)
    texts: list[str] = []
    labels: list[Any] = []
    users: list[str] = []
    for row, values in table.rows():
        texts.append(text_value(values[0], row, text))
        if label_place is not None:
            labels.append(values[label_place])
        if user_place is not None:
            users.append(cell_string(values[user_place]))
        if len(texts) == BLOCK_ROWS:
            yield RowBlock(texts, labels, users)
            texts, labels, users = [], [], []
            if progress is not None and table.size_bytes:
                progress(min(table.bytes_read(), table.size_bytes), table.size_bytes)
    if texts:
        yield RowBlock(texts, labels, users)


def _warn(findings: PrivateFindings) -> None:
    """What the holder of the rows should know and nobody else: it stands on no card."""
    if findings.unlabeled:
        warnings.warn(
            TacitWarning(
                f"{findings.unlabeled:,} of {findings.rows:,} rows have a label that is not in the public list and "
                "were left out (this line is private: it speaks of the rows)"
            ),
            stacklevel=3,
        )


# Budget -------------------------------------------------------------------------------------------------------------


@dataclass
class _Charge:
    """What is set aside before the noise is drawn, and spent when the sketch is there."""

    reserve: Callable[[Guarantee], None]
    commit: Callable[[], None]


@contextlib.contextmanager
def _charging(config: SketchConfig) -> Iterator[_Charge]:
    if config.ledger is None:
        yield _Charge(lambda promised: None, lambda: None)
        return
    dataset = config.dataset or file_name(str(config.data))
    reserved: list[Reservation] = []
    with open_ledger(config.ledger) as ledger:
        if ledger.making is not None:
            warnings.warn(TacitWarning(ledger.making), stacklevel=4)

        def reserve(promised: Guarantee) -> None:
            reserved.append(
                ledger.reserve(
                    promised,
                    dataset=dataset,
                    subjects=[Subject("dataset", dataset, 1)],
                    token=secrets.token_hex(16),
                    command="tacit sketch build",
                )
            )

        def commit() -> None:
            for each in reserved:
                each.commit()

        yield _Charge(reserve, commit)
