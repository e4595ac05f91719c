"""Differences between groups with intervals that hold for all pairs at once."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, studentized_range

from tacit.arrays import Floats
from tacit.evaluation.scores import CONFIDENCE


@dataclass(frozen=True)
class GroupGap:
    """The largest difference of two groups.

    high, low        the group with the larger and the one with the smaller number
    value            their difference, too large on average because it is the largest of many
    at_least, at_most  where the largest true difference lies, for all pairs at once
    pairs            how many pairs were compared
    """

    high: int
    low: int
    value: float
    at_least: float
    at_most: float
    pairs: int
    confidence: float = CONFIDENCE


def largest_gap(values: Floats, draws: Floats, spread: Floats, confidence: float = CONFIDENCE) -> GroupGap:
    """The largest difference among groups, by the studentized maximum over all pairs (see the package).

    Two things make the interval wider than the bootstrap alone, which is too sure where nearly all rows of a small
    group are right: the factor is never below that of Tukey and Kramer for normal means, and `spread`, what one more
    wrong row would change, is added to the spread that resampling shows.

    draws   (resamples, groups)
    spread  (groups,)
    """
    first, second = np.triu_indices(len(values), 1)
    differences = values[first] - values[second]
    drawn = draws[:, first] - draws[:, second]
    resampled = _spread(drawn)
    # A pair without any spread is known exactly.
    ratio = np.divide(np.abs(drawn - differences), resampled, out=np.zeros_like(drawn), where=resampled > 0)
    factor = max(
        float(np.quantile(np.nan_to_num(ratio).max(axis=1), confidence)),
        float(studentized_range.ppf(confidence, len(values), np.inf)) / math.sqrt(2),
    )
    reach = factor * np.sqrt(resampled**2 + spread[first] ** 2 + spread[second] ** 2)
    widest = int(np.abs(differences).argmax())
    pair = (int(first[widest]), int(second[widest]))
    high, low = pair if differences[widest] >= 0 else pair[::-1]
    return GroupGap(
        high, low, float(np.abs(differences[widest])), max(0.0, float((np.abs(differences) - reach).max())),
        float((np.abs(differences) + reach).max()), len(first), confidence,
    )  # fmt: skip


def p_values(differences: Floats, draws: Floats, spread: Floats) -> Floats:
    """Two-sided p-values of differences from 0, by the normal approximation with the same spread."""
    deviation = np.hypot(_spread(draws), spread)
    distance = np.divide(np.abs(differences), deviation, out=np.full(len(differences), np.nan), where=deviation > 0)
    result: Floats = 2 * norm.sf(distance)
    return result


def _spread(draws: Floats) -> Floats:
    """The standard deviation over the drawn sets in which a number exists; NaN where there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result: Floats = np.nanstd(draws, axis=0)
    return result
