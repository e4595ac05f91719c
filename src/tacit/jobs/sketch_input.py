"""The input of a job that builds a sketch: the labels that its options name, and its rows in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.errors import BadInputError
from tacit.jobs.sketched_rows import SketchedRows
from tacit.matching.labels import Bins, ListedLabels, PublicLabels, label_name, public_topics
from tacit.matching.sums import BLOCK_ROWS, RowBlock, RowSource
from tacit.progress import StepProgress
from tacit.text.files import TableReader, cell_string, check_column, choose_columns, open_table, text_value

USUAL_TOPICS = 64
MOST_DECLARED = 10_000


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
