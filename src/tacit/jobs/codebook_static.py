"""How the codebook of the static encoder was made: `python -m tacit.jobs.codebook_static FOLDER`.

64,000 sentences of the general pool (`tacit.matching.pool`: English sentences of Tatoeba, CC BY 2.0 FR), drawn with a
fixed public seed, are encoded with the static encoder in its balanced geometry; 2,000 are held out for measuring, and
8,192 that cover the rest are kept. Nothing else was looked at, and no data set that the project measures itself on.

It has 3 MB and needs neither torch nor any model beyond what comes with the package.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path

from tacit.documents.codebook_build import build_codebook, public_form
from tacit.documents.codebook_default import LICENSE, SIZES
from tacit.documents.codebook_public import PublicCodebook
from tacit.errors import BadInputError
from tacit.guarantee import Provenance
from tacit.matching.encoder_balanced import BalancedEncoder
from tacit.matching.pool import SentencePool, load_pool
from tacit.noise.source import public_generator

SENTENCES = 64_000
SOURCE = "English sentences of Tatoeba (tatoeba.org), from the general pool of Tacit"
NOTICE = """The sentences in this folder come from Tatoeba, https://tatoeba.org, where volunteers wrote them, and are
released under the Creative Commons Attribution 2.0 France license (CC BY 2.0 FR),
https://creativecommons.org/licenses/by/2.0/fr/. White space was normalized; nothing else was changed.

attribution.tsv.gz names, for each line of sentences.txt.gz, its number on Tatoeba and its contributor: sentence N is
at https://tatoeba.org/sentences/show/N.

The vectors were computed with the static encoder of Tacit, which was distilled from all-MiniLM-L6-v2 (Apache License
2.0).
"""


def build(pool: SentencePool) -> PublicCodebook:
    """The codebook of sentences of the pool."""
    order = public_generator(1).permutation(len(pool))[:SENTENCES]
    texts = [pool.sentences[place] for place in order]
    return build_codebook(texts, Provenance("Tatoeba English", SOURCE), BalancedEncoder(), license=LICENSE, sizes=SIZES)


def save(made: PublicCodebook, pool: SentencePool, folder: Path) -> None:
    """Write the codebook with the attribution of its sentences."""
    made.save(folder)
    credits = {public_form(text): credit for text, credit in zip(pool.sentences, pool.credits, strict=True)}
    lines = ("\t".join(credits[text].split(" ", 1)) + "\n" for text in made.sentences)
    with gzip.GzipFile(folder / "attribution.tsv.gz", "wb", mtime=0) as zipped:
        zipped.write("".join(lines).encode())
    (folder / "ATTRIBUTION.txt").write_text(NOTICE, encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 1:
        raise BadInputError("folder-missing", "give the folder to write: python -m tacit.jobs.codebook_static FOLDER")
    pool = load_pool("general")
    save(build(pool), pool, Path(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
