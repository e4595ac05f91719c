"""How many rows each combination of labels has, with noise.

    released count = count + discrete Laplace noise of scale s / epsilon,    clamped at 0 and rounded afterwards

One record is in one cell, so adding or removing it moves the counts by s = 1 in l1 norm, replacing it by s = 2: pure
epsilon-DP (`tacit.noise.laplace`, exact arithmetic). Where the promise is made to users, all rows of a user together
count as one: each of n rows adds 1 / n, rounded down to a multiple of 2^-24, so a user adds at most 1 in l1 norm,
however many rows they have, and in double precision the sums are exact. What is counted is then users, shared out
over the labels of their rows. Clamping, rounding, and turning counts into shares of n rows see
released numbers only. The papers on synthetic text take the exact counts and leave their price out of the account.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Unit, VoidReason
from tacit.noise.laplace import add_laplace
from tacit.noise.source import Source
from tacit.training.synthesis.codes import Combination, ControlCodes
from tacit.training.tasks import Row
from tacit.training.users import Users

PARTS = 2**24
"""One user, in the parts that their rows are counted in: the sums of 2^29 users are exact in double precision."""
L1_SENSITIVITY = {Adjacency.ADD_REMOVE: 1.0, Adjacency.REPLACE_ONE: 2.0}


@dataclass(frozen=True)
class LabelCounts:
    """Numbers of rows by combination, as released; and what their release promises (None: no private row was read)."""

    counts: Mapping[Combination, int]
    guarantee: Guarantee | None

    def shares(self, rows: int) -> dict[Combination, int]:
        """`rows` rows in these proportions, by largest remainders; equal parts if all counts are 0."""
        if rows < 1:
            raise BadParameterError(
                "impossible-count", "the number of rows to write is at least 1, not {count}", count=rows
            )
        total = sum(self.counts.values())
        weights = {c: (n / total if total else 1 / len(self.counts)) for c, n in self.counts.items()}
        exact = {combination: rows * weight for combination, weight in weights.items()}
        rows_of = {combination: int(value) for combination, value in exact.items()}
        order = sorted(exact, key=lambda c: rows_of[c] - exact[c])
        for combination in order[: rows - sum(rows_of.values())]:
            rows_of[combination] += 1
        return rows_of


def exact_counts(rows: Sequence[Row], codes: ControlCodes, users: Users | None = None) -> dict[Combination, float]:
    """Every combination and how often it occurs; with users, in users. Private."""
    if users is None:
        seen = Counter(codes.of(row) for row in rows)
        return {combination: float(seen[combination]) for combination in codes.combinations}
    parts = dict.fromkeys(codes.combinations, 0)
    for mine in users.rows:
        share = PARTS // len(mine)
        for number in mine:
            parts[codes.of(rows[number])] += share
    return {combination: count / PARTS for combination, count in parts.items()}


def counts_guarantee(
    codes: ControlCodes, *, epsilon: float, adjacency: Adjacency, secure: bool, unit: Unit = Unit.RECORD
) -> Guarantee:
    """The promise of noisy label counts, before they are drawn."""
    if adjacency not in L1_SENSITIVITY:
        raise BadParameterError(
            "adjacency-not-accounted",
            "label counts are private for adding or removing one record, or for replacing one",
        )
    promised = Guarantee(
        notion=Notion.PURE,
        epsilon=epsilon,
        model=Model.CENTRAL,
        unit=unit,
        adjacency=adjacency,
        mechanism="label counts with discrete Laplace noise",
        parameters={"label columns": ", ".join(codes.columns), "cells": len(codes.combinations)},
        assumptions=("the noise comes from a secret random key of the operating system, which is not shown",),
    )
    if secure:
        return promised
    return promised.voided("the labels were counted with a test seed, which undoes the noise", VoidReason.TEST_SEED)


def noisy_counts(
    rows: Sequence[Row],
    codes: ControlCodes,
    *,
    epsilon: float,
    adjacency: Adjacency,
    source: Source,
    users: Users | None = None,
) -> LabelCounts:
    """The private histogram over all combinations of labels; with users, its promise is made to them."""
    unit = Unit.RECORD if users is None else Unit.USER
    promised = counts_guarantee(codes, epsilon=epsilon, adjacency=adjacency, secure=source.secure, unit=unit)
    exact = exact_counts(rows, codes, users)
    noisy = add_laplace(list(exact.values()), epsilon=epsilon, l1_sensitivity=L1_SENSITIVITY[adjacency], source=source)
    counts = {c: max(0, int(n)) for c, n in zip(exact, np.rint(noisy), strict=True)}
    return LabelCounts(counts, promised)


def counts_without_privacy(rows: Sequence[Row], codes: ControlCodes, users: Users | None = None) -> LabelCounts:
    """The exact histogram, for baselines. No guarantee."""
    void = Guarantee(
        notion=Notion.NONE,
        epsilon=float("inf"),
        model=Model.CENTRAL,
        unit=Unit.RECORD if users is None else Unit.USER,
        adjacency=Adjacency.ADD_REMOVE,
        mechanism="exact label counts",
        void="the labels were counted without noise",
        void_reason=VoidReason.NO_NOISE,
    )
    return LabelCounts({cell: round(count) for cell, count in exact_counts(rows, codes, users).items()}, void)


def equal_counts(codes: ControlCodes) -> LabelCounts:
    """The same number of rows for every combination: nothing is counted, and nothing spent."""
    return LabelCounts(dict.fromkeys(codes.combinations, 1), None)
