"""A public codebook from public text: which sentences cover the others well, measured on sentences held out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Floats32, Ids32
from tacit.documents.codebook_public import (
    MOST_REPEATS,
    PROBE,
    REPEAT_EPSILONS,
    Codes,
    Level,
    PublicCodebook,
    blocks,
    check_public,
    nearest,
    packed,
    unpacked,
)
from tacit.documents.encoder import (
    Encoder,
    SentenceEncoder,
    encoder_provenance,
)
from tacit.errors import BadInputError, BadParameterError, require
from tacit.guarantee import Provenance
from tacit.noise.source import public_generator
from tacit.progress import StepProgress

SIZES = (16, 64, 256, 1024, 4096, 16384)
FEWEST_SENTENCES = 4
HELD_OUT = 2000
POINTS_PER_CENTER = 64
ROUNDS = 12
LARGEST_DIRECT = 512
SIMULATED = 128


# Building ---------------------------------------------------------------------------------------------------


def public_form(text: str) -> str:
    """A text as a codebook keeps and encodes it: on one line, with single spaces."""
    return " ".join(text.split())


def build_codebook(
    public_texts: Iterable[str],
    provenance: Provenance,
    encoder: Encoder | None = None,
    *,
    license: str = "",
    sizes: Sequence[int] = SIZES,
    held_out: int = HELD_OUT,
    seed: int = 0,
    vectors: Floats32 | None = None,
    progress: StepProgress | None = None,
) -> PublicCodebook:
    """A codebook from public texts.

    provenance   where the texts come from; private text is refused, because a release repeats these texts as they are
    sizes        numbers of cells. Of more texts than the largest size, those are kept that cover all of them best
    held_out     how many texts to set aside (at most a tenth) for measuring what to expect
    seed         of the public random choices: the same texts, encoder and seed give the same codebook
    vectors      the encoder's vectors of these texts, if they have been computed already
    progress     called with (texts encoded, texts)
    """
    check_public(provenance)
    texts = [public_form(text) for text in public_texts]
    if vectors is not None and len(vectors) != len(texts):
        raise BadParameterError(
            "wrong-number-of-vectors",
            "there are {texts} texts but {vectors} vectors: give one for each text",
            texts=len(texts),
            vectors=len(vectors),
        )
    first = {text: place for place, text in reversed(list(enumerate(texts))) if text}
    kept = np.sort(np.array(list(first.values()), dtype=np.int64))
    if len(kept) < FEWEST_SENTENCES:
        raise BadInputError(
            "too-few-texts",
            "a codebook needs at least {least} different public texts, better some ten thousand; there are {texts}",
            least=FEWEST_SENTENCES,
            texts=len(kept),
        )
    encoder = SentenceEncoder() if encoder is None else encoder
    encoder_provenance(encoder.name)
    texts = [texts[place] for place in kept]
    everything = encoder.encode(texts, progress) if vectors is None else np.asarray(vectors, dtype=np.float32)[kept]

    aside = min(held_out, len(texts) // 10)
    order = public_generator(seed).permutation(len(texts))
    # Few texts: the similarity is then measured on the texts themselves, and is too good.
    measured = everything[order[:aside]] if aside else everything
    used = np.sort(order[aside:])

    wanted = sorted({min(int(size), len(used)) for size in sizes})
    if not wanted or wanted[0] < 2:
        raise BadParameterError(
            "impossible-codebook-size",
            "a size of a codebook is a number of cells of at least 2, for example 256 and 4096",
        )
    used = used[covering(everything[used], wanted[-1], seed)]
    codes, factors = packed(everything[used])
    kept_vectors = unpacked(codes, factors)
    levels = {}
    for size in wanted:
        level = _level(codes, factors, covering(kept_vectors, size, seed), measured)
        levels[level.k] = level
    made = PublicCodebook(
        sentences=[texts[place] for place in used],
        codes=codes,
        factors=factors,
        levels=levels,
        encoder=encoder.name,
        probe=encoder.encode([PROBE])[0],
        provenance=provenance,
        license=license,
        held_out=aside,
    )
    return replace(made, repeats=_simulated_repeats(made, measured[:SIMULATED], seed))


def remainder(vector: Floats32, released: Floats32) -> Floats32:
    """The part of a vector that the directions of released sentences (rows) do not explain."""
    basis, _ = np.linalg.qr(released.T.astype(np.float64))
    exact = vector.astype(np.float64)
    return np.asarray(exact - basis @ (basis.T @ exact), dtype=np.float32)


def _simulated_repeats(made: PublicCodebook, measured: Floats32, seed: int) -> Floats:
    """(symbols, REPEAT_EPSILONS): similarity of public text with the mean of the sentences released for it."""
    generator = public_generator(seed)
    result = np.zeros((MOST_REPEATS, len(REPEAT_EPSILONS)))
    for symbols in range(1, MOST_REPEATS + 1):
        for place, epsilon in enumerate(REPEAT_EPSILONS):
            choice = made.choose(epsilon / symbols)
            centers = made.level(choice.k).centers
            gain = math.expm1(epsilon / symbols) * choice.s
            rest, released = measured, np.empty((len(measured), 0), dtype=np.int64)
            for _ in range(symbols):
                near = np.argpartition(-(rest @ centers.T), choice.s - 1, axis=1)[:, : choice.s]
                hit = generator.random(len(measured)) < gain / (gain + choice.k)
                drawn = near[np.arange(len(near)), generator.integers(0, choice.s, len(near))]
                cells = np.where(hit, drawn, generator.integers(0, choice.k, len(near)))
                released = np.column_stack([released, cells])
                rest = np.stack([remainder(x, centers[row]) for x, row in zip(measured, released, strict=True)])
            total = centers[released].sum(axis=1)
            total /= np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12)
            result[symbols - 1, place] = np.einsum("id,id->i", total, measured).mean()
    return result


def covering(vectors: Floats32, k: int, seed: int = 0) -> Ids32:
    """k vectors that cover all of them: the nearest to each k-means center. Fewer, where two centers share one."""
    if k >= len(vectors):
        return np.arange(len(vectors), dtype=np.int32)
    centers = _centers(vectors, k, seed)
    cells, closeness = nearest(vectors, centers)
    order = np.lexsort((-closeness, cells))
    firsts = np.unique(cells[order], return_index=True)[1]
    return np.sort(order[firsts]).astype(np.int32)


def _centers(vectors: Floats32, k: int, seed: int) -> Floats32:
    """k-means; for many centers in two steps (groups, then centers in each group), which costs a small part."""
    if k <= LARGEST_DIRECT:
        return _kmeans(vectors, k, seed)
    groups = _kmeans(vectors, math.isqrt(k), seed)
    group_of, _ = nearest(vectors, groups)
    counts = np.bincount(group_of, minlength=len(groups))
    shares = counts * (k / len(vectors))
    parts = np.minimum(np.maximum(np.floor(shares), 1), counts).astype(np.int64)
    for group in np.argsort(np.floor(shares) - shares, kind="stable")[: max(0, k - int(parts.sum()))]:
        parts[group] = min(parts[group] + 1, counts[group])
    centers = []
    for group, part in enumerate(parts.tolist()):
        members = vectors[group_of == group]
        if part:
            centers.append(members if part == len(members) else _kmeans(members, part, seed))
    return np.concatenate(centers)


def _kmeans(vectors: Floats32, k: int, seed: int) -> Floats32:
    try:
        faiss = require("faiss", extra="search", purpose="fast clustering")
    except ImportError:
        cluster = require("sklearn.cluster", extra="search", purpose="clustering")
        means = cluster.MiniBatchKMeans(k, random_state=seed, batch_size=4096, n_init=1, max_iter=20)
        centers = means.fit(vectors).cluster_centers_.astype(np.float32)
        return np.asarray(centers / np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1e-12))
    kmeans = faiss.Kmeans(
        vectors.shape[1],
        k,
        niter=ROUNDS,
        seed=seed,
        spherical=True,
        min_points_per_centroid=1,
        max_points_per_centroid=POINTS_PER_CENTER,
    )
    kmeans.train(np.ascontiguousarray(vectors))
    return np.asarray(kmeans.centroids, dtype=np.float32)


def _level(codes: Codes, factors: Floats32, chosen: Ids32, measured: Floats32) -> Level:
    steps = _steps(len(chosen))
    level = Level(codes, factors, chosen, steps, np.zeros((2, len(steps))))
    cells = np.empty(len(codes), dtype=np.int64)
    cells[level._order[0]] = np.repeat(np.arange(level.k), level.counts)
    means = np.zeros(level.centers.shape)
    np.add.at(means, cells, level.vectors)
    means /= level.counts[:, None]
    for rows in blocks(len(measured), level.k):
        similar = measured[rows] @ level.centers.T
        order = np.argsort(-similar, axis=1, kind="stable")
        for kind, values in enumerate((similar, measured[rows] @ means.T.astype(np.float32))):
            sums = np.take_along_axis(values, order, axis=1).cumsum(axis=1, dtype=np.float64)
            level.nearness[kind] += sums[:, steps - 1].sum(axis=0) / len(measured)
    return level


def _steps(k: int) -> NDArray[np.int64]:
    """1 to k, four measured values for each doubling."""
    powers = np.rint(2.0 ** (np.arange(4 * int(k).bit_length() + 1) / 4)).astype(np.int64)
    result: NDArray[np.int64] = np.unique(np.append(powers[powers < k], k))
    return result
