"""The release of topics: noise on the counts of public cells, then on the words of the topics that these become.

    1. Every cell, used or not, gets discrete Laplace noise of scale STEPS / epsilon_1 in whole steps. A unit moves all
       counts together by at most STEPS in absolute values (`counts`), so this is epsilon_1, pure, without slack.
    2. Cells are joined to topics by the noisy counts and public centers: post-processing.
    3. Words are counted in each topic and shown where the noisy count passes a threshold: (epsilon_2, delta) by
       `tacit.training.vocabulary.word_noise`, for a histogram whose entries are pairs of a topic and a word. Of a unit
       at most `most_words` entries move, each by k^-1/2: for a record because it is in one topic (so the words of all
       topics cost what those of one cost), for a user because each different word counts in one topic.

epsilon = epsilon_1 + epsilon_2 by composition; `CELL_SHARE` of it is epsilon_1, a public constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from tacit.account.delta import automatic_delta, check_delta
from tacit.account.parts import in_two_parts
from tacit.arrays import Floats, Ids
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Provenance, Unit, VoidReason, check_epsilon
from tacit.mechanism import TEST_SEED_REASON
from tacit.noise.laplace import discrete_laplace
from tacit.noise.source import Source
from tacit.training.topics.counts import STEPS, ExactCounts
from tacit.training.vocabulary.contribution import Contribution
from tacit.training.vocabulary.histogram import histogram_guarantee
from tacit.training.vocabulary.word_noise import WordNoise, calibrate

CELL_SHARE = Fraction(1, 5)
MECHANISM = "topics (noisy counts of public cells, and words of each topic above a threshold)"
_BETWEEN = "\x1f"


@dataclass(frozen=True)
class TopicNoise:
    """The noise of a release of topics, and the promise that it keeps.

    cell_scale   of the discrete Laplace noise of each cell, in steps
    words        noise and threshold of the words
    """

    cell_scale: int
    words: WordNoise
    guarantee: Guarantee

    @property
    def scale(self) -> float:
        """Of the noise of each cell, in counts."""
        return self.cell_scale / STEPS

    @property
    def threshold(self) -> float:
        """The noisy count from which on a word is shown."""
        assert self.words.threshold is not None
        return self.words.threshold

    def noisy_cells(self, exact: ExactCounts, source: Source) -> Floats:
        """Noisy counts of all cells, on a grid of 1 / STEPS."""
        noisy = exact.cells + discrete_laplace(self.cell_scale, len(exact.cells), source)
        return np.asarray(noisy / STEPS)

    def shown_words(self, exact: ExactCounts, topics: Ids, count: int, source: Source) -> list[dict[str, float]]:
        """For each topic the words that pass the threshold, with their noisy (weighted) counts.

        topics   the topic of each cell, made of released numbers
        """
        sums: dict[str, int] = {}
        for (cell, word), steps in exact.words.items():
            entry = f"{topics[cell]}{_BETWEEN}{word}"
            sums[entry] = sums.get(entry, 0) + steps
        entries = list(sums)
        counts = np.array([sums[entry] for entry in entries], dtype=np.float64) / STEPS
        shown, noisy = self.words.released(entries, counts, source) if entries else ([], np.zeros(0))
        words: list[dict[str, float]] = [{} for _ in range(count)]
        for entry, value in zip(shown, noisy.tolist(), strict=True):
            topic, _, word = entry.partition(_BETWEEN)
            words[int(topic)][word] = value
        return words


@dataclass(frozen=True)
class TopicTerms:
    """The terms of a release: budget, bounds and unit.

    delta   None: well below one over the number of units, which is then taken as public
    """

    epsilon: float
    delta: float | None = None
    most_words: int = 4
    by_user: bool = False
    provenance: Sequence[Provenance] = field(default=())


def topic_noise(terms: TopicTerms, cells: int, units: int, *, secure: bool) -> TopicNoise:
    """The least noise that keeps the terms, for so many cells and units."""
    check_epsilon(terms.epsilon)
    delta = automatic_delta(units) if terms.delta is None else terms.delta
    check_delta(delta, units)
    for_cells, for_words = in_two_parts(terms.epsilon, CELL_SHARE)
    scale = math.ceil(STEPS / Fraction(for_cells))
    contribution = Contribution(terms.most_words)
    words = calibrate(epsilon=for_words, delta=delta, contribution=contribution)
    unit = Unit.USER if terms.by_user else Unit.RECORD
    of_words = histogram_guarantee(words, contribution, Adjacency.ADD_REMOVE, unit, None)
    promised = _cells_guarantee(for_cells, scale, cells, unit, terms).then(of_words)
    promised = replace(promised, mechanism=MECHANISM, assumptions=_assumptions(unit, automatic=terms.delta is None),
                       not_covered=_not_covered(unit, automatic=terms.delta is None))  # fmt: skip
    if not secure:
        promised = promised.voided(TEST_SEED_REASON, VoidReason.TEST_SEED)
    return TopicNoise(scale, words, promised)


def _cells_guarantee(epsilon: float, scale: int, cells: int, unit: Unit, terms: TopicTerms) -> Guarantee:
    return Guarantee(
        notion=Notion.PURE,
        epsilon=epsilon,
        model=Model.CENTRAL,
        unit=unit,
        adjacency=Adjacency.ADD_REMOVE,
        mechanism=MECHANISM,
        parameters={
            "cells": f"{cells:,}, of public sentences; one {unit.value} counts 1 in all of them together",
            "noise of counts": f"discrete Laplace noise of scale {scale / STEPS:.6g} on every cell, used or not",
        },
        provenance=tuple(terms.provenance),
    )


def _assumptions(unit: Unit, *, automatic: bool) -> tuple[str, ...]:
    secret = "the noise comes from a secret random key of the operating system"
    return (
        (secret, f"the number of {unit.value}s is public, because delta was chosen by it") if automatic else (secret,)
    )


def _not_covered(unit: Unit, *, automatic: bool) -> tuple[str, ...]:
    lines = [f"how many {unit.value}s there are, to one digit"] if automatic else []
    if unit is Unit.RECORD:
        lines.append("a person who has several records: their budgets add up")
    return tuple(lines)
