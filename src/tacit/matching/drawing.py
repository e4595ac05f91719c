"""Rows of a corpus: public sentences drawn for every label, by what the sketch says about them.

The weight of sentence x for label c is  exp(DOMAIN * domain(x)) * p(c | x)^SHARPNESS  (`tacit.matching.discriminant`).
A power above 1 keeps away sentences that would fit several labels. No sentence stands more than `most_repeats` times in
a label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Ids, Integers

DOMAIN = 1.0
SHARPNESS = 6.0
CAPPING_ROUNDS = 50
RAREST, MOST_LIFTED = 3, 1 / 30
"""Which labels count as rare, see `lifted_shares`."""


@dataclass(frozen=True)
class DrawnRows:
    """Places of sentences and of their labels, one each, with the logarithm of the weight that each was drawn by."""

    sentences: Ids
    labels: Ids
    weights: Floats

    def __len__(self) -> int:
        return len(self.sentences)


def lifted_shares(shares: Floats) -> Floats:
    """The shares of labels with the rare ones lifted: each gets at least 1 / `RAREST` of an equal part, or
    `MOST_LIFTED` if that is less, and the others make room in proportion.

    A learner cannot learn a label from five rows. On Reuters R52 learners on the released rows rise from a macro-F1 of
    .11 to .13 (words) and of .15 to .20 (vectors), and lose accuracy; `keep_proportions` leaves the shares alone.
    """
    least = min(1 / (RAREST * len(shares)), MOST_LIFTED)
    lifted = np.maximum(shares / shares.sum(), least)
    return np.asarray(lifted / lifted.sum())


def rows_per_label(shares: Floats, rows: int, generator: np.random.Generator) -> Integers:
    """So many rows for every label that they add up to `rows`, in proportion; fractions are drawn."""
    return _whole_numbers(shares / shares.sum() * rows, generator)


def drawn_rows(
    log_probabilities: Floats,
    domain: Floats,
    wanted: Integers,
    generator: np.random.Generator,
    most_repeats: int = 1,
) -> DrawnRows:
    """Sentences for every label, `wanted` of each, as long as the pool has enough."""
    sentences, labels, drawn_weights = [], [], []
    for label, rows in enumerate(wanted):
        if rows:
            weights = DOMAIN * domain + SHARPNESS * log_probabilities[:, label]
            counts = _whole_numbers(capped(np.exp(weights - weights.max()), int(rows), most_repeats), generator)
            places = np.repeat(np.arange(len(counts)), counts)
            sentences.append(places)
            labels.append(np.full(len(places), label))
            drawn_weights.append(weights[places])
    return DrawnRows(np.concatenate(sentences), np.concatenate(labels), np.concatenate(drawn_weights))


def best_first(rows: DrawnRows) -> Ids:
    """The order in which the rows of each label begin with those that fit it best, the labels in even proportions
    throughout: any first part of a corpus is a smaller corpus with the same proportions."""
    order = np.lexsort((-rows.weights, rows.labels))
    counts = np.bincount(rows.labels)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    depth = (np.arange(len(rows)) - starts + 0.5) / np.repeat(counts, counts)
    return np.asarray(order[np.argsort(depth, kind="stable")])


def capped(weights: Floats, rows: int, most: int) -> Floats:
    """Expected numbers of draws in proportion to the weights, none above `most`, that add up to `rows` (or to all that
    the sentences allow)."""
    rows = min(rows, most * len(weights))
    expected = np.zeros(len(weights))
    free = np.ones(len(weights), dtype=bool)
    for _ in range(CAPPING_ROUNDS):
        left = rows - most * int((~free).sum())
        total = float(weights[free].sum())
        if total <= 0:
            expected[free] = left / max(1, int(free.sum()))
            break
        expected[free] = weights[free] / total * left
        over = free & (expected > most)
        if not over.any():
            break
        free &= ~over
        expected[over] = most
    return np.minimum(expected, most)


def _whole_numbers(expected: Floats, generator: np.random.Generator) -> Integers:
    """Whole numbers with these expectations and the same sum up to rounding (systematic sampling)."""
    ends = np.floor(np.cumsum(expected) + generator.random())
    return np.diff(ends, prepend=0.0).astype(np.int64)
