"""Topics with names, intervals and places on a map, made of released numbers and public sentences alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.jobs.topics.result import Topic
from tacit.matching.pool import attribution_of
from tacit.matching.topics.cells import PublicCells
from tacit.matching.topics.layout import circles
from tacit.matching.topics.merging import noise_reach, regions
from tacit.matching.topics.naming import near_sentences, ordered_words, short_name, topic_directions


def described_topics(
    cells: PublicCells, noisy: Floats, topic_of: Ids, words: Sequence[dict[str, float]], scale: float
) -> tuple[list[Topic], str]:
    """The topics, the largest first, and the attribution of the public sentences that are shown."""
    count = len(words)
    totals = np.asarray(np.bincount(topic_of, weights=noisy, minlength=count), dtype=np.float64)
    sizes = np.bincount(topic_of, minlength=count)
    directions = topic_directions(cells, noisy, topic_of, count)
    ordered = ordered_words(words, totals)
    near = near_sentences(cells, noisy, topic_of, directions, ordered)
    places, radii = circles(directions, totals)
    alike = regions(directions, totals)
    everything = max(float(np.maximum(totals, 0.0).sum()), 1.0)
    shown = []
    for number in range(count):
        reach = noise_reach(int(sizes[number]), scale)
        sentences = [pool.sentences[place] for pool, place in near[number]]
        shown.append(
            Topic(
                number=number + 1,
                name=short_name(ordered[number], sentences),
                count=float(totals[number]),
                low=float(totals[number]) - reach,
                high=float(totals[number]) + reach,
                share=max(0.0, float(totals[number])) / everything,
                words={word: words[number][word] for word in ordered[number]},
                sentences=sentences,
                place=(float(places[number, 0]), float(places[number, 1])),
                radius=float(radii[number]),
                region=int(alike[number]),
            )
        )
    return shown, attribution_of([place for of_topic in near for place in of_topic])
