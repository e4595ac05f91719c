"""The texts of a training as batches of word pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from tacit.arrays import Ids
from tacit.documents.autoencoders.base import (
    Autoencoder,
)
from tacit.documents.pretraining.corpus import PublicText, joined

if TYPE_CHECKING:
    from torch import Tensor
from tacit.documents.pretraining.plan import PretrainingPlan


def texts_to_train_and_measure(
    autoencoder: Autoencoder, corpus: PublicText, held_out: int, *, join: bool = False
) -> tuple[list[str], list[str]]:
    """Training and held-out texts, which have no sentence in common."""
    parts = corpus.split(held_out)
    if not join:
        return parts

    def fits(text: str) -> bool:
        return bool(autoencoder.ids([text])[0, -1] == autoencoder.padding_id)

    return joined(parts[0], fits), joined(parts[1], fits)


class TrainingBatches:
    """Batches by number, of texts of similar length; every epoch has an order that depends on the seed only."""

    def __init__(self, autoencoder: Autoencoder, texts: Sequence[str], plan: PretrainingPlan) -> None:
        self._plan = plan
        self._ids = autoencoder.ids(texts)
        self._plain = autoencoder.ids([plain(text) for text in texts]) if plan.plain_share else self._ids
        self._lengths = (self._ids != autoencoder.padding_id).sum(axis=1)
        self._marks = {autoencoder.padding_id, *autoencoder.ids([""])[0].tolist()}
        self.weights = None if plan.content is None else content_weights(self._ids, autoencoder.pieces, plan.content)
        self._epoch = -1
        self._batches: list[NDArray[np.int64]] = []

    def batch(self, step: int) -> Ids:
        size = min(self._plan.batch_size, len(self._ids))
        per_epoch = max(1, len(self._ids) // size)
        epoch, number = divmod(step, per_epoch)
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self._shuffled(epoch, size)
        chosen = self._batches[number]
        generator = np.random.Generator(np.random.PCG64([self._plan.seed, step, 1]))
        as_plain = generator.random(len(chosen)) < self._plan.plain_share
        ids = np.where(as_plain[:, np.newaxis], self._plain[chosen], self._ids[chosen])
        return mixed(ids, self._marks, self._plan.mixed_share, generator) if self._plan.mixed_share else ids

    def _shuffled(self, epoch: int, size: int) -> list[NDArray[np.int64]]:
        generator = np.random.Generator(np.random.PCG64([self._plan.seed, epoch]))
        order = generator.permutation(len(self._ids))
        pool = 32 * size
        pools = (order[start : start + pool] for start in range(0, len(order), pool))
        order = np.concatenate([part[np.argsort(self._lengths[part], kind="stable")] for part in pools])
        batches = [order[start : start + size] for start in range(0, len(order) - size + 1, size)]
        return [batches[number] for number in generator.permutation(len(batches))]


def content_weights(ids: Ids, pieces: int, content: float) -> Tensor:
    """content / (content + p) for each piece of the vocabulary, p its share in the texts; rare pieces count most."""
    counts = np.bincount(ids.ravel(), minlength=pieces).astype(np.float64)
    weights = content / (content + counts / max(1.0, counts.sum()))
    return torch.from_numpy(weights.astype(np.float32))


def mixed(ids: Ids, marks: set[int], share: float, generator: np.random.Generator) -> Ids:
    """In a share of the texts, each piece becomes that of another text at the same place with probability 1/4."""
    other = np.roll(ids, 1, axis=0)
    words = ~np.isin(ids, list(marks)) & ~np.isin(other, list(marks))
    chosen = (generator.random(len(ids)) < share)[:, np.newaxis] & (generator.random(ids.shape) < 0.25)
    return np.where(words & chosen, other, ids)


def plain(text: str) -> str:
    """Lower case, no punctuation but apostrophes: the style of voice assistants and chats."""
    kept = "".join(character if character.isalnum() or character in " '" else " " for character in text.lower())
    return " ".join(kept.split())
