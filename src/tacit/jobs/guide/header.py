"""The shape of a private file, which is all that the guide looks at: names of columns, and the number of rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tacit.errors import BadInputError
from tacit.progress import StepProgress
from tacit.text.files import choose_columns, open_table
from tacit.text.files.formats import looks_like_a_name
from tacit.text.files.memory import is_standard_input

REPORTED_ROWS: Final = 10_000

TEXT_NAMES: Final = (
    "text", "texts", "message", "sentence", "document", "utterance", "review", "comment", "comments", "note", "notes",
    "body", "content", "question", "query", "request", "description", "mail", "email", "tweet", "post", "article",
    "abstract", "transcript", "tokens",
)  # fmt: skip
LABEL_NAMES: Final = (
    "label", "labels", "intent", "category", "class", "topic", "sentiment", "stars", "rating", "score", "tag", "type",
    "diagnosis", "department", "target",
)  # fmt: skip
USER_NAMES: Final = (
    "user", "username", "author", "customer", "patient", "person", "sender", "client", "participant", "speaker",
    "writer", "member", "account", "employee", "student",
)  # fmt: skip
"""What columns are called that hold texts, labels or persons, the most usual names first."""


@dataclass(frozen=True)
class FileShape:
    """The names of the columns of a file, and how many rows it has."""

    columns: tuple[str, ...]
    rows: int


@dataclass(frozen=True)
class ColumnRoles:
    """The columns by what they are for; None where there is no such column."""

    text: str | None = None
    label: str | None = None
    user: str | None = None


def shape_of(source: object, format: str | None = None, progress: StepProgress | None = None) -> FileShape:
    """The shape of a file or of data in memory. Rows are counted; no value of any is kept or compared."""
    if is_standard_input(source):
        raise BadInputError(
            "guide-reads-no-stream",
            "standard input could not be read again by the command: name a file, or leave it out and give "
            "{option.private_rows}",
        )
    with open_table(source, format) as table:
        columns = table.columns
        rows = 0
        for row, _ in table.rows():
            rows = row
            if progress is not None and table.size_bytes and row % REPORTED_ROWS == 0:
                progress(min(table.bytes_read(), table.size_bytes), table.size_bytes)
    return FileShape(columns, rows)


def roles_of(columns: Sequence[str], chosen: ColumnRoles) -> ColumnRoles:
    """The roles of columns: those that were named, else those that are called as such columns usually are. What may be
    the text of a file without a header is never taken for a name.

    >>> roles_of(["id", "customer_id", "message", "topic"], ColumnRoles())
    ColumnRoles(text='message', label='topic', user='customer_id')
    """
    named = [name for name in (chosen.text, chosen.label, chosen.user) if name is not None]
    label = chosen.label or usual_column(columns, LABEL_NAMES, [*named])
    user = chosen.user or usual_column(columns, USER_NAMES, [*named, label])
    text = chosen.text or usual_column(columns, TEXT_NAMES, [*named, label, user])
    return ColumnRoles(text or choose_columns(columns, (), ()).texts[0], label, user)


def usual_column(columns: Sequence[str], names: Sequence[str], taken: Sequence[str | None]) -> str | None:
    """The column with the most usual name; a column whose name only contains it comes after all that have it.

    >>> usual_column(["review_id", "benefits_review"], ["review"], [])
    'benefits_review'
    """
    free = [column for column in columns if column not in taken and looks_like_a_name(column)]
    whole = [column for name in names for column in free if column.lower() == name]
    parts = [
        column
        for name in names
        for column in free
        if name in words_of(column) and (names is USER_NAMES or not_an_id(column))
    ]
    return next(iter([*whole, *parts]), None)


def words_of(column: str) -> list[str]:
    """The words of a name, in small letters.

    >>> words_of("Customer ID"), words_of("reviewText")
    (['customer', 'id'], ['review', 'text'])
    """
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", column).lower())


def not_an_id(column: str) -> bool:
    """Whether a column holds more than numbers of things, by its name."""
    return not {"id", "ids", "number", "count", "date", "length"} & set(words_of(column))
