"""Scores of predicted similarities: correlations with the true ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.evaluation.scores.classification import Floor, same_length


@dataclass(frozen=True)
class SimilarityScores:
    """Correlation of predicted and true similarities. A constant prediction orders nothing: 0."""

    pearson: float
    spearman: float
    rmse: float


def pearson(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float:
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    same_length(a, b)
    if len(a) < 2:
        return 0.0
    a, b = a - a.mean(), b - b.mean()
    length = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / length if length > 0 else 0.0


def spearman(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float:
    from scipy.stats import rankdata

    return pearson(rankdata(first), rankdata(second))


def similarity_scores(truth: Sequence[float], predicted: Sequence[float]) -> SimilarityScores:
    error = np.asarray(truth, dtype=np.float64) - np.asarray(predicted, dtype=np.float64)
    rmse = float(np.sqrt(np.mean(error**2))) if len(error) else 0.0
    return SimilarityScores(pearson(truth, predicted), spearman(truth, predicted), rmse)


SIMILARITY_FLOOR = Floor(majority=0.0, random=0.0)
"""The mean for everybody orders nothing, and a random order is uncorrelated on average."""


def spearman_of_items(truth: Sequence[float], runs: Sequence[Sequence[float]]) -> Callable[[Integers], float]:
    gold, predictions = np.asarray(truth, dtype=np.float64), [np.asarray(run, dtype=np.float64) for run in runs]
    return lambda at: float(np.mean([spearman(gold[at], run[at]) for run in predictions]))
