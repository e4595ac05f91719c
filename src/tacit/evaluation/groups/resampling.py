"""Scores of the groups on many test sets, drawn with replacement: the same sets for all measures and models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import coo_array, csr_array

from tacit.arrays import Floats, Integers
from tacit.evaluation.groups.measures import CountedMeasure
from tacit.noise.source import public_generator

AT_ONCE = 50
RESAMPLES = 1000


@dataclass(frozen=True)
class Draws:
    """Scores of one measure: of the groups, and of all that is not in a group (`rest`).

    value, rest        (groups,) on the test rows
    values, rests      (resamples, groups) on the drawn test sets; NaN where a group was not drawn
    """

    value: Floats = field(repr=False)
    rest: Floats = field(repr=False)
    values: Floats = field(repr=False)
    rests: Floats = field(repr=False)

    @property
    def beyond_rest(self) -> tuple[Floats, Floats]:
        """How far each group is from the rest, on the test rows and on the drawn sets."""
        return self.value - self.rest, self.values - self.rests


def by_group(measure: CountedMeasure, groups: Integers, count: int) -> CountedMeasure:
    """The measure with a section of columns for each group of rows."""
    flat = coo_array(measure.counts)
    rows, columns = flat.coords
    moved = groups[rows] * measure.parts + columns
    counts = csr_array(coo_array((flat.data, (rows, moved)), shape=(flat.shape[0], count * measure.parts)))
    return CountedMeasure(
        measure.name, counts, measure.parts, measure.score, measure.better, measure.largest, measure.shares
    )


def resampled_scores(
    measures: Sequence[Sequence[CountedMeasure]],
    rows: int,
    users: Integers | None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Draws]:
    """The draws of each measure, which has one list of predictions for each run: their scores are averaged."""
    generator = public_generator(seed)
    owner = np.arange(rows) if users is None else users
    units = int(owner.max()) + 1 if rows else 0
    whole = [_scores(runs, np.ones((1, rows))) for runs in measures]
    drawn: list[list[tuple[Floats, Floats]]] = [[] for _ in measures]
    for start in range(0, resamples, AT_ONCE):
        size = min(AT_ONCE, resamples - start)
        times = np.stack(
            [np.bincount(generator.integers(0, units, units), minlength=units)[owner] for _ in range(size)]
        ).astype(np.float64)
        for place, runs in enumerate(measures):
            drawn[place].append(_scores(runs, times))
    return [
        Draws(value[0], rest[0], np.concatenate([d[0] for d in parts]), np.concatenate([d[1] for d in parts]))
        for (value, rest), parts in zip(whole, drawn, strict=True)
    ]


def _scores(runs: Sequence[CountedMeasure], times: Floats) -> tuple[Floats, Floats]:
    """Scores of the groups and of the rests, (sets, groups) each, averaged over runs."""
    scores = []
    for run in runs:
        sums = np.asarray((run.counts.T @ times.T).T).reshape(len(times), run.sections, run.parts)
        rest = sums.sum(axis=1, keepdims=True) - sums
        scores.append((run.score(sums), run.score(rest)))
    return np.mean([s[0] for s in scores], axis=0), np.mean([s[1] for s in scores], axis=0)
