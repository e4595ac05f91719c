"""The static sentence encoder: the sum of the vectors of a text's word pieces, and of some pairs of them, of length 1.

    f(x) = m / |m|,   m = sum over the first 512 word pieces of x of  scale * vector(piece)
                        + sum over their neighboring pairs of         scale * vector(pair), where a pair has one

It was distilled from all-MiniLM-L6-v2 on its vocabulary (Tulkens & van Dongen, "Model2Vec", 2024) and then trained to
reproduce the vectors of that model on public sentences (`tacit.jobs.encoder_static`). Pairs keep some of the word
order ("not good"); the rest is lost, and in return a text costs microseconds, without torch.

* A text is read up to its first `LONGEST_CHARACTERS` characters, and of these the first `pieces` word pieces count
  (512). The rest of a long text is ignored.
* A vector holds whole numbers: a small number (`LARGEST_NUMBER`) shifted left by up to `LARGEST_SHIFT` places; only the
  scale of each dimension is a fraction. So a sum of 512 pieces and 511 pairs is below 2**24, where single precision
  adds whole numbers without rounding: m is exact in whatever order it is computed, and the vector of a text is the
  same bit for bit in every batch.
* A text without any known word piece has the vector 0.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats32, Ids, Ids32
from tacit.errors import BadInputError
from tacit.guarantee import Provenance
from tacit.matching.pieces import WordPieces
from tacit.progress import StepProgress

ASSETS = Path(__file__).with_name("assets") / "static"
LONGEST_CHARACTERS = 20_000
LARGEST_NUMBER = 127
"""Before it is shifted."""
LARGEST_SHIFT = 7
LARGEST_EXACT = 2**24
"""Below it single precision adds whole numbers without rounding."""
BLOCK = 2_048
"""Texts whose pieces are summed at a time."""


class StaticEncoder:
    """Unit vectors of texts by a table of word-piece vectors.

    folder   the folder of the table; by default the one that comes with Tacit
    """

    batch_independent = True

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = ASSETS if folder is None else Path(folder)
        self.name = "static" if folder is None else str(folder)

    @property
    def dimension(self) -> int:
        return int(_loaded(self._folder).table.shape[1])

    @property
    def pieces(self) -> int:
        """How many word pieces of a text count."""
        return _loaded(self._folder).pieces

    @property
    def digest(self) -> str:
        """By which the table and its tokenizer are recognized."""
        return _loaded(self._folder).digest

    def provenance(self) -> Provenance:
        """The line of a card that uses the encoder."""
        return Provenance("sentence encoder", f"{self.name}: {_loaded(self._folder).source}")

    def encode(self, texts: Sequence[str], progress: StepProgress | None = None) -> Floats32:
        """Unit vectors (texts, dimension), float32, in the order of the texts."""
        weights = _loaded(self._folder)
        vectors = np.zeros((len(texts), weights.table.shape[1]), dtype=np.float32)
        for start in range(0, len(texts), BLOCK):
            block = texts[start : start + BLOCK]
            vectors[start : start + len(block)] = _unit(weights.sums(block) * weights.scales)
            if progress is not None:
                progress(start + len(block), len(texts))
        return vectors

    def encode_alone(self, text: str) -> Floats32:
        """The vector of one text: the same as in any batch."""
        return np.asarray(self.encode([text])[0])


class _Weights:
    """The table of vectors as whole numbers, the scale of each dimension, and the tokenizer."""

    def __init__(self, folder: Path) -> None:
        try:
            facts = json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
            pieces = (folder / "tokenizer.json").read_bytes()
            with np.load(folder / "vectors.npz", allow_pickle=False) as arrays:
                small, shifts, scales, pairs = (arrays[name] for name in ("vectors", "shifts", "scales", "pairs"))
            self.tokenizer = WordPieces(json.loads(pieces)["model"]["vocab"])
        except (OSError, ValueError, KeyError) as error:
            raise BadInputError(
                "no-static-encoder", "'{folder}' holds no static encoder: copy its folder again", folder=folder
            ) from error
        self.digest = weights_digest(small, shifts, scales, pairs, pieces)
        self.pieces = int(facts["pieces"])
        self.source = f"{facts['source']} ({facts['license']})"
        largest = int(np.abs(small.astype(np.int64)).max(initial=0)) << int(shifts.max(initial=0))
        if facts.get("digest") != self.digest or largest * (2 * self.pieces - 1) >= LARGEST_EXACT:
            raise BadInputError(
                "damaged-static-encoder", "the static encoder in '{folder}' was changed: copy it again", folder=folder
            )
        self.table: Floats32 = np.ldexp(small.astype(np.float32), shifts[:, None].astype(np.int32))
        self.scales: Floats32 = scales.astype(np.float32)
        self._single = len(small) - len(pairs)
        keys = keys_of_pairs(pairs[:, 0], pairs[:, 1])
        self._order = np.argsort(keys)
        self._sorted = keys[self._order]

    def sums(self, texts: Sequence[str]) -> Floats32:
        """The exact sum of the whole-number vectors of each text's pieces and of its pairs that have one."""
        from scipy.sparse import csr_matrix

        pieces = [self.tokenizer.ids(text[:LONGEST_CHARACTERS])[: self.pieces] for text in texts]
        ends = np.cumsum([0, *map(len, pieces)])
        ids = np.fromiter(chain.from_iterable(pieces), dtype=np.int32, count=int(ends[-1]))
        rows = np.repeat(np.arange(len(texts), dtype=np.int32), np.diff(ends))
        pair_rows, pair_ids = self._pairs_of(rows, ids)
        columns = np.concatenate([ids, pair_ids])
        ones = np.ones(len(columns), dtype=np.float32)
        shape = (len(texts), len(self.table))
        counts = csr_matrix((ones, (np.concatenate([rows, pair_rows]), columns)), shape=shape)
        result: Floats32 = counts @ self.table
        return result

    def _pairs_of(self, rows: Ids32, ids: Ids32) -> tuple[Ids32, Ids32]:
        """The neighbors within a text that have a vector as a pair: the text and the row of the table of each."""
        if not len(self._sorted) or len(ids) < 2:
            return rows[:0], ids[:0]
        keys = keys_of_pairs(ids[:-1], ids[1:])
        places = np.minimum(np.searchsorted(self._sorted, keys), len(self._sorted) - 1)
        known = (self._sorted[places] == keys) & (rows[:-1] == rows[1:])
        return rows[:-1][known], (self._single + self._order[places[known]]).astype(np.int32)


def keys_of_pairs(first: Ids32, second: Ids32) -> Ids:
    """One number for each pair of pieces."""
    return (first.astype(np.int64) << 32) | second.astype(np.int64)


def _unit(sums: Floats32) -> Floats32:
    wide = sums.astype(np.float64)
    length = np.sqrt(np.add.reduce(wide * wide, axis=1, keepdims=True))
    length[length == 0] = 1.0
    return (wide / length).astype(np.float32)


def weights_digest(
    vectors: NDArray[np.int8], shifts: NDArray[np.uint8], scales: Floats32, pairs: Ids32, tokenizer: bytes
) -> str:
    """A hash of everything that decides the vector of a text."""
    digest = hashlib.sha256()
    parts: tuple[NDArray[np.generic], ...] = (vectors, shifts, scales, pairs)
    for part in parts:
        digest.update(f"{part.dtype.str} {part.shape}\0".encode())
        digest.update(np.ascontiguousarray(part).tobytes())
    digest.update(tokenizer)
    return digest.hexdigest()[:32]


@lru_cache(maxsize=2)
def _loaded(folder: Path) -> _Weights:
    return _Weights(folder)
