"""Few directions of public text, and the vector of a text in them.

Noise that hides a whole text has the same size in every direction, so a vector of 256 or 384 numbers drowns in it where
one of 16 or 32 does not. The directions that are kept are those in which *public* sentences differ most:

    g(x) = u / |u|,   u = D (f(x) - mean),   D = the first k eigenvectors of the covariance C of public vectors, each
                                                 divided by the fourth root of its eigenvalue

(`tacit.matching.geometry` says why the fourth root.) The private texts have no say in it.

g(x) is a function of the text alone, bit for bit. f(x) of the static encoder is the same in every batch; of any other
encoder the last bits depend on the texts beside it, so f(x) is rounded to multiples of 1/64, and a text with a
coordinate so near to the middle between two of them that the batch could decide is encoded again alone
(`tacit.documents.apart`). What follows is exact arithmetic with whole numbers (`tacit.matching.geometry.Geometry`).
A text in which the encoder knows nothing has the vector 0.

The sentences come from the pools of Tacit (everyday English, encyclopedia, requests), or from a file of yours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.devices import PROCESSOR, computing_on
from tacit.documents.apart import check_batches, rounded_alone
from tacit.encoders import Encoder, encoder_provenance, is_batch_independent, load_encoder
from tacit.errors import BadParameterError
from tacit.guarantee import Provenance
from tacit.matching.geometry import MATRIX_BITS, POWER, SMALLEST_SHARE, Geometry
from tacit.matching.pool import load_pool
from tacit.matching.whole_numbers import VECTOR_BITS
from tacit.noise.source import public_generator
from tacit.text.files import choose_columns, format_of, open_table, text_value
from tacit.vectors.cache import cache_folder, keep_folder, key_of
from tacit.version import __version__

POOLS: Final = ("general", "requests", "encyclopedia")
SENTENCES_OF_POOL: Final = 10_000
SENTENCES_FOR_SLOW_ENCODERS: Final = 1_500
"""Of each pool, where a text takes milliseconds in place of microseconds."""
VECTOR_GRID: Final = 64
PROBES: Final = ("A short text that every encoder turns into the same vector again.", "two words")
FEWEST_PUBLIC_TEXTS: Final = 100
ASSETS: Final = Path(__file__).with_name("assets")
KNOWN_ENCODERS: Final = ("static", "minilm")
NUMBERS: Final = "directions.npz"


class PublicProjection:
    """The vectors of texts by an encoder, in `dimensions` directions of public text.

    public   a file of public texts; without it, sentences of the pools that come with Tacit
    device   where the encoder computes
    """

    def __init__(
        self,
        encoder: str,
        dimensions: int,
        public: str | None = None,
        batch_size: int = 64,
        device: str = PROCESSOR,
    ) -> None:
        self.encoder_name = encoder
        self.dimensions = dimensions
        self.public = public
        self._batch_size = batch_size
        self._device = device

    @cached_property
    def encoder(self) -> Encoder:
        encoder_provenance(self.encoder_name)  # refused if its weights may repeat private text
        with computing_on(self._device):
            return load_encoder(self.encoder_name, batch_size=self._batch_size)

    @cached_property
    def geometry(self) -> Geometry:
        if not 1 <= self.dimensions <= self.encoder.dimension:
            raise BadParameterError(
                "impossible-dimension",
                "the encoder '{encoder}' has {most} dimensions, so between 1 and {most} of them can be kept, not "
                "{dimensions}",
                encoder=Path(self.encoder_name).name,
                most=self.encoder.dimension,
                dimensions=self.dimensions,
            )
        spread, directions, mean = public_directions(self.encoder, self.public)
        chosen = directions[:, : self.dimensions] * spread[: self.dimensions] ** POWER
        return Geometry(
            np.rint(mean * 2.0**VECTOR_BITS).astype(np.int64), np.rint(chosen * 2.0**MATRIX_BITS).astype(np.int64)
        )

    def load(self) -> None:
        """Load the public parts; an encoder that mixes the texts of a batch is refused."""
        _ = self.geometry
        if not is_batch_independent(self.encoder):
            check_batches(self.encoder)

    def apply(self, texts: Sequence[str]) -> Floats:
        """g(x) for each text: of length 1, or 0."""
        vectors = self.encoder.encode(texts)
        if not is_batch_independent(self.encoder):
            vectors = (rounded_alone(self.encoder, vectors, texts, VECTOR_GRID) / VECTOR_GRID).astype(np.float32)
        return self.geometry.apply(vectors)

    @cached_property
    def digest(self) -> str:
        """A name of the directions: vectors with another one are not comparable."""
        content = hashlib.blake2b(digest_size=8)
        content.update(self.geometry.mean.tobytes() + self.geometry.matrix.tobytes())
        return content.hexdigest()

    @cached_property
    def public_vectors(self) -> Floats:
        """g of some public sentences, for what a card says about typical distances."""
        return self.apply(pool_sentences(200))

    def provenance(self) -> tuple[Provenance, ...]:
        """Where the vectors and their directions come from."""
        if self.public is None:
            each = sentences_of_pool(self.encoder)
            source = f"{each:,} sentences of each of the pools {', '.join(POOLS)}"
        else:
            source = f"given by the user as public text ({Path(self.public).name})"
        return (encoder_provenance(self.encoder_name), Provenance("directions", source))

    def assumptions(self) -> tuple[str, ...]:
        """The assumptions about the public parts."""
        public = ("the encoder and the directions were made from public text only",)
        if is_batch_independent(self.encoder):
            return public
        return (
            *public,
            "other texts of its batch move a coordinate of a text's vector by at most 1e-06, which is less than the "
            "rounding notices; measured on public texts before anything is embedded",
        )

    @property
    def reader(self) -> tuple[Any, int] | None:
        """The tokenizer of the encoder, and how many pieces of a text it reads."""
        encoder = self.encoder  # whatever makes vectors may stand here, with or without a tokenizer
        if not (hasattr(encoder, "tokenizer") and hasattr(encoder, "pieces")):
            return None
        return encoder.tokenizer, encoder.pieces


def public_directions(encoder: Encoder, public: str | None = None) -> tuple[Floats, Floats, Floats]:
    """The variances of public vectors, largest first, the directions that belong to them (dimension, dimension), and
    their mean. Those of Tacit's own encoders come with the package (`tacit.embeddings.projection_build`); others are
    kept in the cache by what the encoder makes of two public texts, since a folder can change."""
    known = ASSETS / f"{encoder.name}.npz"
    if public is None and encoder.name in KNOWN_ENCODERS and known.exists():
        return load_directions(known)
    probe = b"".join(np.round(encoder.encode_alone(text), 4).tobytes() for text in PROBES)
    texts = None if public is None else tuple(_public_texts(public))
    content = f"pools of {__version__}" if texts is None else "\n".join(texts)
    named = hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=16).hexdigest()
    key = key_of("directions", 1, encoder.name, probe.hex(), named)
    path = cache_folder() / "directions" / key / NUMBERS
    if not path.exists():
        chosen = pool_sentences(sentences_of_pool(encoder)) if texts is None else texts
        spread, directions, mean = fitted_directions(encoder.encode(chosen))
        keep_folder(
            "directions",
            key,
            lambda folder: np.savez(folder / NUMBERS, spread=spread, directions=directions, mean=mean),
        )
        return spread, directions, mean
    return load_directions(path)


def load_directions(path: Path) -> tuple[Floats, Floats, Floats]:
    """Variances, directions and mean of a file, in double precision."""
    with np.load(path, allow_pickle=False) as arrays:
        spread, directions, mean = (arrays[name].astype(np.float64) for name in ("spread", "directions", "mean"))
        return spread, directions, mean


def fitted_directions(vectors: Floats32) -> tuple[Floats, Floats, Floats]:
    """Variances, directions and mean of public vectors. The largest number of a direction is positive, so that it is
    the same wherever it is computed."""
    wide = np.asarray(vectors, dtype=np.float64)
    spread, directions = np.linalg.eigh(np.cov(wide.T))
    spread, directions = spread[::-1], directions[:, ::-1]
    signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(len(spread))])
    return np.maximum(spread, spread[0] * SMALLEST_SHARE), directions * signs, wide.mean(axis=0)


@lru_cache(maxsize=4)
def pool_sentences(each: int) -> tuple[str, ...]:
    """The same sentences of each pool every time."""
    chosen: list[str] = []
    for name in POOLS:
        sentences = load_pool(name).sentences
        chosen += [sentences[place] for place in public_generator(1).permutation(len(sentences))[:each].tolist()]
    return tuple(chosen)


def sentences_of_pool(encoder: Encoder) -> int:
    """How many sentences of each pool are looked at."""
    return SENTENCES_OF_POOL if is_batch_independent(encoder) else SENTENCES_FOR_SLOW_ENCODERS


def _public_texts(public: str) -> list[str]:
    with open_table(public, format_of(public)) as table:
        column = choose_columns(table.columns, (), ()).texts[0]
        table.select((column,))
        texts = [text_value(values[0], row, column) for row, values in table.rows()]
    if len(texts) < FEWEST_PUBLIC_TEXTS:
        raise BadParameterError(
            "too-few-public-texts",
            "{texts} public texts are too few to tell directions from chance: give at least {fewest}, or leave the "
            "option public out",
            texts=len(texts),
            fewest=FEWEST_PUBLIC_TEXTS,
        )
    return texts
