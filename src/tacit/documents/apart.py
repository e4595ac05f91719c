"""Whether the vector of a text depends on the texts it is computed with: measured before anything private is encoded.

The rows of a batch do not mix in a transformer, but the order in which a processor adds numbers up depends on the shape
of the batch, so the last bits of a vector depend on how many texts are beside it, and how long they are. With 32 bits
that is some 1e-7 of a unit vector's coordinate; with 16 it is some 1e-3, and then one document decides visibly about
another. The codebook rounds vectors so coarsely that `BATCH_ERROR` makes no difference (see `codebook`), which is exact
as long as the bound holds. It is measured on public texts, from one word to more than any encoder reads, in batches
from two texts to more than are ever computed together; an encoder that uses up more than half of it is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.documents.encoder import BATCH_ERROR, Encoder
from tacit.encoders import is_batch_independent
from tacit.errors import BadInputError, NoGuaranteeError

_SENTENCE = (
    "the train to the coast was late again this morning and nobody at the small station could say why it had stopped "
    "between two villages so we bought warm bread talked about music and waited until the rain was over"
)
_WORDS = _SENTENCE.split()
_LENGTHS = (0, 1, 5, 12, 30, 70, 250)
PROBES = tuple(" ".join(_WORDS[(length + i) % len(_WORDS)] for i in range(length)) for length in _LENGTHS)
"""Public texts of very different lengths."""
MANY = 64


def batch_error(encoder: Encoder) -> float:
    """The distance that a coordinate of a probe moves at most between a batch of its own and batches with other
    texts."""
    alone = {text: encoder.encode_alone(text) for text in PROBES}
    worst = 0.0
    for batch in _batches():
        vectors = encoder.encode(batch)
        moved = np.abs(vectors - np.stack([alone[text] for text in batch]))
        worst = max(worst, float(moved.max()) if np.isfinite(moved).all() else np.inf)
    return worst


def _batches() -> Iterator[list[str]]:
    yield list(PROBES)
    for first, second in itertools.pairwise(PROBES[:-1]):
        yield [first, second]
        yield [first, first, second]
    yield [PROBES[3]] * MANY


def rounded_alone(encoder: Encoder, vectors: Floats32, texts: Sequence[str], grid: float) -> Floats:
    """The vectors in whole multiples of 1/grid, as functions of each text alone: a text with a coordinate so near to
    the middle between two multiples that the batch could decide about it is encoded again in a batch of its own."""
    scaled = vectors.astype(np.float64) * grid
    integers = np.rint(scaled)
    if is_batch_independent(encoder):
        return integers
    doubtful = (np.abs(np.abs(scaled - integers) - 0.5) <= grid * BATCH_ERROR).any(axis=1)
    for row in np.flatnonzero(doubtful).tolist():
        integers[row] = np.rint(encoder.encode_alone(texts[row]).astype(np.float64) * grid)
    return integers


def check_batches(encoder: Encoder) -> None:
    """Refuse an encoder whose vectors depend on the batch by more than half of what the codebook allows for."""
    worst = batch_error(encoder)
    if not worst <= BATCH_ERROR / 2:
        raise BadInputError(
            "encoder-mixes-texts",
            "with the encoder '{encoder}', the vector of a text depends on the texts beside it (by {deviation:.1e} "
            "in a coordinate on public texts; {allowed:.0e} is allowed), so the epsilon of one document would not "
            "hold: switch off reduced precision (torch.set_float32_matmul_precision, autocast), or take another "
            "encoder",
            encoder=encoder.name,
            deviation=worst,
            allowed=BATCH_ERROR / 2,
        )


def check_latents_apart(encode: Callable[[Sequence[str]], Floats32], kind: str) -> None:
    """Refuse an autoencoder on a device on which the latent of a text depends on the texts beside it. Its batches have
    a constant shape, so nothing but the place of a text may matter, bit by bit."""
    others = [PROBES[3]] * len(PROBES)
    for place, text in enumerate(PROBES):
        alone = encode([*[""] * place, text])[place]
        beside = encode([*others[:place], text, *others[place + 1 :]])[place]
        if not np.array_equal(alone, beside):
            raise NoGuaranteeError(
                "latents-differ",
                "on this device the latent of a text depends on the texts beside it (by {difference:g} for a model of "
                "the kind '{kind}'), so the epsilon of one document would not hold: use the processor",
                difference=float(np.abs(alone - beside).max()),
                kind=kind,
            )
