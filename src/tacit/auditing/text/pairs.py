"""Original and released rows that belong together.

Word mechanisms and `tacit rewrite` keep rows in order, so row i of one file is row i of the other. That is checked as
far as it can be: the number of rows, and, when both files have a key column, the key of every row. Errors name the
row and never quote a cell.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.errors import BadInputError
from tacit.noise.source import public_generator
from tacit.text.files import ArrowCell, check_column, choose_columns, open_table, text_value

Spans = list[tuple[str, str]]
"""Known entities of a row: their type and their text."""


@dataclass(frozen=True)
class TextPairs:
    """Rows of both files. `labels` are columns of the original (authors, attributes); `rows` are their numbers in the
    files, from 1."""

    originals: Sequence[str]
    released: Sequence[str]
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    spans: Sequence[Spans] | None = None
    rows: Sequence[int] = ()

    def __post_init__(self) -> None:
        check_counts(len(self.originals), len(self.released))
        if not self.rows:
            object.__setattr__(self, "rows", range(1, len(self.originals) + 1))

    def __len__(self) -> int:
        return len(self.originals)

    def some(self, count: int, seed: int = 0) -> TextPairs:
        """A random part of the rows, in their order; all of them if there are no more."""
        if count >= len(self):
            return self
        return self.take(np.sort(public_generator(seed).choice(len(self), size=count, replace=False)).tolist())

    def take(self, places: Sequence[int]) -> TextPairs:
        return TextPairs(
            [self.originals[i] for i in places],
            [self.released[i] for i in places],
            {name: [values[i] for i in places] for name, values in self.labels.items()},
            None if self.spans is None else [self.spans[i] for i in places],
            [self.rows[i] for i in places],
        )


def check_counts(originals: int, released: int) -> None:
    if originals != released:
        longer, first = ("original", released + 1) if originals > released else ("private", originals + 1)
        raise BadInputError(
            "rows-do-not-align",
            "the files do not align: the original has {originals:,} rows and the private file {released:,}, so row "
            "{first:,} of the {longer} file has no partner; give the file that the private one was made from, or, for "
            "a release by users, of each user only the first rows that it has used",
            originals=originals,
            released=released,
            first=first,
            longer=longer,
        )
    if originals == 0:
        raise BadInputError("no-rows", "both files have a header and no rows: there is nothing to attack")


def read_pairs(
    original: object,
    private: object,
    *,
    column: str | None = None,
    private_column: str | None = None,
    key_column: str | None = None,
    label_columns: Sequence[str] = (),
    spans_column: str | None = None,
    original_format: str | None = None,
    private_format: str | None = None,
) -> TextPairs:
    """Two files, or tables in memory, as pairs of texts, with the columns of the original that the attacks need."""
    extra = [name for name in (*label_columns, spans_column) if name is not None]
    texts, more, keys, name = _read(original, original_format, column, key_column, extra)
    released_column = private_column if private_column is not None else column
    released, _, other_keys, _ = _read(private, private_format, released_column, key_column, (), fallback=name)
    for row, (mine, other) in enumerate(zip(keys, other_keys, strict=False), start=1):
        if mine != other:
            raise BadInputError(
                "rows-do-not-align",
                "the files do not align: the key column '{key_column}' differs in row {row:,}; sort both files by "
                "it, or give the file that the private one was made from",
                key_column=key_column,
                row=row,
            )
    check_counts(len(texts), len(released))
    spans = None
    if spans_column is not None:
        spans = [spans_of(value, row, spans_column) for row, value in enumerate(more[spans_column], start=1)]
    labels = {
        label: [label_of(value, row, label) for row, value in enumerate(more[label], start=1)]
        for label in label_columns
    }
    return TextPairs(texts, released, labels, spans)


def _read(
    source: object,
    format: str | None,
    column: str | None,
    key: str | None,
    extra: Sequence[str],
    fallback: str | None = None,
) -> tuple[list[str], dict[str, list[object]], list[object], str]:
    with open_table(source, format) as table:
        if column is None and fallback is not None and fallback in table.columns:
            column = fallback
        name = choose_columns(table.columns, () if column is None else (column,), ()).texts[0]
        wanted = [*extra, *([] if key is None else [key])]
        for each in wanted:
            check_column(each, table.columns)
        selected = list(dict.fromkeys([name, *wanted]))
        table.select(selected)
        texts: list[str] = []
        cells: dict[str, list[object]] = {each: [] for each in wanted}
        for row, values in table.rows():
            by_name = dict(zip(table.selected, values, strict=True))
            texts.append(text_value(by_name[name], row, name))
            for each, kept in cells.items():
                kept.append(_plain(by_name[each]))
        return texts, cells, cells.get(key, []) if key is not None else [], name


def _plain(value: object) -> object:
    return value.as_py() if isinstance(value, ArrowCell) else value


def label_of(value: object, row: int, column: str) -> str:
    """A label as text; an empty one is an error, because a missing label is not a class."""
    if isinstance(value, bool | int | float | str) and str(value).strip():
        return str(value).strip()
    raise BadInputError(
        "label-missing",
        "row {row:,} has no label in the column '{column}': fill it in, or remove the row from both files",
        row=row,
        column=column,
    )


def spans_of(value: object, row: int, column: str) -> Spans:
    """Known entities of a row: a list of objects with 'type' and 'value', or that list as JSON text."""
    try:
        items = (json.loads(value) if isinstance(value, str) else value) or ()
        if not isinstance(items, Iterable):
            raise TypeError(type(items).__name__)
        return [(str(item["type"]), str(item["value"])) for item in items]
    except (ValueError, KeyError, TypeError):
        raise BadInputError(
            "not-a-list-of-spans",
            "row {row:,}, column '{column}' holds no list of spans: each is an object with 'type' and 'value'",
            row=row,
            column=column,
        ) from None
