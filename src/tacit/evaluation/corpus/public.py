"""Rows that anybody could have made: public sentences under the label whose name they resemble most.

Whoever knows the names of the labels and has a public pool needs no private row for them. A release has to be better
than that, or it was not worth its budget.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from tacit.encoders import load_encoder
from tacit.evaluation.downstream import Labeled

SHARE = 20
"""At most every so many-th sentence of the pool stands under one label: beyond that they resemble no name."""


def rows_by_name(
    labels: Sequence[str], sentences: Sequence[str], *, rows: int = 10_000, encoder: str = "static"
) -> Labeled:
    """Public sentences, equally many for each label: those nearest to its name and far from the other names.

    Labels whose names say nothing (numbers, codes) get sentences that say nothing.
    """
    names = sorted(set(labels))
    loaded = load_encoder(encoder)
    vectors = np.asarray(loaded.encode(sentences), dtype=np.float64)
    vectors = vectors - vectors.mean(axis=0)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    targets = np.asarray(loaded.encode([spelled_out(name) for name in names]), dtype=np.float64)
    targets -= targets.mean(axis=0)
    targets /= np.maximum(np.linalg.norm(targets, axis=1, keepdims=True), 1e-12)
    nearness = vectors @ targets.T
    each = max(1, min(rows // len(names), len(sentences) // SHARE))
    texts: list[str] = []
    chosen: list[str] = []
    best = nearness.argmax(axis=1)
    for place, name in enumerate(names):
        own = np.where(best == place, nearness[:, place], nearness[:, place] - 2.0)
        taken = np.argsort(-own, kind="stable")[:each].tolist()
        texts += [sentences[row] for row in taken]
        chosen += [name] * len(taken)
    return Labeled(texts, chosen)


def spelled_out(name: str) -> str:
    """The name of a label as words.

    >>> spelled_out("BookRestaurant"), spelled_out("card_arrival"), spelled_out("comp.sys.mac-hardware")
    ('book restaurant', 'card arrival', 'comp sys mac hardware')
    """
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return " ".join(re.split(r"[\W_]+", parted)).strip().lower()
