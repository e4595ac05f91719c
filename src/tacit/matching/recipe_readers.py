"""How the files of a recipe are read: each reader gives the texts of one file.

    lines       one text a line
    jsonl       JSON objects, one a line: the texts in `fields`; answers to choose from ("A. …") are cut off
    json        one JSON document: all texts under keys named in `fields`, at any depth; without fields, all of them
    csv, tsv    a table with a header: the columns in `fields`
    yaml-items  the items of lists in a YAML file, without a parser: lines that begin with a dash
    markdown    running text: headings, tables, lists of code and marks are left out
    templates   sentence templates of voice assistants, expanded (`tacit.matching.templates`)
    dialogues   texts with marks such as #HOTEL-INFORM-AREA#, which are filled in (MultiWOZ)

Files that end in .gz are unpacked. A row that is broken is left out; a file without any text is an error of its recipe.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tacit.errors import BadInputError
from tacit.matching.templates import expanded, filled_marks

_CHOICES = re.compile(r"\n+\s*A[.)] .*", re.DOTALL)
_CONTEXT = re.compile(r"\s*Context \(\d+\): ")
_ITEM = re.compile(r"\s*(?:- )+(.*)")
_MARKDOWN = re.compile(r"[*_`]{1,3}|^\s*(?:[-*+]|\d+\.)\s+|\[|\]\([^)]*\)")
_NOT_PROSE = ("#", "|", "```", ">", "<", "---")


def texts_of(path: Path, reader: str, fields: Sequence[str]) -> Iterator[str]:
    """The texts of a file."""
    if reader not in READERS:
        raise BadInputError("no-such-reader", "there is no reader '{reader}' for files of a recipe", reader=reader)
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", errors="replace", newline="") as file:
        yield from READERS[reader](file, fields)


def _lines(file: io.TextIOBase, fields: Sequence[str]) -> Iterator[str]:
    yield from (line.strip() for line in file)


def _json_lines(file: io.TextIOBase, fields: Sequence[str]) -> Iterator[str]:
    for line in file:
        try:
            document = json.loads(line)
        except ValueError:
            continue
        yield from (_CONTEXT.sub(" ", _CHOICES.sub("", text)) for text in _strings(document, fields))


def _json(file: io.TextIOBase, fields: Sequence[str]) -> Iterator[str]:
    try:
        yield from _strings(json.load(file), fields)
    except ValueError:
        return


def _strings(document: object, fields: Sequence[str], wanted: bool = False) -> Iterator[str]:
    """All strings under keys of these names; all strings at all if none is named."""
    if isinstance(document, str):
        if wanted or not fields:
            yield document
    elif isinstance(document, list):
        for item in document:
            yield from _strings(item, fields, wanted)
    elif isinstance(document, dict):
        for key, value in document.items():
            yield from _strings(value, fields, wanted or key in fields)


def _table(delimiter: str) -> Callable[[io.TextIOBase, Sequence[str]], Iterator[str]]:
    def read(file: io.TextIOBase, fields: Sequence[str]) -> Iterator[str]:
        for row in csv.DictReader(file, delimiter=delimiter):
            yield from (row[field] for field in fields if row.get(field))

    return read


def _yaml_items(file: io.TextIOBase, fields: Sequence[str]) -> Iterator[str]:
    for line in file:
        if item := _ITEM.fullmatch(line.rstrip("\n")):
            yield item[1].strip().strip("'\"")


def _markdown(file: io.TextIOBase, fields: Sequence[str]) -> Iterator[str]:
    for text in _json(file, fields) if fields else [file.read()]:
        for line in text.split("\n"):
            if line.strip() and not line.lstrip().startswith(_NOT_PROSE):
                yield _MARKDOWN.sub("", line).strip()


def _templates(file: io.TextIOBase, fields: Sequence[str]) -> Iterator[str]:
    for template in _json(file, fields) if fields else file:
        yield from expanded(template.strip())


def _dialogues(file: io.TextIOBase, fields: Sequence[str]) -> Iterator[str]:
    for text in _json(file, fields):
        yield from filled_marks(text)


READERS: dict[str, Callable[[Any, Sequence[str]], Iterator[str]]] = {
    "lines": _lines,
    "jsonl": _json_lines,
    "json": _json,
    "csv": _table(","),
    "tsv": _table("\t"),
    "yaml-items": _yaml_items,
    "markdown": _markdown,
    "templates": _templates,
    "dialogues": _dialogues,
}
