"""Original and released files row by row: the same rows in the same order, or a sentence that says where they part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tacit.card import Card
from tacit.errors import BadInputError
from tacit.evaluation.downstream import Labeled
from tacit.evaluation.learners import Task
from tacit.text.files import cell_string, check_columns, choose_columns, open_table, text_value, unambiguous
from tacit.text.tokens import split

UNALIGNED_LIMIT = 0.5


@dataclass(frozen=True)
class TextRows:
    """The rows of one file: its text columns, its labels if it has them, and what else it says about each row."""

    name: str
    texts: tuple[Sequence[str], ...]
    labels: Sequence[str] | None
    others: Mapping[str, Sequence[str]] = field(repr=False)

    def __len__(self) -> int:
        return len(self.texts[0])

    @property
    def all_texts(self) -> list[str]:
        """All texts, column by column."""
        return [text for column in self.texts for text in column]


def read_rows(
    source: object, columns: Sequence[str] = (), label_column: str | None = None, format: str | None = None
) -> TextRows:
    """The rows of a file, or of data in memory; a label column that is not there leaves `labels` empty."""
    with open_table(source, format) as table:
        names = list(choose_columns(table.columns, columns, ()).texts) if not columns else list(columns)
        check_columns(names, table.columns)
        has_label = label_column is not None and label_column in table.columns
        if has_label and label_column in names:
            raise BadInputError(
                "text-is-label", "the column '{column}' cannot be text and label: name another one", column=label_column
            )
        # A name that stands there twice says nothing about which column is meant.
        once = unambiguous(table.columns)
        others = [name for name in once if name not in names and name != label_column]
        wanted = [*names, *([str(label_column)] if has_label else []), *others]
        table.select(wanted)
        cells: list[list[str]] = [[] for _ in wanted]
        for row, values in table.rows():
            for place, value in enumerate(values):
                text = text_value(value, row, wanted[place]) if place < len(names) else cell_string(value)
                cells[place].append(text)
    labels = cells[len(names)] if has_label else None
    rest = dict(zip(others, cells[len(names) + has_label :], strict=True))
    return TextRows(table.name, tuple(cells[: len(names)]), labels, rest)


def align(original: TextRows, released: TextRows) -> TextRows:
    """The released rows, checked against the originals; labels come from the originals where the release has none.

    Columns that both files have and that are neither text nor label must agree: they tell whether row i is row i.
    """
    if len(original.texts) != len(released.texts):
        raise BadInputError(
            "columns-do-not-align",
            "{file} has {columns} text columns and {other_file} has {other_columns}: name the same number with "
            "{option.columns} and {option.private_columns}",
            file=original.name,
            columns=len(original.texts),
            other_file=released.name,
            other_columns=len(released.texts),
        )
    if len(original) != len(released):
        shorter, longer = sorted((original, released), key=len)
        raise BadInputError(
            "rows-do-not-align",
            "{file} has {rows:,} rows and {other_file} has {other_rows:,}: row {row} of {longer} has no partner; "
            "give files with the same rows in the same order",
            file=original.name,
            rows=len(original),
            other_file=released.name,
            other_rows=len(released),
            row=len(shorter) + 1,
            longer=longer.name,
        )
    for column in [name for name in original.others if name in released.others]:
        pairs = zip(original.others[column], released.others[column], strict=True)
        for row, (mine, theirs) in enumerate(pairs, start=1):
            if mine != theirs:
                raise BadInputError(
                    "rows-do-not-align",
                    "row {row} does not align: column '{column}' differs between {file} and {other_file}; give "
                    "files with the same rows in the same order",
                    row=row,
                    column=column,
                    file=original.name,
                    other_file=released.name,
                )
    return released if released.labels is not None else replace(released, labels=original.labels)


def labels_of(rows: TextRows, label_column: str) -> Sequence[str]:
    """The labels of rows; empty where one is missing."""
    if rows.labels is None:
        raise BadInputError(
            "no-label-column",
            "{file} has no column '{column}' with the labels: add it, or name another one",
            file=rows.name,
            column=label_column,
        )
    return rows.labels


def labeled(task: Task, rows: TextRows, label_column: str) -> Labeled:
    """Texts and labels as the task wants them."""
    labels = labels_of(rows, label_column)
    for row, label in enumerate(labels, start=1):
        if not label.strip():
            raise BadInputError(
                "label-missing",
                "row {row} of {file} has no label in '{column}': fill it in or leave it out",
                row=row,
                file=rows.name,
                column=label_column,
            )
    wanted = 2 if task in ("pairs", "similarity") else 1
    if len(rows.texts) != wanted:
        raise BadInputError(
            "wrong-number-of-columns",
            "the task '{task}' takes 2 text columns, not {given}: give {option.columns} twice"
            if wanted > 1
            else "the task '{task}' takes 1 text column, not {given}: give one {option.columns}",
            task=task,
            given=len(rows.texts),
        )
    if task == "classification":
        return Labeled(list(rows.texts[0]), list(labels))
    if task == "tagging":
        return Labeled([text.split() for text in rows.texts[0]], [label.split() for label in labels])
    pairs = list(zip(*rows.texts, strict=True))
    return Labeled(pairs, list(labels) if task == "pairs" else [_number(x, i, rows) for i, x in
                                                                     enumerate(labels, start=1)])  # fmt: skip


def _number(label: str, row: int, rows: TextRows) -> float:
    try:
        number = float(label)
    except ValueError:
        number = float("nan")
    if number != number or number in (float("inf"), float("-inf")):
        # What stands there may be a private text, if the wrong column was named.
        raise BadInputError(
            "not-a-number",
            "row {row} of {file} has a similarity that is not a number: correct it, or name another column",
            row=row,
            file=rows.name,
        )
    return number


@dataclass(frozen=True)
class Tagged:
    """Released tokens with tags, and the rows (from 1) where the number of tokens does not fit the tags."""

    rows: Labeled
    places: tuple[int, ...]
    unaligned: tuple[int, ...]


def released_tags(rows: TextRows, label_column: str) -> Tagged:
    """Tokens of a word-level release and their tags, for the rows that still have one token per tag.

    The tokens are those the mechanisms make (`tacit.text.tokens`), or the words between white space where only these
    fit.
    """
    if rows.labels is None:
        raise BadInputError(
            "no-label-column",
            "{file} has no column '{column}' with the tags: add it, or name another one",
            file=rows.name,
            column=label_column,
        )
    tokens, tags, places, unaligned = [], [], [], []
    for row, (text, label) in enumerate(zip(rows.texts[0], rows.labels, strict=True), start=1):
        wanted = label.split()
        fitting = next((candidate for candidate in (split(text), text.split()) if len(candidate) == len(wanted)), None)
        if fitting is None:
            unaligned.append(row)
            continue
        tokens.append(fitting)
        tags.append(wanted)
        places.append(row - 1)
    if len(unaligned) > UNALIGNED_LIMIT * len(rows):
        first = unaligned[0] - 1
        raise BadInputError(
            "released-tags-do-not-align",
            "{unaligned:,} of {rows:,} rows of {file} do not have one released token per tag (row {row}: {tokens} "
            "tokens, {tags} tags): tagging needs a word-level release, which keeps the number of tokens",
            unaligned=len(unaligned),
            rows=len(rows),
            file=rows.name,
            row=unaligned[0],
            tokens=len(split(rows.texts[0][first])),
            tags=len(rows.labels[first].split()),
        )
    return Tagged(Labeled(tokens, tags), tuple(places), tuple(unaligned))


def card_beside(path: str) -> Card | None:
    """The privacy card that `tacit rewrite` wrote beside a file, if it is there."""
    place = Path(f"{path}.card.json")
    if not place.is_file():
        return None
    try:
        return Card.of_file(place)
    except (OSError, UnicodeDecodeError, BadInputError):
        raise BadInputError(
            "unreadable-card", "the card {name} cannot be read: write it again, or remove it", name=place.name
        ) from None
