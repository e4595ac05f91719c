"""How the directions of `tacit.matching.pure` were made: `python -m tacit.matching.pure_build`.

20,000 sentences of the general pool, drawn with a fixed public seed, are encoded in the geometry of the static encoder.
Their first 96 principal directions are turned by varimax (Kaiser 1958), which makes each sentence a sum of few of them.
The file holds numbers, no sentences.
"""

from __future__ import annotations

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.matching.features import weighted_map
from tacit.matching.pool import load_pool
from tacit.matching.pure import ASSETS, COUNT_WEIGHT, DIRECTIONS, blocks_digest
from tacit.noise.source import public_generator

SENTENCES = 20_000
ROUNDS = 60
MATRIX_BITS = 12


def varimax(values: Floats) -> Floats:
    """The rotation of columns after which each row has few large entries."""
    rotation = np.eye(values.shape[1])
    for _ in range(ROUNDS):
        turned = values @ rotation
        left, _, right = np.linalg.svd(values.T @ (turned**3 - turned * (turned**2).mean(axis=0)))
        rotation = left @ right
    return np.asarray(rotation)


def directions(vectors: Floats) -> Integers:
    """Whole numbers of 2**-12: turned principal directions of public vectors."""
    _, basis = np.linalg.eigh(np.cov(vectors.T))
    principal = basis[:, ::-1][:, :DIRECTIONS]
    turned = principal @ varimax((vectors - vectors.mean(axis=0)) @ principal)
    return np.rint(turned * 2.0**MATRIX_BITS).astype(np.int64)


def main() -> None:
    """Write the directions of the static encoder into the assets of the package."""
    usual = weighted_map([("static", 1.0)], count=COUNT_WEIGHT)
    sentences = load_pool("general").sentences
    chosen = [sentences[place] for place in public_generator(1).permutation(len(sentences))[:SENTENCES]]
    matrix = directions(usual.features(chosen).dense_values().astype(np.float64))
    ASSETS.mkdir(exist_ok=True)
    np.savez_compressed(ASSETS / f"{blocks_digest(usual.blocks)}.npz", matrix=matrix.astype(np.int16))


if __name__ == "__main__":
    main()
