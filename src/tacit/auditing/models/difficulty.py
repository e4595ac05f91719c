"""Membership by how unusual a loss is for a text of this kind (Bertran et al., "Scalable membership inference attacks
via quantile regression", NeurIPS 2023).

A regression learns from texts outside of the training data which losses are usual, given what can be seen of a text
without the model: its length, how well it compresses, its words, and the loss of a reference model if there is one. Its
law is normal with a mean and a spread of its own for every text, as in the paper; the signal is how far below its mean
the loss lies, in spreads, so a threshold on it accuses the same share of non-members among easy and hard texts.

A regression knows the texts that it learned from, so a text is never judged by one that saw it: both files are cut into
folds, and those of a fold are judged by a regression on the non-members of all others.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.models.scores import TextLosses
from tacit.noise.source import public_generator
from tacit.text.tokens import split

FOLDS = 5
BUCKETS = 32
"""Words are counted in so many buckets: enough for topics, few enough for some hundred texts."""
OTHERS = 6
"""Features beside the words: bytes, their logarithm, how well they compress, tokens, their logarithm, the reference."""
STRENGTH = 1.0
"""Of the ridge penalty, for standardized features."""


def difficulty_signals(
    members: tuple[Sequence[str], TextLosses, TextLosses | None],
    non_members: tuple[Sequence[str], TextLosses, TextLosses | None],
    *,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """The signals of both sides, each a text list with its losses and those of a reference."""
    features = [_features(*side) for side in (members, non_members)]
    losses = [side[1].mean for side in (members, non_members)]
    generator = public_generator(seed)
    parts = [generator.permutation(len(values)) % FOLDS for values in losses]
    signals = [np.zeros(len(values)) for values in losses]
    for fold in range(FOLDS):
        known = parts[1] != fold
        law = _Law(features[1][known], losses[1][known])
        for side in (0, 1):
            chosen = parts[side] == fold
            if chosen.any():
                signals[side][chosen] = law.unusual(features[side][chosen], losses[side][chosen])
    return signals[0], signals[1]


class _Law:
    """A normal law of losses given features: mean and logarithm of the spread are linear (ridge regression)."""

    def __init__(self, features: Floats, losses: Floats) -> None:
        self.center = features.mean(axis=0)
        spread = features.std(axis=0)
        self.scale = np.where(spread > 1e-9, spread, 1.0)
        design = self._design(features)
        self.mean = _ridge(design, losses)
        rest = np.abs(losses - design @ self.mean)
        self.least = 0.1 * float(rest.mean()) + 1e-9
        self.spread = _ridge(design, np.log(np.maximum(rest, self.least)))

    def _design(self, features: Floats) -> Floats:
        return np.concatenate([np.ones((len(features), 1)), (features - self.center) / self.scale], axis=1)

    def unusual(self, features: Floats, losses: Floats) -> Floats:
        design = self._design(features)
        # Far outside of what was seen a linear law goes anywhere: spreads stay within what was seen.
        spread = np.maximum(np.exp(np.clip(design @ self.spread, -20.0, 20.0)), self.least)
        signal: Floats = (design @ self.mean - losses) / spread
        return signal


def _ridge(design: Floats, targets: Floats) -> Floats:
    penalty = STRENGTH * np.eye(design.shape[1])
    penalty[0, 0] = 1e-9
    return np.asarray(np.linalg.solve(design.T @ design + penalty, design.T @ targets), dtype=np.float64)


def _features(texts: Sequence[str], own: TextLosses, reference: TextLosses | None) -> Floats:
    rows = np.zeros((len(texts), OTHERS + BUCKETS))
    for row, text in zip(rows, texts, strict=True):
        content = text.encode("utf-8", "replace")
        words = split(text)
        for word in words:
            row[OTHERS + zlib.crc32(word.encode("utf-8", "replace")) % BUCKETS] += 1 / len(words)
        row[:3] = len(content), np.log1p(len(content)), len(zlib.compress(content)) / (1 + len(content))
    rows[:, 3], rows[:, 4] = own.tokens, np.log1p(own.tokens)
    if reference is not None:
        rows[:, 5] = reference.mean
    return rows
