"""Membership by shadow models (LiRA, Carlini et al. 2022): scores of a text in models trained with and without it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from tacit.arrays import Floats
from tacit.errors import BadInputError, BadParameterError
from tacit.noise.source import public_generator
from tacit.progress import StepProgress


def logit_signal(losses: Floats) -> Floats:
    """ln(p / (1 - p)) of p = e**-loss: the scale on which confidences of classifiers are near normal (LiRA)."""
    bounded = np.clip(np.asarray(losses, dtype=np.float64), 1e-12, None)
    return -bounded - np.log(-np.expm1(-bounded))


# Shadow models ----------------------------------------------------------------------------------------------------

Score = Callable[[Sequence[str], Sequence[object] | None], ArrayLike]
Train = Callable[[Sequence[str], Sequence[object] | None, int], Score]
"""train(texts, labels, seed) gives a function that scores texts (with labels), higher for what it knows better."""


@dataclass(frozen=True)
class Shadows:
    """Scores of n texts under N models, and which model was trained on which text; both (N, n)."""

    scores: Floats
    included: NDArray[np.bool_]


def train_shadows(
    train: Train,
    texts: Sequence[str],
    labels: Sequence[object] | None = None,
    *,
    models: int = 16,
    seed: int = 0,
    progress: StepProgress | None = None,
) -> Shadows:
    """N models on random halves, so that each text is in exactly half of the models."""
    if models < 4 or models % 2:
        raise BadParameterError(
            "impossible-number-of-shadows",
            "shadow models come in an even number of at least 4, not {models}",
            models=models,
        )
    generator = public_generator(seed)
    included = generator.permuted(np.tile(np.arange(models)[:, None] < models // 2, (1, len(texts))), axis=0)
    rows = []
    for number, chosen in enumerate(included):
        places = np.flatnonzero(chosen).tolist()
        taken = None if labels is None else [labels[i] for i in places]
        score = train([texts[i] for i in places], taken, seed * 1_000_003 + number)
        row = np.asarray(score(texts, labels), dtype=np.float64)
        if row.shape != (len(texts),) or not np.isfinite(row).all():
            raise BadInputError("not-finite", "a shadow model must give one finite score for each text")
        rows.append(row)
        if progress:
            progress(number + 1, models)
    return Shadows(np.array(rows), included)


def likelihood_ratio(target: Floats, shadows: Shadows, *, offline: bool = False) -> Floats:
    """LiRA for each text. The spread is pooled over texts, as the paper advises for fewer than 64 models."""
    scores, included = shadows.scores, shadows.included
    mean_in, mean_out, spread_in, spread_out = _gaussians(scores, included)
    if offline:
        return (target - mean_out) / spread_out
    ratio: Floats = norm.logpdf(target, mean_in, spread_in) - norm.logpdf(target, mean_out, spread_out)
    return ratio


def _gaussians(scores: Floats, included: NDArray[np.bool_]) -> tuple[Floats, Floats, float, float]:
    means, spreads = [], []
    for chosen in (included, ~included):
        count = chosen.sum(axis=0)
        mean = np.where(chosen, scores, 0.0).sum(axis=0) / np.maximum(count, 1)
        squares = np.where(chosen, (scores - mean) ** 2, 0.0).sum()
        means.append(mean)
        spreads.append(math.sqrt(max(float(squares) / max(1, int((count - 1).sum())), 1e-12)))
    return means[0], means[1], spreads[0], spreads[1]


def leave_one_out(shadows: Shadows, *, offline: bool = False) -> tuple[Floats, Floats]:
    """Signals of members and of non-members, each model in turn being attacked with the help of all others."""
    inside, outside = [], []
    for number in range(len(shadows.scores)):
        others = np.arange(len(shadows.scores)) != number
        rest = Shadows(shadows.scores[others], shadows.included[others])
        ratio = likelihood_ratio(shadows.scores[number], rest, offline=offline)
        inside.append(ratio[shadows.included[number]])
        outside.append(ratio[~shadows.included[number]])
    return np.concatenate(inside), np.concatenate(outside)
