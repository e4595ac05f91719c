"""Whether a corpus can be drawn from a sketch: room for its labels, and labels that noise has not drowned.

Only what is public or released is looked at, so all of it may be said to anybody.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from tacit.errors import BadInputError, TacitWarning
from tacit.matching.labels import Topics
from tacit.matching.pool import SentencePool
from tacit.matching.sketch import Sketch

MOST_SCORES = 1 << 27
"""One for every pair of a label and a sentence: a gigabyte."""
DEVIATIONS = 3.0


def check_drawable(labels: Sequence[str], pools: Sequence[SentencePool]) -> None:
    """Refuse more labels than can be compared with all sentences at once."""
    sentences = sum(map(len, pools))
    if len(labels) * sentences > MOST_SCORES:
        raise BadInputError(
            "too-many-labels-to-draw",
            "{labels:,} labels are more than can be compared with {sentences:,} public sentences: give at most "
            "{most:,} labels (join rare ones, and let {option.other} stand for the rest), or a smaller {option.pools}",
            labels=len(labels), sentences=sentences, most=max(1, MOST_SCORES // max(1, sentences)),
        )  # fmt: skip


def drowned_labels(sketch: Sketch) -> int:
    """The number of labels whose noisy count is within three standard deviations of none."""
    return int(np.sum(sketch.counts < DEVIATIONS * sketch.count_deviation))


def warn_of_noise(sketch: Sketch) -> None:
    """Say how many labels cannot be told from noise. Nobody asked for single topics, so they are not counted."""
    drowned = 0 if isinstance(sketch.rule, Topics) else drowned_labels(sketch)
    if drowned:
        warnings.warn(
            TacitWarning(
                f"{drowned:,} of {len(sketch.labels):,} labels cannot be told from noise: a label needs about "
                f"{DEVIATIONS * sketch.count_deviation:,.0f} rows at this epsilon; their sentences are no more than "
                "guesses. Larger labels, more rows or a larger epsilon would help"
            ),
            stacklevel=3,
        )
