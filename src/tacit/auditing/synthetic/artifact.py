"""The released sketch itself beside the rows it was made of: is the noise in it as large as its card says?

What a released number has beyond the exact sum is noise of known law. Its residuals bound its scale from above, exactly
(`tacit.auditing.claims.noise`), and the scale bounds epsilon from below, because whoever looks at some of the numbers
only looks at a part of the release. Features, counts and the numbers beside them (lengths of texts, tables of pairs of
labels) are looked at apart: a release may forget the noise of one.

This needs a single release, the real one. It sees too little noise, and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from tacit.arrays import Floats
from tacit.auditing.claims.noise import laplace_scale_at_most, normal_scale_at_most
from tacit.auditing.synthetic.numbers import SketchNumbers, exact_numbers, released_numbers
from tacit.auditing.synthetic.process import MatchingRelease
from tacit.auditing.synthetic.rows import AuditedRows
from tacit.auditing.synthetic.targets import Target
from tacit.matching.sketch import Sketch
from tacit.matching.whole_numbers import GRID
from tacit.noise.gaussian import gaussian_epsilon

FOREIGN = 1e-9
"""Residuals as large as with this probability at most mean that the sketch is not of these rows."""


@dataclass(frozen=True)
class MeasuredNoise:
    """The noise in some numbers of a sketch.

    numbers    how many they are
    ratio      the size of their noise, as a share of what the card says
    scale      is at most this
    epsilon    is at least this
    """

    name: str
    numbers: int
    ratio: float
    scale: float
    epsilon: float


@dataclass(frozen=True)
class SketchNoise:
    """The noise in a sketch, group by group, beside the claim; all bounds hold together but with the stated doubt."""

    groups: tuple[MeasuredNoise, ...]
    claimed_epsilon: float
    foreign: bool
    doubt: float

    @property
    def epsilon(self) -> float:
        return max(group.epsilon for group in self.groups)

    @property
    def refuted(self) -> bool:
        return not self.foreign and self.epsilon > self.claimed_epsilon


def sketch_noise(
    sketch: Sketch, rows: AuditedRows, release: MatchingRelease, targets: tuple[Target, ...], doubt: float
) -> SketchNoise:
    """The noise in a sketch of these rows; targets say how far one record or user moves the sums."""
    residuals = _groups(released_numbers(sketch) - exact_numbers(release, rows))
    moved = [_groups(exact_numbers(release, target.rows)) for target in targets]
    expected = sketch.noise_variance
    groups = tuple(
        _measured(name, beyond, [each[name] for each in moved], release, expected, doubt / len(residuals))
        for name, beyond in residuals.items()
    )
    total = math.fsum(float(np.square(beyond).sum()) for beyond in residuals.values()) / expected
    size = sum(beyond.size for beyond in residuals.values())
    return SketchNoise(groups, release.epsilon, total > 4 * chi2.isf(FOREIGN, size), doubt)


def _groups(numbers: SketchNumbers) -> dict[str, Floats]:
    """The numbers in units of the features, by what they are of."""
    groups = {"features": numbers.totals[:, :-1], "counts": numbers.totals[:, -1]}
    if len(numbers.side):
        groups["beside the sums"] = numbers.side
    return {name: np.asarray(part / GRID) for name, part in groups.items()}


def _measured(
    name: str, residuals: Floats, moved: list[Floats], release: MatchingRelease, expected: float, doubt: float
) -> MeasuredNoise:
    # Rounding alone leaves a residual of up to half a step where there is no noise at all.
    ratio = math.sqrt(float(np.square(residuals).mean()) / expected)
    if not residuals.any():
        return MeasuredNoise(name, residuals.size, 0.0, 0.0, math.inf)
    if release.delta:
        scale = normal_scale_at_most(residuals, doubt)
        distance = max(float(np.linalg.norm(each)) for each in moved)
        epsilon = gaussian_epsilon(scale, release.delta, distance) if distance else 0.0
    else:
        scale = laplace_scale_at_most(residuals, doubt)
        epsilon = max(float(np.abs(each).sum()) for each in moved) / scale
    return MeasuredNoise(name, residuals.size, ratio, scale, epsilon)
