"""Vectors of word pieces and of neighboring pairs, trained to add up to the vectors of MiniLM on public sentences.

    minimize   mean over sentences x of  1 - cos(sum of E[piece] + sum of P[pair],  t(x))

where t(x) is the vector of x by all-MiniLM-L6-v2, in the principal directions of such vectors. E begins with the
vectors that model2vec distilled, mapped onto these directions; P begins with zeros. A piece that no sentence holds
keeps what it began with. What is learned are sums over 393,000 sentences.

Sentences: the pools that come with Tacit, the medical sentences of MedQuAD (CC BY 4.0; `medquad-sentences` in the
folder of data sets), and each whole word of the vocabulary alone, so that texts of one word are not forgotten.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Floats32, Ids, Ids32
from tacit.documents.encoder import SentenceEncoder
from tacit.errors import require
from tacit.matching.encoder import keys_of_pairs
from tacit.matching.pieces import WordPieces
from tacit.matching.pool import bundled_pools, load_pool
from tacit.noise.source import public_generator
from tacit.progress import WorkProgress, steps_of

if TYPE_CHECKING:
    import torch

MOST_PAIRS = 16_000
EPOCHS = 6
BATCH = 512
LEARNING_RATE = 2e-3
START_SIZE = 0.05
"""Root of the mean square of the coordinates at the start; the cosine does not depend on it, the learning rate does."""
HELD_OUT = 4_000
"""Sentences that are not trained on, by which the result is described."""
PART = 20_000
"""Sentences whose teacher's vectors are computed between two savings."""


@dataclass(frozen=True)
class TrainedVectors:
    """Vectors of pieces and of pairs, the pairs, and the mean cosine with the teacher before and after, held out."""

    pieces: Floats32
    pairs: Ids32
    of_pairs: Floats32
    cosine_before: float
    cosine_after: float


def training_sentences(data: Path, words: Sequence[str]) -> list[str]:
    """Public sentences without repetition, in a fixed order."""
    pools = chain.from_iterable(load_pool(name).sentences for name in bundled_pools())
    with gzip.open(data / "medquad-sentences" / "sentences.tsv.gz", "rt", encoding="utf-8", newline="") as lines:
        medical = [row["text"] for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]
    return list(dict.fromkeys([*pools, *medical, *words]))


def teacher_vectors(sentences: Sequence[str], folder: Path, progress: WorkProgress | None = None) -> Floats32:
    """The vectors of MiniLM (16 bits suffice for a teacher), saved part by part so that a stopped run goes on."""
    folder.mkdir(parents=True, exist_ok=True)
    encoder = SentenceEncoder(precision="fast")
    digest = hashlib.sha256("\n".join(sentences).encode()).hexdigest()[:16]
    show = steps_of(progress)("sentences through MiniLM")
    parts = []
    for start in range(0, len(sentences), PART):
        path = folder / f"{digest}-{start}.npy"
        if not path.exists():
            vectors = encoder.encode(sentences[start : start + PART]).astype(np.float16)
            np.save(path.with_suffix(".part.npy"), vectors)
            path.with_suffix(".part.npy").rename(path)
        parts.append(np.load(path))
        show(min(start + PART, len(sentences)), len(sentences))
    return np.concatenate(parts).astype(np.float32)


def frequent_pairs(texts: Sequence[Ids32], most: int) -> Ids32:
    """The pairs of neighboring pieces that occur most often, (pairs, 2)."""
    keys = np.concatenate([keys_of_pairs(ids[:-1], ids[1:]) for ids in texts])
    pairs, counts = np.unique(keys, return_counts=True)
    chosen = np.sort(pairs[np.argsort(-counts, kind="stable")[:most]])
    return np.stack([chosen >> 32, chosen & 0xFFFFFFFF], axis=1).astype(np.int32)


