"""How the directions that come with the package were made: `python -m tacit.embeddings.projection_build`.

Sentences of the three pools, drawn with a fixed public seed, are encoded by each of Tacit's encoders; the variances of
their vectors, the directions that belong to them and their mean are kept. The files hold numbers, no sentences. They
were made before 161 lines with names of programs were taken out of the pool 'requests'.
"""

from __future__ import annotations

import numpy as np

from tacit.embeddings.projection import ASSETS, KNOWN_ENCODERS, fitted_directions, pool_sentences, sentences_of_pool
from tacit.encoders import load_encoder


def main() -> None:
    """Write the directions of all known encoders into the assets of the package."""
    ASSETS.mkdir(exist_ok=True)
    for name in KNOWN_ENCODERS:
        encoder = load_encoder(name)
        spread, directions, mean = fitted_directions(encoder.encode(pool_sentences(sentences_of_pool(encoder))))
        np.savez_compressed(
            ASSETS / f"{name}.npz",
            spread=spread.astype(np.float32),
            directions=directions.astype(np.float16),
            mean=mean.astype(np.float32),
        )


if __name__ == "__main__":
    main()
