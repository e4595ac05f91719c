"""The text and the vectors that all benchmarks use.

Text: SST-2, the training set (67,349 sentences), read from the folder `TACIT_DATA`, or `../shared/data` beside the
repository. Nothing is downloaded.

Vocabulary: the most frequent words of that text, 14,700 or, with made-up words after them, 88,000. Taking a vocabulary
from the text that is rewritten would break every guarantee; it is done here only because this measures speed, and no
text is released.

Vectors: MADE UP. 300 dimensions, drawn with a fixed public seed, with the scale of GloVe (norms around 7) and a
spectrum that falls like its own. The cost of the mechanisms depends on the shape of the table, hardly on its numbers.

    python benchmarks/corpus.py        makes the vectors and prints what they are
"""

from __future__ import annotations

import csv
import gzip
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import answer_part, run_part, say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SMALL = 14_700
LARGE = 88_000
DIMENSION = 300
SEED = 20_240_229
MEAN_NORM = 7.0
MADE_UP = "vectors are MADE UP (fixed seed, 300 dimensions, norms around 7, spectrum like GloVe's)"
FROM_CORPUS = "the vocabulary is taken from the corpus, which only a benchmark may do"


def data_folder() -> Path:
    chosen = os.environ.get("TACIT_DATA")
    return Path(chosen) if chosen else Path(__file__).resolve().parents[2] / "shared" / "data"


def data_rows(name: str) -> Iterator[dict[str, str]]:
    """The rows of a file of the data folder, by column."""
    path = data_folder() / name
    if not path.is_file():
        raise SystemExit(f"{name} is not here: set TACIT_DATA to the folder of the data sets")
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    yield from csv.DictReader(text.split("\n"), delimiter="\t", quoting=csv.QUOTE_NONE)


def sentences() -> list[str]:
    """SST-2 train, one sentence per row."""
    path = data_folder() / "sst2" / "train.tsv.gz"
    if not path.is_file():
        raise SystemExit(
            "SST-2 is not here: set TACIT_DATA to a folder with sst2/train.tsv.gz "
            "(a header line, then sentence, tab, label), or put that folder at ../shared/data beside the repository"
        )
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        next(lines)
        return [line.rstrip("\n").split("\t")[0] for line in lines]


def some_sentences(tokens: int | None) -> list[str]:
    """A fixed sample of the sentences with about so many tokens; None: all of them, in order."""
    import random

    from tacit.text.tokens import split

    everything = sentences()
    if tokens is None:
        return everything
    random.Random(SEED).shuffle(everything)
    chosen, count = [], 0
    for sentence in everything:
        if count >= tokens:
            break
        chosen.append(sentence)
        count += len(split(sentence))
    return chosen


def cache_folder() -> Path:
    folder = Path(os.environ.get("TACIT_BENCHMARK_CACHE") or Path(tempfile.gettempdir()) / "tacit-benchmarks")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def vectors_path(size: int = SMALL) -> Path:
    """A .npy with a .vocab.txt beside it, made on first use."""
    path = cache_folder() / f"made-up-{size}x{DIMENSION}.npy"
    if not path.is_file() or not vocabulary_path(path).is_file():
        say(f"making up {size:,} vectors (once)")
        run_part(__file__, "make", {"size": size, "path": str(path)}, threads=None)
    return path


def vocabulary_path(vectors: Path) -> Path:
    return vectors.with_suffix(".vocab.txt")


def make(size: int, path: str) -> dict[str, Any]:
    import numpy as np

    words = vocabulary(size)
    rows = made_up_vectors(size)
    target = Path(path)
    draft = target.with_suffix(f".{os.getpid()}.npy")
    np.save(draft, rows)
    vocabulary_path(target).write_bytes("\n".join(words).encode())
    draft.replace(target)
    return {"words": len(words)}


def vocabulary(size: int) -> list[str]:
    """The most frequent words of the corpus, most frequent first; made-up words where there are not enough."""
    from tacit.text.tokens import split

    counts = Counter(token for sentence in sentences() for token in split(sentence))
    words = sorted(counts, key=lambda word: (-counts[word], word))[:size]
    return words + [f"madeup{number}" for number in range(size - len(words))]


def made_up_vectors(size: int, dimension: int = DIMENSION) -> NDArray[np.float32]:
    """Normal vectors with eigenvalues that fall as a power of their rank, turned at random, norms around 7."""
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(SEED))
    spread = (10.0 + np.arange(dimension)) ** -0.3
    rotation, _ = np.linalg.qr(generator.standard_normal((dimension, dimension)))
    rows = (generator.standard_normal((size, dimension)) * spread) @ rotation
    rows *= generator.lognormal(0.0, 0.15, size)[:, None]
    rows *= MEAN_NORM / np.linalg.norm(rows, axis=1).mean()
    single: NDArray[np.float32] = rows.astype(np.float32)
    return single


def main() -> None:
    for size in (SMALL, LARGE):
        path = vectors_path(size)
        print(f"{path.name}: {size:,} words; {MADE_UP}")
    print(FROM_CORPUS)


if __name__ == "__main__":
    answer_part({"make": make})
    main()
