"""Names of topics: public sentences near them, and the order of their released words. All of it is post-processing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.matching.pool import SentencePool
from tacit.matching.topics.cells import PublicCells, topic_vectors

SENTENCES = 3
HEAVIEST_CELLS = 24
"""Of a topic: their nearest sentences are looked at."""
WORDS_IN_NAME = 3


def topic_directions(cells: PublicCells, noisy: Floats, topics: Ids, count: int) -> Floats:
    """The direction of each topic: that of its cells by their noisy counts, as vectors of length 1."""
    weights = np.maximum(noisy, 0.0) + 1e-3
    sums = np.zeros((count, cells.centers.shape[1]))
    np.add.at(sums, topics, cells.directions * weights[:, None])
    return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True))


def ordered_words(counts: Sequence[Mapping[str, float]], totals: Floats) -> list[list[str]]:
    """The released words of each topic, those first that tell most about it: c log(share here / share overall)."""
    everywhere: dict[str, float] = {}
    for of_topic in counts:
        for word, count in of_topic.items():
            everywhere[word] = everywhere.get(word, 0.0) + count
    overall = max(float(np.maximum(totals, 0.0).sum()), 1.0)
    ordered = []
    for of_topic, total in zip(counts, totals.tolist(), strict=True):
        size = max(total, *of_topic.values(), 1.0) if of_topic else 1.0

        def weight_of(word: str, of_topic: Mapping[str, float] = of_topic, size: float = size) -> float:
            return of_topic[word] * float(np.log(of_topic[word] / size * overall / everywhere[word]))

        ordered.append(sorted(of_topic, key=lambda word: (-weight_of(word), word)))
    return ordered


def near_sentences(
    cells: PublicCells, noisy: Floats, topics: Ids, directions: Floats, words: Sequence[Sequence[str]]
) -> list[list[tuple[SentencePool, int]]]:
    """For each topic public sentences that are near its direction and its words, as places in their pools."""
    named = topic_vectors([" ".join(each[:10]) for each in words])
    chosen = []
    for topic, direction in enumerate(directions):
        own = np.flatnonzero(topics == topic)
        heaviest = own[np.argsort(-noisy[own], kind="stable")[:HEAVIEST_CELLS]]
        places = np.unique(cells.nearest[heaviest])
        candidates = [cells.sentence(int(place)) for place in places]
        vectors = topic_vectors([pool.sentences[place] for pool, place in candidates])
        order = np.argsort(-(vectors @ (direction + named[topic])), kind="stable")[:SENTENCES]
        chosen.append([candidates[place] for place in order])
    return chosen


def short_name(words: Sequence[str], sentences: Sequence[str]) -> str:
    """A few words for a topic: those that were released, else a public sentence.

    >>> short_name(["card", "arrive", "order", "track"], ["The card is new."]), short_name([], ["The card is new."])
    ('card, arrive, order', '“The card is new.”')
    """
    return ", ".join(words[:WORDS_IN_NAME]) if words else f"“{sentences[0]}”" if sentences else "without a name"
