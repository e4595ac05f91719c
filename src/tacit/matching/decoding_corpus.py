"""A corpus from the estimates of collective decoding: public sentences with labels, drawn as for a sketch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.arrays import Floats32
from tacit.guarantee import Guarantee
from tacit.matching.composing import LARGEST_PART
from tacit.matching.corpus import USUAL_ROWS, MatchedCorpus, check_pool_size
from tacit.matching.decoding import LabelSums
from tacit.matching.discriminant import fitted_discriminant, steadied_counts
from tacit.matching.drawing import drawn_rows, rows_per_label
from tacit.matching.pool import SentencePool, attribution_of
from tacit.noise.source import public_generator


def decoded_corpus(
    sums: LabelSums,
    pools: Sequence[SentencePool],
    features: Floats32,
    promised: Guarantee,
    *,
    rows: int | None = None,
    seed: int = 0,
) -> MatchedCorpus:
    """Public sentences of the pools with labels.

    features   H of all sentences of the pools, one after the other
    promised   the promise of the release
    rows       by default as many as were released, and at least 30,000
    seed       public: it repeats the choice
    """
    places = [(pool, place) for pool in pools for place in range(len(pool))]
    check_pool_size(len(places))
    discriminant = fitted_discriminant(sums, features)
    generator = public_generator(seed)
    count = max(USUAL_ROWS, round(float(steadied_counts(sums).sum()))) if rows is None else rows
    wanted = rows_per_label(discriminant.shares, count, generator)
    drawn = drawn_rows(
        discriminant.log_probabilities(features),
        discriminant.domain_scores(features),
        wanted,
        generator,
        most_repeats=max(1, math.ceil(int(wanted.max()) / (LARGEST_PART * len(places)))),
    )
    order = generator.permutation(len(drawn))
    chosen = drawn.sentences[order]
    return MatchedCorpus(
        texts=[places[place][0].sentences[places[place][1]] for place in chosen],
        labels=[sums.labels[label] for label in drawn.labels[order]],
        guarantee=promised,
        attribution=attribution_of([places[place] for place in np.unique(chosen)]),
        sentences=[[places[place][0].sentences[places[place][1]]] for place in chosen],
    )
