"""Scores of all groups by one or two models: intervals, largest gap, and who pays for privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.arrays import Floats, Integers, Mask
from tacit.errors import BadInputError
from tacit.evaluation.groups.gaps import GroupGap, largest_gap, p_values
from tacit.evaluation.groups.grouping import RowGroups
from tacit.evaluation.groups.measures import CountedMeasure, class_measures, measures_of
from tacit.evaluation.groups.resampling import RESAMPLES, Draws, by_group, resampled_scores
from tacit.evaluation.scores import CONFIDENCE, Interval
from tacit.evaluation.tradeoff import holm

FEWEST_ROWS = 50
"""Groups of fewer rows (or words, where classes of words are groups) take part in no gap."""
FEWEST_USERS = 20


@dataclass(frozen=True)
class Answers:
    """Predictions under the name of what made them, in one run or in several with different seeds."""

    name: str
    runs: Sequence[Sequence[str]] = field(repr=False)


@dataclass(frozen=True)
class ModelScores:
    """The scores of one model in each group, by one measure.

    rest   the score on all other rows
    p      of the difference to the rest, corrected for all groups; NaN for small ones
    """

    name: str
    scores: tuple[Interval, ...]
    rest: tuple[float, ...]
    p: tuple[float, ...]
    gap: GroupGap | None


@dataclass(frozen=True)
class Paid:
    """How much worse the private model is than the one without privacy, in each group.

    p     of the difference between what a group and what the rest pays, corrected for all groups; NaN for small ones
    gap   the largest difference between what two groups pay
    """

    costs: tuple[Interval, ...]
    p: tuple[float, ...]
    gap: GroupGap | None


@dataclass(frozen=True)
class GroupedMeasure:
    """One measure of one model or of two. `better` is 1 if more is better, -1 if less is."""

    name: str
    better: int
    models: tuple[ModelScores, ...]
    paid: Paid | None


@dataclass(frozen=True)
class GroupReport:
    """Groups, their sizes, and the measures of the task, the main one first.

    title   what the groups are called
    rows    rows of each group, or words where classes of words are groups
    users   users of each group, if rows belong to users
    small   whether a group has too few rows to compare
    """

    title: str
    names: tuple[str, ...]
    rows: tuple[int, ...]
    users: tuple[int, ...] | None
    small: tuple[bool, ...]
    measures: tuple[GroupedMeasure, ...]
    confidence: float = CONFIDENCE


def scores_by_group(
    task: str,
    truth: Sequence[str],
    model: Answers,
    groups: RowGroups,
    *,
    beside: Answers | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> GroupReport:
    """The scores of the groups of a column; `beside` are the predictions of the model without privacy."""
    models = _checked(truth, model, beside)
    count = len(groups.names)
    counted = [
        [[by_group(measure, groups.codes, count) for measure in measures_of(task, truth, run)] for run in each.runs]
        for each in models
    ]
    rows = np.bincount(groups.codes, minlength=count)
    users = None
    if groups.users is not None:
        pairs = np.unique(np.stack([groups.codes, groups.users]), axis=1)
        users = np.bincount(pairs[0], minlength=count)
    title = f"Scores by {groups.column}"
    return _report(title, groups.names, rows, users, groups.users, models, counted, resamples, seed)


def scores_by_class(
    task: str,
    truth: Sequence[str],
    model: Answers,
    *,
    users: Integers | None = None,
    beside: Answers | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> GroupReport:
    """The scores of the classes that occur in the truth, as if they were groups: rare ones are often served worse."""
    models = _checked(truth, model, beside)
    made = [[class_measures(task, truth, run) for run in each.runs] for each in models]
    names = tuple(made[0][0][0])
    sizes = np.asarray(made[0][0][1][1].counts.sum(axis=0)).reshape(-1, 2)[:, 1].astype(np.int64)
    title = "Scores by class" if task == "classify" else "Scores by tag"
    return _report(
        title, names, sizes, None, users, models, [[run[1] for run in each] for each in made], resamples, seed
    )


def _checked(truth: Sequence[str], model: Answers, beside: Answers | None) -> list[Answers]:
    models = [model] if beside is None else [model, beside]
    for each in models:
        for run in each.runs:
            if len(run) != len(truth):
                raise BadInputError(
                    "wrong-number-of-predictions",
                    "there are {truth:,} true values and {predicted:,} predictions",
                    truth=len(truth),
                    predicted=len(run),
                )
    return models


def _report(
    title: str,
    names: Sequence[str],
    rows: Integers,
    users: Integers | None,
    owners: Integers | None,
    models: Sequence[Answers],
    counted: Sequence[Sequence[Sequence[CountedMeasure]]],
    resamples: int,
    seed: int,
) -> GroupReport:
    small = rows < FEWEST_ROWS
    if users is not None:
        small |= users < FEWEST_USERS
    units = rows if users is None else users
    # counted[model][run][measure] -> one list of runs for each measure of each model
    which = range(len(counted[0][0]))
    lists = [[run[number] for run in runs] for number in which for runs in counted]
    draws = resampled_scores(lists, lists[0][0].counts.shape[0], owners, resamples=resamples, seed=seed)
    measures = []
    for number in which:
        runs = counted[0][0][number]
        # Where a score has no largest value, nothing is known about its spread but what resampling shows.
        least = runs.largest / units if math.isfinite(runs.largest) else np.zeros(len(units))
        own = draws[number * len(models) : (number + 1) * len(models)]
        wilson = runs.shares and owners is None and all(len(each.runs) == 1 for each in models)
        scored = tuple(
            _model_scores(each.name, drawn, rows if wilson else None, least, small)
            for each, drawn in zip(models, own, strict=True)
        )
        paid = _paid(own[0], own[1], runs.better, least, small) if len(own) > 1 else None
        measures.append(GroupedMeasure(runs.name, runs.better, scored, paid))
    return GroupReport(
        title, tuple(names), tuple(rows.tolist()), None if users is None else tuple(users.tolist()),
        tuple(small.tolist()), tuple(measures),
    )  # fmt: skip


def _model_scores(name: str, draws: Draws, shares_of: Integers | None, least: Floats, small: Mask) -> ModelScores:
    intervals = (
        _percentiles(draws.value, draws.values)
        if shares_of is None
        else tuple(_wilson(v, n) for v, n in zip(draws.value.tolist(), shares_of.tolist(), strict=True))
    )
    p = _corrected(*draws.beyond_rest, least, small)
    return ModelScores(name, intervals, tuple(draws.rest.tolist()), p, _gap(draws.value, draws.values, least, small))


def _paid(private: Draws, plain: Draws, better: int, least: Floats, small: Mask) -> Paid:
    """The price of privacy in each group: both models are scored on the same drawn test sets."""
    cost, drawn = better * (plain.value - private.value), better * (plain.values - private.values)
    rest, drawn_rest = better * (plain.rest - private.rest), better * (plain.rests - private.rests)
    p = _corrected(cost - rest, drawn - drawn_rest, least, small)
    return Paid(_percentiles(cost, drawn), p, _gap(cost, drawn, least, small))


def _gap(values: Floats, draws: Floats, least: Floats, small: Mask) -> GroupGap | None:
    """The largest gap among groups that are large enough and have a score; None if fewer than two are."""
    places = np.flatnonzero(~small & ~np.isnan(values))
    if len(places) < 2:
        return None
    gap = largest_gap(values[places], draws[:, places], least[places])
    return GroupGap(
        int(places[gap.high]), int(places[gap.low]), gap.value, gap.at_least, gap.at_most, gap.pairs, gap.confidence
    )


def _corrected(differences: Floats, draws: Floats, least: Floats, small: Mask) -> tuple[float, ...]:
    p = p_values(differences, draws, least)
    places = [place for place in np.flatnonzero(~small).tolist() if not math.isnan(p[place])]
    corrected = [math.nan] * len(p)
    for place, value in zip(places, holm([float(p[place]) for place in places]), strict=True):
        corrected[place] = value
    return tuple(corrected)


def _percentiles(values: Floats, draws: Floats) -> tuple[Interval, ...]:
    """Percentile intervals; NaN for a group whose score exists in too few of the drawn test sets."""
    intervals = []
    for value, column in zip(values.tolist(), draws.T, strict=True):
        there = column[~np.isnan(column)]
        ends = (math.nan, math.nan)
        if not math.isnan(value) and 2 * len(there) > len(column):
            low, high = np.quantile(there, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]).tolist()
            ends = (low, high)
        intervals.append(Interval(value, *ends, len(there)))
    return tuple(intervals)


def _wilson(share: float, rows: int) -> Interval:
    """Wilson's interval of a share of independent rows."""
    from scipy.stats import binomtest

    if not rows or math.isnan(share):
        return Interval(math.nan, math.nan, math.nan, 0)
    ends = binomtest(round(share * rows), rows).proportion_ci(CONFIDENCE, method="wilson")
    return Interval(share, float(ends.low), float(ends.high), rows)
