"""A file cut into blocks of work, and the noise that belongs to each block.

The cuts depend on the input alone, never on the number of workers or on time, and a block's noise is a function of
the job's key, the block's number and its texts. So a block that is repeated, after a crash, a killed worker or a
resumed run, comes out exactly as before: no row is ever released with two different draws.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tacit.engines.users import UserRule, name_of
from tacit.errors import BadInputError, BadParameterError, TacitError, place_of
from tacit.labels import LabelRule
from tacit.mechanism import Mechanism, Rewritten
from tacit.noise.source import StreamKey
from tacit.text.files import ArrowCell, ColumnSelection, TableReader, cell_string, text_value

BLOCK_ROWS: Final = 200_000
BLOCK_KEPT_CHARACTERS: Final = 16_000_000
"""Copied columns may be much larger than the texts; this keeps a block in memory bounded all the same."""


@dataclass
class Block:
    """Consecutive rows: their texts row by row, the values to copy beside them, and a hash of the texts.

    `users` and `documents` say whose rows they are and what they are called, where columns for that are given;
    `labels` are the labels that are released by the choice of the text.
    """

    index: int
    first_row: int
    texts: list[str] = field(default_factory=list)
    kept: list[list[object]] = field(default_factory=list)
    bytes_read: int = 0
    content: bytes = b""
    users: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    labels: list[str] | None = None

    @property
    def rows(self) -> int:
        return len(self.kept)

    def span(self) -> str:
        return f"rows {self.first_row:,} to {self.first_row + self.rows - 1:,}"


def cut_blocks(
    table: TableReader,
    selection: ColumnSelection,
    characters: int,
    job_fingerprint: bytes,
    users: UserRule | None = None,
    document_column: str | None = None,
    labels: LabelRule | None = None,
) -> Iterator[Block]:
    """Rows in blocks of about `characters` characters of text."""
    for block in _cut(table, selection, characters, users, document_column, labels):
        block.bytes_read = table.bytes_read()
        if labels is not None and labels.joint:
            place = selection.kept.index(labels.column)
            block.labels = [cell_string(row[place]) for row in block.kept]
        block.content = content_digest([*block.texts, *(block.labels or ())], job_fingerprint)
        yield block


def _cut(
    table: TableReader,
    selection: ColumnSelection,
    characters: int,
    users: UserRule | None,
    document_column: str | None,
    labels: LabelRule | None,
) -> Iterator[Block]:
    width = len(selection.texts)
    label = None if labels is None else selection.kept.index(labels.column)
    rows = rows_to_rewrite(table, selection, users, document_column)
    named = list(enumerate(selection.texts))
    block, size, copied = Block(index=0, first_row=1), 0, 0
    for row, values in rows:
        for position, column in named:
            text = values[position]
            if type(text) is not str:
                text = text_value(text, row, column)
            block.texts.append(text)
            size += len(text)
        kept = values[width:]
        if users is not None:
            block.users.append(str(kept.pop()))
        if document_column is not None:
            block.documents.append(document_name(kept.pop(), row, document_column))
        if labels is not None and label is not None:
            labels.check(cell_string(kept[label]), row)
        block.kept.append(kept)
        for value in kept:
            copied += len(value) if type(value) is str else weight(value)
        if size >= characters or row - block.first_row >= BLOCK_ROWS - 1 or copied >= BLOCK_KEPT_CHARACTERS:
            yield block
            block, size, copied = Block(index=block.index + 1, first_row=row + 1), 0, 0
    if block.rows:
        yield block


def rows_to_rewrite(
    table: TableReader, selection: ColumnSelection, users: UserRule | None, document_column: str | None = None
) -> Iterator[tuple[int, list[object]]]:
    """Texts, kept values, and at the end the name of the document and the user where there are any."""
    columns = (*selection.texts, *selection.kept)
    if document_column is not None:
        columns = (*columns, document_column)
    if users is None:
        table.select(columns)
        return table.rows()
    table.select((*columns, users.column))
    return users.rows(table.rows(), len(columns), len(selection.texts))


def document_name(value: object, row: int, column: str) -> str:
    """The name of the document of a row, without surrounding white space."""
    name = name_of(value)
    if not name:
        raise BadInputError(
            "document-not-named",
            "row {row} has no value in '{column}': every row must name its document",
            row=row,
            column=column,
        )
    return name


def weight(value: object) -> int:
    """About what a copied value that is no string takes."""
    if isinstance(value, ArrowCell):
        return value.size
    return 8 if value is None or isinstance(value, int | float) else len(str(value))


def output_rows(block: Block, released: Sequence[object], selection: ColumnSelection) -> list[list[object]]:
    """The rows to write: what was released for each text and copied values, in the order of the input's columns."""
    width = len(selection.texts)
    source = {name: position for position, name in enumerate((*selection.texts, *selection.kept))}
    order = [source[name] for name in selection.written]
    rows = []
    for number, kept in enumerate(block.kept):
        values = [*released[number * width : (number + 1) * width], *kept]
        rows.append([values[position] for position in order])
    return rows


