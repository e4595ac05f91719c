"""A table of public word vectors: the vocabulary a word mechanism reads from and writes to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats32, Ids
from tacit.errors import BadInputError, BadParameterError

_BLOCK_ROWS = 16_384


@dataclass(frozen=True)
class MappedRows:
    """The place of rows of float32 numbers in a file, so that another process can open instead of copy them."""

    path: str
    offset: int
    rows: int
    columns: int

    def open(self) -> Floats32:
        if not Path(self.path).is_file():
            raise BadInputError(
                "vector-file-gone", "the vector file {path} has gone away: load the vectors again", path=self.path
            )
        return np.memmap(self.path, dtype=np.float32, mode="r", offset=self.offset, shape=(self.rows, self.columns))


@dataclass(frozen=True, eq=False, repr=False)
class VectorTable:
    """Words and their vectors, row i belonging to word i, most frequent first where the source says so.

    What comes in is checked once, here, so that no mechanism meets it later: a duplicate word (the first
    occurrence stays), an all-zero row and an empty word are dropped and counted in `notes`; a number that is
    not finite is an error that names the word. A writable array is copied, a read-only or memory-mapped one
    is kept as it is.
    """

    words: list[str]
    vectors: Floats32
    name: str
    source: str
    notes: tuple[str, ...] = ()
    mapped: MappedRows | None = None

    def __post_init__(self) -> None:
        vectors = as_rows(self.vectors)
        words = list(self.words)
        if len(words) != len(vectors):
            raise BadInputError(
                "wrong-number-of-vectors",
                "{name}: there are {words:,} words but {vectors:,} vectors: give one vector per word",
                name=self.name,
                words=len(words),
                vectors=len(vectors),
            )
        keep, notes = rows_to_keep(words, vectors, self.name)
        if keep is not None:
            words = [words[i] for i in keep]
            vectors = vectors[keep]
            object.__setattr__(self, "mapped", None)
        if not words:
            raise BadInputError(
                "no-vectors-left", "{name}: no word with a usable vector is left: give at least one", name=self.name
            )
        vectors.flags.writeable = False
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "notes", (*self.notes, *notes))

    def __deepcopy__(self, memo: object) -> VectorTable:
        """A table never changes, so a copy is the table itself: cloning an estimator must not double its memory."""
        return self

    @property
    def dimension(self) -> int:
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"VectorTable({self.name!r}, {len(self):,} words, {self.dimension} dimensions)"

    @cached_property
    def index(self) -> dict[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of a hash over words and numbers: equal tables have equal ones."""
        return content_hash(self.words, self.vectors)

    def head(self, n: int) -> VectorTable:
        """The first n words (the n most frequent ones in tables that are sorted by frequency)."""
        if n < 1:
            raise BadParameterError("impossible-count", "the number of words must be at least 1, not {count}", count=n)
        if n >= len(self):
            return self
        mapped = None if self.mapped is None else replace(self.mapped, rows=n)
        return VectorTable(
            self.words[:n],
            self.vectors[:n],
            self.name,
            self.source,
            (*self.notes, f"the first {n:,} words"),
            mapped,
        )

    def subset(self, chosen: Sequence[str] | Sequence[int] | NDArray[np.integer]) -> VectorTable:
        """These words, or these rows, in the order given."""
        ids = self._rows_of(chosen)
        return VectorTable(
            [self.words[i] for i in ids],
            self.vectors[ids],
            self.name,
            self.source,
            (*self.notes, f"{len(ids):,} words chosen out of {len(self):,}"),
        )

    def _rows_of(self, chosen: Sequence[str] | Sequence[int] | NDArray[np.integer]) -> Ids:
        if len(chosen) == 0:
            raise BadParameterError("no-words", "a subset needs at least one word: the list of words is empty")
        if isinstance(chosen[0], str):
            missing = [word for word in chosen if word not in self.index]
            if missing:
                raise BadInputError(
                    "words-without-vector",
                    "{name} has no vector for {missing:,} of these words ({examples}): leave them out",
                    name=self.name,
                    missing=len(missing),
                    examples=listing(missing),
                )
            return np.array([self.index[str(word)] for word in chosen], dtype=np.int64)
        ids = np.asarray(chosen, dtype=np.int64)
        if ids.min() < 0 or ids.max() >= len(self):
            raise BadParameterError(
                "row-out-of-range",
                "rows of {name} go from 0 to {last}: choose within them",
                name=self.name,
                last=len(self) - 1,
            )
        return ids

    def describe(self) -> str:
        """One sentence for cards and listings."""
        notes = "".join(f"; {note}" for note in self.notes)
        return (
            f"{self.name}: {len(self):,} words, {self.dimension} dimensions, from {self.source}"
            f" (content {self.fingerprint}){notes}"
        )

    def __reduce__(self) -> tuple[Callable[..., VectorTable], tuple[object, ...]]:
        # A memory-mapped table travels as the place of its rows: a worker opens the file instead of getting a
        # copy.
        rows = self.vectors if self.mapped is None else self.mapped
        return _restored, (self.words, rows, self.name, self.source, self.notes, self.fingerprint)


