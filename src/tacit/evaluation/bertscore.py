"""Greedy matching of the word pieces of two texts by the cosine of their states (BERTScore, Zhang et al. 2020)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class BertScores:
    """One row per pair of texts."""

    precision: Floats
    recall: Floats
    f1: Floats


def bert_scores(
    references: Sequence[tuple[Sequence[int], NDArray[np.floating]]],
    candidates: Sequence[tuple[Sequence[int], NDArray[np.floating]]],
    weights: dict[int, float] | None = None,
) -> BertScores:
    """Greedy matching of word pieces by cosine. A text is (ids, unit vectors); `weights` are idf weights by id.

    Two empty texts agree (1), an empty one and any other do not (0).
    """
    import torch

    rows = np.zeros((len(references), 3))
    order = sorted(range(len(references)), key=lambda i: len(references[i][0]) * 4096 + len(candidates[i][0]))
    for start in range(0, len(order), 64):
        batch = order[start : start + 64]
        x, wx = _stacked([references[i] for i in batch], weights)
        y, wy = _stacked([candidates[i] for i in batch], weights)
        similar = torch.bmm(x, y.transpose(1, 2))
        outside = (wx.isnan().unsqueeze(2)) | (wy.isnan().unsqueeze(1))
        similar = similar.masked_fill(outside, -torch.inf)
        recall = _weighted(similar.amax(dim=2), wx)
        precision = _weighted(similar.amax(dim=1), wy)
        both = precision + recall
        f1 = torch.where(both > 0, 2 * precision * recall / both.clamp(min=1e-12), torch.zeros_like(both))
        rows[batch] = torch.stack([precision, recall, f1], dim=1).double().numpy()
    for i, (reference, candidate) in enumerate(zip(references, candidates, strict=True)):
        if not len(reference[0]) or not len(candidate[0]):
            rows[i] = float(len(reference[0]) == len(candidate[0]))
    return BertScores(rows[:, 0], rows[:, 1], rows[:, 2])


def _stacked(
    texts: Sequence[tuple[Sequence[int], NDArray[np.floating]]], weights: dict[int, float] | None
) -> tuple[Tensor, Tensor]:
    """Vectors with zeros and weights with NaN where a text has ended."""
    import torch

    longest = max(1, *(len(ids) for ids, _ in texts))
    width = texts[0][1].shape[1]
    stacked = torch.zeros((len(texts), longest, width), dtype=torch.float32)
    weight = torch.full((len(texts), longest), torch.nan)
    for place, (ids, vectors) in enumerate(texts):
        stacked[place, : len(ids)] = torch.from_numpy(np.asarray(vectors, dtype=np.float32))
        token_weights = [1.0 if weights is None else weights.get(int(i), weights[-1]) for i in ids]
        weight[place, : len(ids)] = torch.tensor(token_weights)
    return stacked, weight


def _weighted(best: Tensor, weight: Tensor) -> Tensor:
    import torch

    inside = ~weight.isnan()
    best = torch.where(inside, best, torch.zeros_like(best))
    best = torch.where(best.isinf(), torch.zeros_like(best), best)
    weight = torch.where(inside, weight, torch.zeros_like(weight))
    return (best * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1e-12)


def idf_weights(references: Sequence[Sequence[int]]) -> dict[int, float]:
    """ln((M + 1) / (df + 1)) over the originals, as in the published code; -1 stands for a piece they do not have."""
    texts_with = Counter(piece for ids in references for piece in set(ids))
    weights = {piece: math.log((len(references) + 1) / (count + 1)) for piece, count in texts_with.items()}
    weights[-1] = math.log(len(references) + 1)
    return weights


def unit_rows(vectors: NDArray[np.floating]) -> NDArray[np.float16]:
    """Unit vectors, half as large: 11 bits are enough for a cosine of which three digits are shown."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: NDArray[np.float16] = (vectors / np.maximum(lengths, 1e-12)).astype(np.float16)
    return units
