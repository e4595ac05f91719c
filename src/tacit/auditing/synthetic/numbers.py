"""All numbers of a sketch as an audit compares them: the sums by label, and the numbers beside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.arrays import Integers, Mask
from tacit.auditing.synthetic.process import MatchingRelease
from tacit.auditing.synthetic.rows import AuditedRows
from tacit.matching.sketch import Sketch
from tacit.matching.sums import exact_sums


@dataclass(frozen=True)
class SketchNumbers:
    """Whole steps: sums by line with the count last, and what stands beside them (`tacit.matching.sides`)."""

    totals: Integers
    side: Integers

    def __sub__(self, other: SketchNumbers) -> SketchNumbers:
        return SketchNumbers(self.totals - other.totals, self.side - other.side)

    def flat(self, lines: Mask) -> Integers:
        """The sums of some lines and all numbers beside them, in a row."""
        return np.concatenate([self.totals[lines].reshape(-1), self.side])


def exact_numbers(release: MatchingRelease, rows: AuditedRows) -> SketchNumbers:
    """The numbers of rows before any noise."""
    exact = exact_sums(rows.source(), release.rule, release.feature_map, by_user=release.by_user)
    return SketchNumbers(exact.totals, exact.side)


def released_numbers(sketch: Sketch) -> SketchNumbers:
    """The numbers of a release."""
    return SketchNumbers(sketch.totals * sketch.step, sketch.side * sketch.step)
