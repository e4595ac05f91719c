"""How the geometry of the static encoder was made: `python -m tacit.matching.geometry_build`.

40,000 sentences of the general pool and 20,000 of WikiText-2 (CC BY-SA 3.0; `wikitext2-raw/train.txt.gz` in the folder
of data sets), drawn with a fixed public seed, are encoded, and their mean is kept. The file holds numbers, no
sentences.
"""

from __future__ import annotations

import os
from pathlib import Path

from tacit.matching.encoder import StaticEncoder
from tacit.matching.geometry import ASSETS, ENCODER_POWER, fitted_geometry, save_geometry
from tacit.matching.pool import load_pool
from tacit.matching.pool_encyclopedia import article_sentences
from tacit.noise.source import public_generator

GENERAL_SENTENCES = 40_000
ARTICLE_SENTENCES = 20_000
SHORTEST, LONGEST = 4, 60
"""Words of a sentence."""


def main() -> None:
    """Write the geometry of the static encoder into the assets of the package."""
    data = Path(os.environ.get("TACIT_DATA", "../shared/data"))
    general = list(load_pool("general").sentences)
    sentences = article_sentences(data / "wikitext2-raw" / "train.txt.gz")
    articles = [sentence for sentence in sentences if SHORTEST <= len(sentence.split()) <= LONGEST]
    generator = public_generator(1)
    chosen = [general[place] for place in generator.permutation(len(general))[:GENERAL_SENTENCES]]
    chosen += [articles[place] for place in generator.permutation(len(articles))[:ARTICLE_SENTENCES]]
    encoder = StaticEncoder()
    ASSETS.mkdir(exist_ok=True)
    save_geometry(fitted_geometry(encoder.encode(chosen), ENCODER_POWER), ASSETS / f"{encoder.digest}.npz")


if __name__ == "__main__":
    main()
