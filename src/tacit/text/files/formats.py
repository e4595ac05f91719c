"""Which formats there are, and which columns of a table are rewritten, copied or dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from tacit.errors import BadInputError

STANDARD_STREAM: Final = "-"
KINDS: Final = ("txt", "csv", "csv-semicolon", "tsv", "tsv-raw", "jsonl", "parquet")
TEXT_COLUMN: Final = "text"

_SUFFIXES: Final = {
    ".txt": "txt",
    ".text": "txt",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


SUPPORTED: Final = ".txt (one text per line), .csv, .tsv, .jsonl or .parquet, all but parquet also with .gz"
"""What a file can be called, for a sentence."""

_OTHERS: Final = {
    "a spreadsheet": ("xlsx", "xls", "xlsm", "xlsb", "ods", "numbers"),
    "a document of an office program": ("docx", "doc", "docm", "odt", "rtf", "pages", "pptx", "ppt", "odp", "key"),
    "a PDF": ("pdf",),
    "an electronic book": ("epub", "mobi"),
    "a web page or XML": ("html", "htm", "xhtml", "xml"),
    "one JSON document (jsonl has one object on each line)": ("json",),
    "an archive": ("zip", "7z", "rar", "tar", "tgz", "bz2", "xz", "zst"),
    "an e-mail or a mailbox": ("eml", "msg", "mbox", "pst"),
    "a database or a file of a library": ("db", "sqlite", "feather", "arrow", "avro", "orc", "pkl", "pickle", "npy"),
    "an image or a recording": ("png", "jpg", "jpeg", "gif", "tif", "tiff", "bmp", "mp3", "wav", "mp4"),
}  # fmt: skip
_OTHER_KINDS: Final = {f".{suffix}": what for what, suffixes in _OTHERS.items() for suffix in suffixes}


class _Missing:
    """A key that one row of a jsonl file does not have."""

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        """The same object again in another process."""
        return "MISSING"


MISSING: Final = _Missing()


# Formats ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FileFormat:
    kind: str
    gzip: bool = False

    def __str__(self) -> str:
        return f"{self.kind}.gz" if self.gzip else self.kind


def format_named(name: str) -> FileFormat:
    """The format called `name`, such as `csv` or `csv.gz`."""
    kind = name.lower().removeprefix(".")
    zipped = kind.endswith(".gz")
    kind = kind.removesuffix(".gz")
    if kind not in KINDS:
        close = get_close_matches(kind, KINDS, n=1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        raise BadInputError(
            "unknown-format",
            "there is no format '{name}'{hint}: use one of {kinds}, or with .gz",
            name=name,
            hint=hint,
            kinds=", ".join(KINDS),
        )
    if zipped and kind == "parquet":
        raise BadInputError("parquet-in-gzip", "parquet compresses by itself: use the format parquet without .gz")
    return FileFormat(kind, zipped)


def format_of(path: str, name: str | None = None) -> FileFormat:
    """The format of a file: the one that was named, otherwise the one its suffix says."""
    if name is not None:
        return format_named(name)
    if path == STANDARD_STREAM:
        raise BadInputError(
            "format-not-named",
            "standard input has no suffix that tells its format: add {option.format}, such as {option.format[csv]}",
        )
    by_suffix = suffix_format(path)
    if by_suffix is None and (what := other_kind(path)) is not None:
        raise BadInputError(
            "unknown-format",
            "'{name}' is {what}, which Tacit neither reads nor writes: save the texts as {supported}",
            name=Path(path).name,
            what=what,
            supported=SUPPORTED,
        )
    if by_suffix is None and "://" not in path and Path(path).is_dir():
        raise BadInputError(
            "is-a-folder", "'{path}' is a folder: give one file in it, {supported}", path=path, supported=SUPPORTED
        )
    if by_suffix is None:
        raise BadInputError(
            "format-not-named",
            "the name '{name}' does not tell its format: add {option.format} with one of {kinds}",
            name=Path(path).name,
            kinds=", ".join(KINDS),
        )
    if by_suffix.gzip and by_suffix.kind == "parquet":
        raise BadInputError(
            "parquet-in-gzip", "parquet compresses by itself: gunzip the file first, or name it .parquet"
        )
    return by_suffix


def other_kind(path: str) -> str | None:
    """The kind of a file whose suffix is that of another program, in words."""
    name = Path(path).name.lower().removesuffix(".gz")
    return _OTHER_KINDS.get(Path(name).suffix)


def suffix_format(path: str) -> FileFormat | None:
    """The format that the suffix of a path names, if any."""
    name = Path(path).name.lower()
    zipped = name.endswith(".gz")
    kind = _SUFFIXES.get(Path(name.removesuffix(".gz")).suffix)
    return None if kind is None else FileFormat(kind, zipped)


# Columns ----------------------------------------------------------------------------------------------------------


class FirstLine(tuple[str, ...]):
    """Names of columns that were read off the first line of a file. Without a header that line is a row with private
    texts, so errors show of it only what is a usual name of a column, or what the user has typed but for its case."""


class FirstKeys(tuple[str, ...]):
    """Names of columns that are the keys of the first row of a file; another row may have more."""


USUAL_NAMES: Final = frozenset(
    {"answer", "article", "author", "body", "category", "class", "comment", "content", "context", "created",
     "customer", "dataset", "date", "description", "document", "email", "id", "index", "input", "instruction",
     "label", "labels", "language", "message", "name", "note", "number", "output", "paragraph", "phrase", "post",
     "prompt", "question", "rating", "response", "review", "score", "sender", "sentence", "sentence1",
     "sentence2", "sentiment", "source", "split", "stars", "subject", "summary", "tag", "tags", "target", "text",
     "text1", "text2", "timestamp", "title", "topic", "translation", "tweet", "uid", "url", "user", "username",
     "utterance", "value", "who", "words"}
)  # fmt: skip
"""Public knowledge: that one of these stands in a first line tells nothing about a person."""


@dataclass(frozen=True)
class ColumnSelection:
    """The columns that are rewritten, those that are copied as they are, and those that do not reach the output."""

    texts: tuple[str, ...]
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    written: tuple[str, ...]


def choose_columns(columns: Sequence[str], texts: Sequence[str], kept: Sequence[str]) -> ColumnSelection:
    """Decide the fate of every column from the header alone.

    Without a choice, the text is the only column, or the one that is called `text`; anything else would be a guess
    about which column is private.
    """
    if not texts:
        if len(columns) == 1:
            if not looks_like_a_name(columns[0]):
                raise BadInputError(
                    "no-header",
                    "the first line does not look like column names, and would be published as they are: add a header "
                    "line, use {option.format[txt]} for one text per line, or name the column with {option.columns} if "
                    "it is one",
                )
            refuse_other_separator(columns)
            texts = columns
        elif TEXT_COLUMN in columns:
            texts = (TEXT_COLUMN,)
        else:
            raise BadInputError(
                "which-column",
                "say which column holds the text, with {option.columns[NAME]}: this file has {columns}",
                columns=listed_columns(columns),
            )
    check_columns((*texts, *kept), columns)
    rewritten, copied = set(texts), set(kept)
    both = [name for name in texts if name in copied]
    if both:
        raise BadInputError(
            "rewritten-and-kept",
            "the column '{column}' is named as the text and for something else as well (a label, a user, a column that "
            "is kept): each column has one use",
            column=both[0],
        )
    chosen = rewritten | copied
    return ColumnSelection(
        texts=tuple(name for name in columns if name in rewritten),
        kept=tuple(name for name in columns if name in copied),
        dropped=tuple(name for name in columns if name not in chosen),
        written=tuple(name for name in columns if name in chosen),
    )


def looks_like_a_name(column: str) -> bool:
    """Whether the first line of a file can be a header: a headerless file has a text there, which must not be
    taken for a name and published."""
    return 0 < len(column) <= 40 and column.count(" ") <= 3 and not column.rstrip().endswith((".", "!", "?"))


def check_columns(names: Sequence[str], columns: Sequence[str]) -> None:
    """Each of these columns must exist exactly once. One pass, however many columns there are."""
    counts = Counter(columns)
    for name in names:
        if counts[name] != 1:
            check_column(name, columns)


def unambiguous(columns: Sequence[str]) -> list[str]:
    """The columns whose names occur once."""
    counts = Counter(columns)
    return [name for name in columns if counts[name] == 1]


def check_column(name: str, columns: Sequence[str]) -> None:
    """A column must exist exactly once; otherwise say which ones there are."""
    count = list(columns).count(name)
    if count == 1:
        return
    if count > 1:
        raise BadInputError(
            "column-twice",
            "{count} columns are called '{name}', so it is not clear which one is meant: rename all but one",
            count=count,
            name=name,
        )
    close = get_close_matches(name, shown_names(columns), n=3, cutoff=0.5) or [
        column for column in columns if column.strip().lower() == name.strip().lower()
    ]
    hint = f" (did you mean {' or '.join(repr(column) for column in close)}?)" if close else ""
    refuse_other_separator(columns)
    raise BadInputError(
        "no-such-column",
        "there is no column '{column}'{hint}: this file has {columns}",
        column=name,
        hint=hint,
        columns=listed_columns(columns),
    )


def refuse_other_separator(columns: Sequence[str]) -> None:
    """Refuse a file that is separated by another mark than its format says: only one column was found, and its name
    holds that mark."""
    mark = next((each for each in (";", "\t", "|") if len(columns) == 1 and each in columns[0]), None)
    if mark is None:
        return
    advice = {
        ";": "add {option.format[csv-semicolon]}, or convert the file to csv where a command has no such option",
        "\t": "name the file .tsv, or add {option.format[tsv]}",
    }
    raise BadInputError(
        "other-separator",
        "the columns seem to be separated by {mark!r}: "
        + advice.get(mark, "convert the file to csv or tsv")
        + "; or rename the column if it is one",
        mark=mark,
    )


def text_value(value: object, row: int, column: str) -> str:
    """The text in a cell. Null counts as an empty text, and stays empty in the output."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if value is MISSING:
        raise BadInputError(
            "text-missing",
            "row {row} has no '{column}': give it a text, or null for an empty one",
            row=row,
            column=column,
        )
    kind = json_kind(value)
    raise BadInputError(
        "not-a-text",
        "row {row}, column '{column}' holds {given}, not a text: turn it into a string first",
        row=row,
        column=column,
        given=kind,
    )


def json_kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "another type"


def shown_names(columns: Sequence[str]) -> list[str]:
    """The names that an error may quote."""
    if not isinstance(columns, FirstLine):
        return list(columns)
    return [name for name in columns if name.strip().lower().replace("_", "") in USUAL_NAMES]


def listed_columns(columns: Sequence[str], limit: int = 20) -> str:
    """The columns of a file for an error, as far as it may quote their names."""
    names = shown_names(columns)
    hidden, more = len(columns) - len(names), len(names) - limit
    shown = ", ".join(repr(name) for name in names[:limit])
    parts = [f"{'the column' if len(names) == 1 else 'the columns'} {shown}"] if names else []
    parts += [f"{more} more"] if more > 0 else []
    if hidden:
        others = "other column" if names else "column"
        parts.append(
            f"{hidden:,} {others}{'' if hidden == 1 else 's'} in its first line, which may be text and is not shown"
        )
    listed = " and ".join(parts or ["no column"])
    return f"{listed} in its first row" if isinstance(columns, FirstKeys) else listed