def _restored(
    words: list[str],
    rows: Floats32 | MappedRows,
    name: str,
    source: str,
    notes: tuple[str, ...],
    fingerprint: str,
) -> VectorTable:
    """Put a pickled table together again, without checking again what was checked when it was made."""
    mapped = rows if isinstance(rows, MappedRows) else None
    vectors = rows.open() if isinstance(rows, MappedRows) else rows
    vectors.flags.writeable = False
    table = object.__new__(VectorTable)
    table.__dict__.update(
        words=words,
        vectors=vectors,
        name=name,
        source=source,
        notes=notes,
        mapped=mapped,
        fingerprint=fingerprint,
    )
    return table


def as_rows(vectors: NDArray[np.floating]) -> Floats32:
    """Row-major float32 rows that nobody else can change through a writable array."""
    array = np.asanyarray(vectors)
    if array.ndim != 2 or array.shape[1] == 0:
        raise BadInputError(
            "wrong-shape",
            "word vectors must be a table (words, dimensions), but the array has the shape {shape}",
            shape=array.shape,
        )
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows becomes infinite and is reported with its word
        rows = np.ascontiguousarray(array, dtype=np.float32)
    if rows is vectors or np.may_share_memory(rows, array):
        rows = array.copy() if array.flags.writeable else array.view()
    return rows


def rows_to_keep(words: list[str], vectors: Floats32, name: str) -> tuple[Ids | None, list[str]]:
    """Rows that stay (None: all of them) and what to note about the others."""
    zero = np.zeros(len(vectors), dtype=bool)
    for start, block in blocks_of(vectors):
        largest = np.abs(block).max(axis=1)
        broken = np.flatnonzero(~np.isfinite(largest))
        if broken.size:
            row = start + int(broken[0])
            raise BadInputError(
                "not-finite",
                "{name}: the vector of {word!r} (row {row}) has a value that is not a finite 32-bit number: repair "
                "or remove this row",
                name=name,
                word=words[row],
                row=row,
            )
        zero[start : start + len(block)] = largest == 0
    empty = np.array([not word for word in words], dtype=bool)
    repeated = np.zeros(len(words), dtype=bool)
    if len(set(words)) < len(words):
        seen: set[str] = set()
        for row, word in enumerate(words):
            repeated[row] = word in seen
            seen.add(word)
    repeated &= ~empty
    zero &= ~(empty | repeated)
    notes = [
        f"{int(rows.sum()):,} {what} dropped"
        for rows, what in (
            (repeated, "repeated words (the first occurrence stays)"),
            (zero, "all-zero vectors"),
            (empty, "empty words"),
        )
        if rows.any()
    ]
    return (np.flatnonzero(~(zero | repeated | empty)), notes) if notes else (None, [])


def content_hash(words: Sequence[str], vectors: Floats32) -> str:
    digest = hashlib.blake2b(f"{vectors.shape}".encode(), digest_size=8, person=b"tacit-vectors")
    digest.update("\n".join(words).encode("utf-8", "surrogatepass"))
    for _, block in blocks_of(vectors):
        digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()


def blocks_of(vectors: Floats32) -> Iterator[tuple[int, Floats32]]:
    for start in range(0, len(vectors), _BLOCK_ROWS):
        yield start, vectors[start : start + _BLOCK_ROWS]


def listing(words: Sequence[object], most: int = 5) -> str:
    shown = ", ".join(repr(str(word)) for word in words[:most])
    return shown if len(words) <= most else f"{shown}, …"