def with_labels(
    block: Block,
    selection: ColumnSelection,
    labels: LabelRule | None,
    result: Rewritten,
    key: StreamKey,
    values: Mapping[str, object],
) -> Block:
    """The same rows with released labels: those that were drawn with the texts, or randomized ones. Their noise comes
    from the key, so a repeated block has the same ones.

    `values` says what each label of the list is in the output (`tacit.engines.label_values`). Of the cell that is
    replaced nothing is left, not even its type.
    """
    if labels is None:
        return block
    place = selection.kept.index(labels.column)
    drawn = result.labels
    if drawn is None:
        originals = [cell_string(row[place]) for row in block.kept]
        drawn = labels.draw(originals, key.stream(block.index, labels.digest(originals)))
    kept = [[*row[:place], values[label], *row[place + 1 :]] for row, label in zip(block.kept, drawn, strict=True)]
    return replace(block, kept=kept)


# Noise ------------------------------------------------------------------------------------------------------------


def fingerprint(mechanism: Mechanism, columns: Sequence[str]) -> bytes:
    """What, beside the texts, decides the noise: the same seed with another epsilon draws independently."""
    return _canonical(
        {"mechanism": mechanism.name, "parameters": plain_parameters(mechanism), "columns": list(columns)}
    )


def plain_parameters(mechanism: Mechanism) -> dict[str, object]:
    """The parameters in a form that can be written down and compared."""
    parameters = mechanism.get_params()
    try:
        return dict(json.loads(json.dumps(parameters)))
    except TypeError:
        raise BadParameterError(
            "parameters-not-writable",
            "a job on files needs parameters that can be written down, and {mechanism} was given an object: give "
            "numbers, texts or lists, such as the path of a vector file",
            mechanism=mechanism.name,
        ) from None


def content_digest(texts: Sequence[str], job_fingerprint: bytes) -> bytes:
    """A hash of everything private in a block; texts are length-prefixed so that no two blocks run together."""
    parts = [job_fingerprint, *(text.encode("utf-8") for text in texts)]
    digest = hashlib.blake2b(digest_size=32, person=b"tacit-block")
    digest.update(b"".join(len(part).to_bytes(8, "little") for part in parts))
    digest.update(b"".join(parts))
    return digest.digest()


def rewrite_block(
    mechanism: Mechanism, key: StreamKey, index: int, content: bytes, texts: list[str], labels: list[str] | None = None
) -> Rewritten:
    """The private step. An unexpected error is reported by its place only: its message could quote the text."""
    try:
        stream = key.stream(index, content)
        if labels is None:
            result = mechanism.rewrite_texts(texts, stream)
        else:
            result = mechanism.rewrite_labeled(texts, labels, stream)
    except (TacitError, MemoryError):
        raise
    except Exception as error:
        raise TacitError(
            "mechanism-failed",
            "{mechanism} failed on a block: {place}. Please report this",
            mechanism=mechanism.name,
            place=place_of(error),
        ) from None
    outputs = len(result.texts if result.vectors is None else result.vectors)
    counts = {outputs, len(result.units), len(texts) if labels is None else len(result.labels or ())}
    if counts != {len(texts)}:
        raise TacitError(
            "wrong-number-of-outputs",
            "{mechanism} returned {outputs} texts for {texts}. Please report this",
            mechanism=mechanism.name,
            outputs=outputs,
            texts=len(texts),
        )
    return result


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("utf-8")
