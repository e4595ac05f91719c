"""The blind test of a membership audit: do members and non-members differ by themselves, without the model?

A gap between the two files may come from other sources, other times, other lengths. The AUC of a classifier that sees
the texts but not the model shows it: where it is above chance, every attack on the model is flattered by it (Das, Zhang
& Tramer 2024).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from tacit.arrays import Floats
from tacit.auditing.models.rates import auc, auc_interval
from tacit.noise.source import public_generator
from tacit.report import Finding, Light
from tacit.text.tokens import split


@dataclass(frozen=True)
class Blind:
    """AUC of telling members from non-members by their words alone, without the model."""

    auc: float
    auc_low: float
    auc_high: float
    confidence: float

    @property
    def differs(self) -> bool:
        return self.auc_low > 0.5


def blind(
    members: Sequence[str], non_members: Sequence[str], *, confidence: float = 0.95, folds: int = 5, seed: int = 0
) -> Blind:
    """Naive Bayes on words, trained and tested on different texts (cross-validated within folds)."""
    texts = [set(split(text)) | {f"length {len(text) // 20}"} for text in (*members, *non_members)]
    labels = np.concatenate([np.ones(len(members)), np.zeros(len(non_members))])
    parts = public_generator(seed).permutation(len(texts)) % folds
    ranks = np.zeros(len(texts))
    for fold in range(folds):
        weights = _word_weights([texts[i] for i in np.flatnonzero(parts != fold)], labels[parts != fold])
        fold_places = np.flatnonzero(parts == fold)
        # Scores of different folds have different offsets: ranks within the fold compare.
        scores = [sum(weights.get(word, 0.0) for word in texts[i]) for i in fold_places]
        ranks[fold_places] = rankdata(scores) / (len(fold_places) + 1)
    measured = auc(ranks[labels == 1], ranks[labels == 0])
    return Blind(measured, *auc_interval(measured, len(members), len(non_members), confidence), confidence)


def _word_weights(texts: Sequence[set[str]], labels: Floats) -> dict[str, float]:
    counts: dict[str, list[float]] = {}
    for words, label in zip(texts, labels, strict=True):
        for word in words:
            counts.setdefault(word, [0.5, 0.5])[int(label)] += 1
    outside, inside = float((labels == 0).sum()) + 1, float((labels == 1).sum()) + 1
    return {word: math.log(b / inside) - math.log(a / outside) for word, (a, b) in counts.items()}


def blind_finding(test: Blind) -> Finding:
    measured = f"{test.auc:.1%} ({test.auc_low:.1%} to {test.auc_high:.1%})"
    why = "Amber: a naive Bayes on words, which never sees the model, is above chance at this confidence."
    numbers = {"auc": test.auc, "auc_low": test.auc_low, "auc_high": test.auc_high}
    if test.differs:
        sentence = (
            f"Their words alone tell members from non-members: AUC {measured}. What the attacks find may be this "
            "difference: take both files from one pool at random."
        )
        return Finding("Do the files differ by themselves?", Light.AMBER, sentence, why, numbers=numbers)
    sentence = f"Their words alone do not tell members from non-members: AUC {measured}."
    return Finding("Do the files differ by themselves?", Light.GREEN, sentence, why, numbers=numbers)