def principal_directions(vectors: Floats32, most: int) -> Floats32:
    """Columns: the directions in which the vectors are longest."""
    wide = vectors.astype(np.float64)
    _, directions = np.linalg.eigh(wide.T @ wide)
    return np.ascontiguousarray(directions[:, ::-1][:, :most], dtype=np.float32)


def mapped(distilled: Floats32, texts: Sequence[Ids32], target: Floats32) -> Floats32:
    """The distilled vectors in the space of the target: the linear map that fits the texts best, of `START_SIZE`."""
    sums = np.stack([distilled[ids].sum(axis=0) for ids in texts]).astype(np.float64)
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
    matrix, *_ = np.linalg.lstsq(sums, target.astype(np.float64), rcond=None)
    start = distilled.astype(np.float64) @ matrix
    return np.asarray(start * (START_SIZE / np.sqrt(np.mean(start**2))), dtype=np.float32)


def rows_of_texts(texts: Sequence[Ids32], pairs: Ids32, pieces: int) -> list[Ids32]:
    """For each text the rows of the table that add up to its vector: its pieces, then its pairs that have a row."""
    place_of = {int(key): pieces + place for place, key in enumerate(keys_of_pairs(pairs[:, 0], pairs[:, 1]))}
    rows = []
    for ids in texts:
        neighbors = map(place_of.get, keys_of_pairs(ids[:-1], ids[1:]).tolist())
        rows.append(np.array([*ids, *(place for place in neighbors if place is not None)], dtype=np.int32))
    return rows


def trained(
    distilled: Floats32,
    tokenizer: WordPieces,
    sentences: Sequence[str],
    teacher: Floats32,
    progress: WorkProgress | None = None,
) -> TrainedVectors:
    """Train the table on the sentences and their teacher's vectors."""
    torch = require("torch", extra="documents", purpose="training an encoder")
    ids = [np.array(tokenizer.ids(sentence), dtype=np.int32) for sentence in sentences]
    kept = np.flatnonzero([len(each) for each in ids])
    order = kept[public_generator(1).permutation(len(kept))]
    target = teacher @ principal_directions(teacher, distilled.shape[1])
    target /= np.linalg.norm(target, axis=1, keepdims=True)
    held_out, training = order[:HELD_OUT], order[HELD_OUT:]
    pairs = frequent_pairs([ids[place] for place in training], MOST_PAIRS)
    rows = rows_of_texts(ids, pairs, len(distilled))
    start = mapped(distilled, [ids[place] for place in training], target[training])

    table = torch.from_numpy(np.concatenate([start, np.zeros((len(pairs), start.shape[1]), dtype=np.float32)]))
    with torch.no_grad():
        before = float(_cosines(table, rows, target, held_out).mean())
    table.requires_grad_()
    optimizer = torch.optim.Adam([table], lr=LEARNING_RATE)
    batches = -(-len(training) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / (EPOCHS * batches))
    show = steps_of(progress)("steps of training")
    for epoch in range(EPOCHS):
        shuffled = np.array_split(training[public_generator(2 + epoch).permutation(len(training))], batches)
        for place, batch in enumerate(shuffled, start=epoch * batches + 1):
            loss = -_cosines(table, rows, target, batch).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            show(place, EPOCHS * batches)
    table.requires_grad_(False)
    after = float(_cosines(table, rows, target, held_out).mean())
    learned = table.numpy()
    return TrainedVectors(learned[: len(start)], pairs, learned[len(start) :], before, after)


def _cosines(table: torch.Tensor, rows: Sequence[Ids32], target: Floats32, chosen: Ids) -> torch.Tensor:
    from torch import from_numpy
    from torch.nn.functional import cosine_similarity, embedding_bag

    parts = [rows[place] for place in chosen]
    starts = from_numpy(np.cumsum([0, *map(len, parts[:-1])]))
    sums = embedding_bag(from_numpy(np.concatenate(parts)).long(), table, starts, mode="sum")
    return cosine_similarity(sums, from_numpy(target[chosen]), dim=1)
