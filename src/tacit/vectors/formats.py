"""Files of word vectors: text as GloVe and fastText write it, word2vec binary, word lists, tensors of a model."""

from __future__ import annotations

import gzip
import json
import mmap
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats32
from tacit.errors import BadInputError


def read_vocabulary(path: Path) -> list[str]:
    """One word per line; only a line feed ends a line, because words may hold other Unicode separators."""
    lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").removesuffix(b"\n").split(b"\n")
    return _decoded([line.removesuffix(b"\r") for line in lines], list(range(1, len(lines) + 1)), path.name)


def _decoded(words: list[bytes], line_numbers: list[int], label: str) -> list[str]:
    try:
        return b"\n".join(words).decode("utf-8").split("\n") if words else []
    except UnicodeDecodeError:
        for word, number in zip(words, line_numbers, strict=True):
            try:
                word.decode("utf-8")
            except UnicodeDecodeError as error:
                raise BadInputError(
                    "not-utf-8",
                    "{file}, line {line}: the word is not valid UTF-8: save the file as UTF-8",
                    file=label,
                    line=number,
                ) from error
        raise


# --- text ---

_CHUNK_BYTES = 1 << 23


def read_text_file(path: Path, limit: int | None) -> tuple[list[str], Floats32, tuple[str, ...]]:
    """GloVe, word2vec or fastText text, also as .gz; a first line of two whole numbers is the header."""
    with path.open("rb") as raw:
        start = raw.read(4)
    if start == b"PK\x03\x04":
        raise BadInputError(
            "file-is-packed", "{file} is a zip archive: unpack it and give the path of the file inside", file=path.name
        )
    packed = start[:2] == b"\x1f\x8b"
    try:
        with gzip.open(path, "rb") if packed else path.open("rb") as handle:
            return parse_text(handle, path.name, limit)  # type: ignore[arg-type]
    except EOFError as error:
        raise BadInputError(
            "damaged-file", "{file} is truncated, its gzip stream has no end: download it again", file=path.name
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BadInputError(
            "damaged-file",
            "{file} is damaged, it is not valid gzip ({reason}): download it again",
            file=path.name,
            reason=str(error),
        ) from error


def parse_text(handle: BinaryIO, label: str, limit: int | None) -> tuple[list[str], Floats32, tuple[str, ...]]:
    """Words, vectors and notes of one text file, read once in chunks of about 8 MB."""
    words: list[str] = []
    parts: list[Floats32] = []
    promised: int | None = None
    dimension: int | None = None
    ended = True
    for first_number, lines, ended in _line_chunks(handle):
        numbers = range(first_number, first_number + len(lines))
        rows = [(number, line) for number, line in zip(numbers, map(_tidy, lines), strict=True) if line]
        if not rows:
            continue
        if dimension is None:
            header = _header(rows[0][1])
            if header:
                promised, dimension = header
                rows = rows[1:]
            else:
                dimension = rows[0][1].count(b" ")
                if dimension == 0:
                    raise BadInputError(
                        "not-word-vectors",
                        "{file}, line {line}: a word must be followed by its numbers: this is not a file of word "
                        "vectors",
                        file=label,
                        line=rows[0][0],
                    )
        if limit is not None:
            rows = rows[: limit - len(words)]
        if rows:
            new_words, vectors = _parse_rows(rows, dimension, label, cut=not ended)
            words += new_words
            parts.append(vectors)
        if len(words) == limit:
            break
    if not parts:
        raise BadInputError(
            "not-word-vectors",
            "{file} holds no vectors: give a file with one word and its numbers per line",
            file=label,
        )
    complete = len(words) != limit
    if promised is not None and (len(words) > promised or (complete and len(words) != promised)):
        what = "is truncated" if len(words) < promised else "has more rows than its header says"
        raise BadInputError(
            "wrong-number-of-vectors",
            "{file} {problem}: the first line promises {promised:,} words, found {found:,}: get the whole file or "
            "correct its first line",
            file=label,
            problem=what,
            promised=promised,
            found=len(words),
        )
    notes = () if ended or not complete else ("the file does not end with a line feed: was its last line cut?",)
    return words, np.concatenate(parts), notes


def _line_chunks(handle: BinaryIO) -> Iterator[tuple[int, list[bytes], bool]]:
    """Number of the first line, whole lines, and whether the last one ends with a line feed."""
    number = 1
    rest = b""
    while chunk := handle.read(_CHUNK_BYTES):
        if number == 1 and not rest:
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        head, feed, tail = chunk.rpartition(b"\n")
        if not feed:
            rest += chunk
            continue
        lines = (rest + head).split(b"\n")
        rest = tail
        yield number, lines, True
        number += len(lines)
    if rest:
        yield number, [rest], False


def _tidy(line: bytes) -> bytes:
    return line.replace(b"\t", b" ").rstrip(b" \r")


def _header(line: bytes) -> tuple[int, int] | None:
    fields = line.split()
    if len(fields) == 2 and fields[0].isdigit() and fields[1].isdigit() and int(fields[1]) > 0:
        return int(fields[0]), int(fields[1])
    return None


def _parse_rows(rows: list[tuple[int, bytes]], dimension: int, label: str, *, cut: bool) -> tuple[list[str], Floats32]:
    words: list[bytes] = []
    numbers: list[bytes] = []
    for line_number, line in rows:
        if line.count(b" ") == dimension:
            word, _, values = line.partition(b" ")
        else:
            word, values = _unusual_line(line, dimension, f"{label}, line {line_number}", cut=cut)
        words.append(word)
        numbers.append(values)
    decoded = _decoded(words, [number for number, _ in rows], label)
    try:
        # numpy's C reader: 115 ns a number, against 195 for fromstring and 290 for float() one by one
        texts = b"\n".join(numbers).decode("ascii").split("\n")
        return decoded, np.loadtxt(texts, dtype=np.float32, comments=None, ndmin=2)
    except ValueError as error:  # a UnicodeDecodeError is one too
        for (line_number, _), values in zip(rows, numbers, strict=True):
            for value in values.split(b" "):
                if not _is_number(value):
                    raise BadInputError(
                        "not-a-number",
                        "{file}, line {line}: {value!r} is not a number: repair or remove this line",
                        file=label,
                        line=line_number,
                        value=value.decode("utf-8", "replace"),
                    ) from error
        raise BadInputError(
            "not-word-vectors", "{file} cannot be read as word vectors ({reason})", file=label, reason=str(error)
        ) from error


def _unusual_line(line: bytes, dimension: int, place: str, *, cut: bool) -> tuple[bytes, bytes]:
    """A word that holds spaces (GloVe 840B has some), or an error; such a word must not look like a number."""
    count = line.count(b" ")
    fields = line.split(b" ")
    if count < dimension:
        if cut:
            raise BadInputError(
                "damaged-file",
                "{place}: the file is truncated, its last line is cut (expected {dimension} numbers, found "
                "{found}): get the whole file",
                place=place,
                dimension=dimension,
                found=count,
            )
    elif not all(_is_number(field) for field in fields[1:-dimension]):
        return b" ".join(fields[:-dimension]), b" ".join(fields[-dimension:])
    raise BadInputError(
        "not-word-vectors",
        "{place}: the dimensions differ, expected {dimension} numbers after the word, found {found}: repair or "
        "remove this line",
        place=place,
        dimension=dimension,
        found=count,
    )


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


# --- word2vec .bin ---


def read_word2vec_binary(path: Path, limit: int | None) -> tuple[list[str], Floats32, tuple[str, ...]]:
    """The word2vec format: a line "count dimensions", then each word, a space and its float32 numbers."""
    if path.stat().st_size == 0:
        raise BadInputError("file-is-empty", "{file} is empty: give a file of word vectors", file=path.name)
    with path.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
        place = data.find(b"\n", 0, 100) + 1
        header = _header(data[:place])
        if not header:
            raise BadInputError(
                "not-word-vectors",
                '{file} does not start with a line "count dimensions": it is no word2vec .bin file',
                file=path.name,
            )
        promised, dimension = header
        count = promised if limit is None else min(limit, promised)
        size = 4 * dimension
        if len(data) - place < count * (size + 1):
            raise _bin_truncated(path.name, promised, (len(data) - place) // (size + 1))
        words: list[bytes] = []
        vectors = np.empty((count, dimension), dtype=np.float32)
        for row in range(count):
            end = data.find(b" ", place)
            if end < 0 or end + 1 + size > len(data):
                raise _bin_truncated(path.name, promised, row)
            words.append(data[place:end].lstrip(b"\n"))
            place = end + 1 + size
            vectors[row] = np.frombuffer(data[end + 1 : place], dtype="<f4")
    return _decoded(words, list(range(1, count + 1)), path.name), vectors, ()


def _bin_truncated(label: str, promised: int, count: int) -> BadInputError:
    return BadInputError(
        "damaged-file",
        "{file} is truncated: the first line promises {promised:,} words, found at most {count:,}: get the whole file",
        file=label,
        promised=promised,
        count=count,
    )


# --- word pieces of a BERT-type model ---

_SPECIAL = re.compile(r"\[[A-Za-z]+\d*\]")


def whole_words(pieces: list[str]) -> tuple[list[int], tuple[str, ...]]:
    """Rows of whole words: "##" pieces continue a word, names in brackets ([CLS], [unused7]) are no words."""
    special = [bool(_SPECIAL.fullmatch(piece)) for piece in pieces]
    inner = [piece.startswith("##") for piece in pieces]
    rows = [i for i in range(len(pieces)) if not special[i] and not inner[i]]
    return rows, (f"{sum(inner):,} word-internal pieces (##) and {sum(special):,} special tokens left out",)


def safetensors_rows(path: Path, ending: str) -> NDArray[np.floating]:
    """The two-dimensional tensor whose name ends so, memory-mapped, without a deep-learning library.

    Format: 8 bytes of header length, a JSON header with dtype, shape and offsets of each tensor, then the
    numbers.
    """
    size = path.stat().st_size
    with path.open("rb") as handle:
        length = int.from_bytes(handle.read(8), "little")
        if not 2 <= length <= size - 8:
            raise BadInputError(
                "damaged-file", "{file} is truncated or no safetensors file: get the whole file", file=path.name
            )
        try:
            header = json.loads(handle.read(length))
        except ValueError as error:
            raise BadInputError(
                "damaged-file", "{file} has a damaged header: get the whole file", file=path.name
            ) from error
    matches = [entry for key, entry in header.items() if key.endswith(ending)]
    if len(matches) != 1:
        raise BadInputError(
            "not-word-vectors",
            "{file} has {tables} tables named …{ending}: it must have exactly one",
            file=path.name,
            tables=len(matches),
            ending=ending,
        )
    kinds = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}
    kind, shape, (start, stop) = matches[0]["dtype"], matches[0]["shape"], matches[0]["data_offsets"]
    if kind not in kinds or len(shape) != 2:
        raise BadInputError(
            "not-word-vectors",
            "{file} stores …{ending} as {kind} {shape}: only F16, F32, F64 tables can be read",
            file=path.name,
            ending=ending,
            kind=kind,
            shape=shape,
        )
    if 8 + length + stop > size:
        raise BadInputError("damaged-file", "{file} is truncated: get the whole file", file=path.name)
    return np.memmap(path, dtype=kinds[kind], mode="r", offset=8 + length + start, shape=tuple(shape))
