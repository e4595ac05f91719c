"""The input of a job that builds a sketch: the labels that its options name, and its rows in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast

from tacit.errors import BadInputError
from tacit.jobs.sketched_rows import SketchedRows
from tacit.matching.documents import with_lengths
from tacit.matching.features import FeatureMap, default_map
from tacit.matching.labels import Bins, ListedLabels, PublicLabels, label_name, public_topics
from tacit.matching.marginals import JointLabels, joint_labels, map_beside
from tacit.matching.pure import pure_map
from tacit.matching.sums import BLOCK_ROWS, RowBlock, RowSource
from tacit.progress import StepProgress
from tacit.text.files import TableReader, cell_string, check_column, choose_columns, open_table, text_value
from tacit.text.files.memory import name_of

USUAL_TOPICS = 64
MOST_DECLARED = 10_000


# Labels -------------------------------------------------------------------------------------------------------------


def label_rule(config: SketchedRows, bought: Mapping[str, ListedLabels] | None = None) -> PublicLabels:
    """The labels that the options name, of one column or of several.

    bought   by column: labels that were found in the rows, and paid for
    """
    if not config.label_columns:
        return public_topics(config.topics or USUAL_TOPICS, config.encoders[0])
    rules = [(column, (bought or {}).get(column) or _rule_of(config, column)) for column in config.label_columns]
    return rules[0][1] if len(rules) == 1 else joint_labels(rules, _usual_map(config))


def map_for(config: SketchedRows, rule: PublicLabels) -> FeatureMap:
    """The features that are summed; with several label columns they leave room for each."""
    usual = _usual_map(config)
    return map_beside(rule, usual) if isinstance(rule, JointLabels) else usual


def _usual_map(config: SketchedRows) -> FeatureMap:
    """The features that are summed where there is one label column."""
    if config.pure:
        return pure_map(config.encoders)  # it has no room for lengths
    usual = default_map(config.encoders, words=config.vocabulary)
    return with_lengths(usual) if config.sentences == "auto" else usual


def _rule_of(config: SketchedRows, column: str) -> ListedLabels | Bins:
    edges = dict(config.bins_of).get(column, config.bins)
    if edges:
        return Bins(edges)
    names = dict(config.labels_of).get(column, config.labels)
    if config.labels_from is not None:
        names = _labels_of_file(config.labels_from)
    if not names and config.declare_labels_public:
        return ListedLabels(_declared_labels(config, column), declared=True)
    return ListedLabels(names, config.other)


def _labels_of_file(path: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(
            "unreadable-labels", "'{path}' cannot be read as UTF-8 text, one label per line: check it", path=path
        ) from error
    return tuple(line.strip() for line in lines if line.strip())


def check_distinct_labels(column: str, values: int, most: int) -> None:
    """Refuse a column of labels with more different values than labels can have."""
    if values > most:
        raise BadInputError(
            "labels-look-like-texts",
            "the column '{column}' has more than {most:,} different values: is it a label?",
            column=column,
            most=most,
        )


def _declared_labels(config: SketchedRows, column: str) -> tuple[str, ...]:
    """All labels that occur in a column, which the user has declared public."""
    names: set[str] = set()
    with open_table(config.data, config.format) as table:
        check_column(column, table.columns)
        table.select([column])
        for _, values in table.rows():
            names.add(label_name(values[0]))
            check_distinct_labels(column, len(names), MOST_DECLARED)
    if not names - {""}:
        raise BadInputError(
            "no-labels", "no row of {name} has a label in '{column}'", name=name_of(config.data), column=column
        )
    return tuple(sorted(names - {""}))


# Rows ---------------------------------------------------------------------------------------------------------------


class RowColumns(Protocol):
    """The options that say where rows are, and which of their columns are read."""

    @property
    def data(self) -> Any: ...
    @property
    def format(self) -> str | None: ...
    @property
    def column(self) -> str | None: ...
    @property
    def label_columns(self) -> tuple[str, ...]: ...
    @property
    def user_column(self) -> str | None: ...


def row_source(config: RowColumns, progress: StepProgress | None = None) -> RowSource:
    """The rows of a configuration in blocks."""

    def blocks() -> Iterator[RowBlock]:
        with open_table(config.data, config.format) as table:
            yield from _blocks(config, table, progress)

    return blocks


def first_label_source(config: SketchedRows) -> RowSource:
    """The rows of a configuration with several label columns, each with its label in the first of them."""

    def blocks() -> Iterator[RowBlock]:
        for block in row_source(config)():
            yield replace(block, labels=[values[0] for values in cast("Sequence[tuple[object, ...]]", block.labels)])

    return blocks


def _blocks(config: RowColumns, table: TableReader, progress: StepProgress | None) -> Iterator[RowBlock]:
    kept = [*config.label_columns, *([] if config.user_column is None else [config.user_column])]
    text = choose_columns(table.columns, () if config.column is None else (config.column,), kept).texts[0]
    table.select([text, *kept])
    last_label = len(config.label_columns)
    user_place = None if config.user_column is None else len(kept)
    texts: list[str] = []
    labels: list[Any] = []
    users: list[str] = []
    for row, values in table.rows():
        texts.append(text_value(values[0], row, text))
        if last_label:
            labels.append(values[1] if last_label == 1 else tuple(values[1 : last_label + 1]))
        if user_place is not None:
            users.append(cell_string(values[user_place]))
        if len(texts) == BLOCK_ROWS:
            yield RowBlock(texts, labels, users)
            texts, labels, users = [], [], []
            if progress is not None and table.size_bytes:
                progress(min(table.bytes_read(), table.size_bytes), table.size_bytes)
    if texts:
        yield RowBlock(texts, labels, users)
