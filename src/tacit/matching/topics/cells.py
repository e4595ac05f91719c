"""Public cells: the space of the static encoder cut into parts around centers that public sentences have.

    cell(x) = the center with the largest product with g(x)             g: `tacit.matching.geometry`

Centers are those of spherical k-means on sentences of public pools, with a fixed public seed. The cell of a text is a
function of that text alone: g(x) is taken as whole numbers, centers are whole numbers, and products of 256 of them are
added in double precision without rounding, so no other text in the batch can move it. A text without any known word
has no cell, and adds nothing.

The cells of the pools that come with Tacit come with it as well (`python -m tacit.matching.topics.cells` makes them);
those of other pools are made when they are needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids
from tacit.errors import BadInputError
from tacit.guarantee import Provenance
from tacit.matching.encoder import StaticEncoder
from tacit.matching.geometry import ENCODER_POWER, Geometry, fitted_geometry, known_geometry
from tacit.matching.labels import nearest_centers, spherical_centers
from tacit.matching.pool import SentencePool, load_pool
from tacit.matching.whole_numbers import whole_vectors
from tacit.noise.source import public_generator
from tacit.progress import StepProgress

ASSETS = Path(__file__).parents[1] / "assets" / "topics"
BUNDLED_POOLS = ("general", "encyclopedia", "requests")
CELLS = 1_024
"""Chosen on CLINC150 and AG News: more cells make topics no purer, and each adds noise."""
LEAST_SENTENCES = 16
"""Sentences of a pool for each of its cells, at least."""
CLUSTERED = 65_536
CENTER_SHIFT = 7
"""Centers of 2**14 steps are kept as numbers of 8 bits."""
NEAREST = 16
SHORTEST, LONGEST = 20, 120
"""Characters of a sentence that may stand for a cell."""
BLOCK = 4_096
NO_CELL = -1


@dataclass(frozen=True, eq=False)
class PublicCells:
    """Cells of public sentences.

    centers   whole numbers (cells, dimension)
    nearest   (cells, some): the sentences nearest to each center, as places in `sentences`
    pools     whose sentences, one pool after the other, the places count
    """

    centers: NDArray[np.int8]
    nearest: Ids
    pools: Sequence[SentencePool] = field(repr=False)

    def __len__(self) -> int:
        return len(self.centers)

    @property
    def directions(self) -> Floats:
        """The centers as vectors of length 1."""
        wide = self.centers.astype(np.float64)
        return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True))

    def places(self, texts: Sequence[str]) -> Ids:
        """The cell of each text, `NO_CELL` for one without any known word."""
        return places_of(self.centers, texts)

    def sentence(self, place: int) -> tuple[SentencePool, int]:
        """The pool of a sentence, and its place there."""
        for pool in self.pools:
            if place < len(pool):
                return pool, place
            place -= len(pool)
        raise BadInputError("damaged-cells", "the cells name a sentence that no pool has: install Tacit again")

    def provenance(self) -> tuple[Provenance, ...]:
        """The lines of a card that uses these cells."""
        of_pools = tuple(line for pool in self.pools for line in pool.provenance())
        return (StaticEncoder().provenance(), *of_pools)

    @property
    def digest(self) -> str:
        """By which the cells are recognized."""
        return hashlib.sha256(np.ascontiguousarray(self.centers).tobytes()).hexdigest()[:32]


def topic_vectors(texts: Sequence[str]) -> Floats:
    """g of texts (`tacit.matching.geometry`): vectors of length 1, or 0 where no word is known."""
    encoder = StaticEncoder()
    return _geometry(encoder.digest).apply(encoder.encode(texts))


@lru_cache(maxsize=1)
def _geometry(digest: str) -> Geometry:
    known = known_geometry(digest)
    if known is not None:
        return known
    sentences = load_pool().sentences
    chosen = public_generator(0).permutation(len(sentences))[:CLUSTERED]
    return fitted_geometry(StaticEncoder().encode([sentences[place] for place in chosen]), ENCODER_POWER)


def places_of(centers: NDArray[np.int8], texts: Sequence[str]) -> Ids:
    """The cell of each text; exact, and a function of each text alone."""
    cells = np.empty(len(texts), dtype=np.int64)
    for start in range(0, len(texts), BLOCK):
        whole = whole_vectors(topic_vectors(texts[start : start + BLOCK]))
        nearest = nearest_centers(whole, centers.astype(np.int16))
        cells[start : start + BLOCK] = np.where(whole.any(axis=1), nearest, NO_CELL)
    return cells


def load_cells(names: Sequence[str] = BUNDLED_POOLS, progress: StepProgress | None = None) -> PublicCells:
    """The cells of some pools: those that come with Tacit, or new ones."""
    pools = [load_pool(name) for name in names]
    if tuple(names) == BUNDLED_POOLS:
        return _bundled(pools)
    return made_cells(pools, progress)


def _bundled(pools: Sequence[SentencePool]) -> PublicCells:
    try:
        with np.load(ASSETS / "cells.npz", allow_pickle=False) as arrays:
            digests = [str(digest) for digest in arrays["pools"]]
            cells = PublicCells(arrays["centers"], arrays["nearest"].astype(np.int64), pools)
    except (OSError, ValueError, KeyError) as error:
        raise BadInputError("damaged-cells", "the public cells cannot be read: install Tacit again") from error
    if digests != [pool.digest for pool in pools]:
        raise BadInputError("damaged-cells", "the public cells belong to other pools: install Tacit again")
    return cells


def made_cells(pools: Sequence[SentencePool], progress: StepProgress | None = None) -> PublicCells:
    """The cells of public sentences: the same on every machine."""
    sentences = [sentence for pool in pools for sentence in pool.sentences]
    count = min(CELLS, len(sentences) // LEAST_SENTENCES)
    if count < 2:
        raise BadInputError(
            "pool-too-small",
            "the pool has {sentences:,} sentences, and topics need at least {least:,}: give a larger one with "
            "{option.pools}",
            sentences=len(sentences), least=2 * LEAST_SENTENCES,
        )  # fmt: skip
    chosen = public_generator(0).permutation(len(sentences))[:CLUSTERED]
    whole = whole_vectors(topic_vectors([sentences[place] for place in chosen]))
    wide = spherical_centers(whole[whole.any(axis=1)], count, progress)
    centers = (wide >> CENTER_SHIFT).astype(np.int8)
    return PublicCells(centers, _nearest_sentences(centers, sentences), pools)


def _nearest_sentences(centers: NDArray[np.int8], sentences: Sequence[str]) -> Ids:
    """Of each cell the sentences with the largest products, the largest first."""
    fitting = [place for place, text in enumerate(sentences) if SHORTEST <= len(text) <= LONGEST]
    places = np.array(fitting or list(range(len(sentences))), dtype=np.int64)
    best = np.full((len(centers), NEAREST), -np.inf)
    nearest = np.repeat(places[:1], NEAREST)[None].repeat(len(centers), axis=0)
    lengths = np.linalg.norm(centers.astype(np.float64), axis=1, keepdims=True)
    for start in range(0, len(places), BLOCK):
        part = places[start : start + BLOCK]
        products = centers.astype(np.float64) @ whole_vectors(topic_vectors([sentences[i] for i in part])).T / lengths
        both = np.concatenate([best, products], axis=1)
        whose = np.concatenate([nearest, np.broadcast_to(part, products.shape)], axis=1)
        order = np.argsort(-both, axis=1, kind="stable")[:, :NEAREST]
        best, nearest = np.take_along_axis(both, order, axis=1), np.take_along_axis(whose, order, axis=1)
    return nearest


if __name__ == "__main__":
    ASSETS.mkdir(parents=True, exist_ok=True)
    made = made_cells([load_pool(name) for name in BUNDLED_POOLS], lambda done, total: print(done, total, flush=True))
    np.savez_compressed(
        ASSETS / "cells.npz",
        centers=made.centers,
        nearest=made.nearest.astype(np.int32),
        pools=np.array([pool.digest for pool in made.pools]),
    )
