"""How the directions that come with the package were made: `python -m tacit.embeddings.projection_build static minilm`.

Sentences of the three pools, drawn with a fixed public seed, are encoded by each of Tacit's encoders; the variances of
their vectors, the directions that belong to them and their mean are kept. The files hold numbers, no sentences. Those
of MiniLM were made before 161 lines with names of programs were taken out of the pool 'requests'.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from tacit.embeddings.projection import ASSETS, KNOWN_ENCODERS, fitted_directions, pool_sentences, sentences_of_pool
from tacit.encoders import load_encoder


def main(names: Sequence[str]) -> None:
    """Write the directions of the named encoders, by default of all known ones, into the assets of the package."""
    ASSETS.mkdir(exist_ok=True)
    for name in names or KNOWN_ENCODERS:
        encoder = load_encoder(name)
        spread, directions, mean = fitted_directions(encoder.encode(pool_sentences(sentences_of_pool(encoder))))
        np.savez_compressed(
            ASSETS / f"{name}.npz",
            spread=spread.astype(np.float32),
            directions=directions.astype(np.float16),
            mean=mean.astype(np.float32),
        )


if __name__ == "__main__":
    main(sys.argv[1:])
