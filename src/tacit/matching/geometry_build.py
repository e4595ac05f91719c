"""How the geometry of the static encoder was made: `python -m tacit.matching.geometry_build`.

40,000 sentences of the general pool and 20,000 of WikiText-2 (CC BY-SA 3.0; `wikitext2-raw/train.txt.gz` in the folder
of data sets), drawn with a fixed public seed, are encoded; their mean and the fourth root of their covariance are kept.
The files hold numbers, no sentences.
"""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

from tacit.matching.encoder import StaticEncoder
from tacit.matching.geometry import ASSETS, fitted_geometry, save_geometry
from tacit.matching.pool import load_pool, split_sentences
from tacit.noise.source import public_generator

GENERAL_SENTENCES = 40_000
ARTICLE_SENTENCES = 20_000
SHORTEST, LONGEST = 4, 60
"""Words of a sentence."""


def article_sentences(path: Path) -> list[str]:
    """The sentences of WikiText-2 raw, without headings, punctuation set as in running text."""
    sentences: dict[str, None] = {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            text = line.strip()
            if text and not text.startswith("="):
                joined = re.sub(r" @(.)@ ", r"\1", text)
                joined = re.sub(r"([(\[]) ", r"\1", re.sub(r" ([.,;:!?')\]])", r"\1", joined))
                for sentence in split_sentences(joined):
                    if SHORTEST <= len(sentence.split()) <= LONGEST:
                        sentences[sentence] = None
    return list(sentences)


def main() -> None:
    """Write the geometry of the static encoder into the assets of the package."""
    data = Path(os.environ.get("TACIT_DATA", "../shared/data"))
    general = list(load_pool("general").sentences)
    articles = article_sentences(data / "wikitext2-raw" / "train.txt.gz")
    generator = public_generator(1)
    chosen = [general[place] for place in generator.permutation(len(general))[:GENERAL_SENTENCES]]
    chosen += [articles[place] for place in generator.permutation(len(articles))[:ARTICLE_SENTENCES]]
    encoder = StaticEncoder()
    ASSETS.mkdir(exist_ok=True)
    save_geometry(fitted_geometry(encoder.encode(chosen)), ASSETS / f"{encoder.digest}.npz")


if __name__ == "__main__":
    main()
