"""All pairs of a large vocabulary, for laws of the form Pr[M(x) = y] ~ exp(-min(s(x) d(x, y), cap)).

This is the form of SanText, SanText+ (its protected outputs), TEM and two budgets. Checking every triple of 15,000
words would take 3e12 steps; the form makes it 2e8. It is not taken on trust. For each cell of the law that is really
used (`laws`, from integer weights) the first pass measures how far it is from the form:

    -ln Pr[M(x) = y]  =  min(s(x) d(x, y), cap) + c(x, y),      low(x) <= c(x, y) <= high(x)

where c would be one number per input, the logarithm of its normalizer, if nothing were rounded. Then for *every* pair
and *every* output

    loss(x, x', y)  <=  [min(s' d(x', y), cap) - min(s d(x, y), cap)] + high(x') - low(x)
                    <=  min( min(s, s') d(x, x') + max(0, s' - s) far(x'), cap ) + high(x') - low(x)

with s = s(x), s' = s(x'), far(x') the largest distance from x' to an output. Proof without the cap: for s' <= s,
s' d(x', y) - s d(x, y) <= s' (d(x', y) - d(x, y)) <= s' d(x, x'); for s' > s it is s (d(x', y) - d(x, y)) + (s' - s)
d(x', y). With it: min(a, cap) - min(b, cap) <= max(0, min(a - b, cap)). With one scale, the bound is attained at y = x
up to high - low. Computed distances are off by at most eta (`DistanceRows.error_bound`), added where it enters:
three times s * eta in the loss, once epsilon * eta in the claim.

The second pass takes this bound over all ordered pairs, and the pairs with the largest bounds are computed exactly, all
outputs, distances from differences. What is left has a bound below the last one computed. So each result is an interval
[computed, bounded], and mostly both ends agree.

A punctuation mark that is copied has another law (high is infinite). Where the claim says nothing about it and another
word (`Claim.sets`), the pair is left out; where the claim forgot it, the pair has the largest bound and is computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.auditing.claims.claim import Claim, VectorDistance
from tacit.auditing.claims.exact import (
    TOLERANCE,
    ExactResult,
    Witness,
    Worst,
    result_of,
)
from tacit.auditing.claims.laws import MechanismLaw
from tacit.errors import BadParameterError
from tacit.noise.choice import exponent_cap
from tacit.progress import StepProgress
from tacit.vectors.distance_rows import DistanceRows
from tacit.words.exponential import ExponentialWords

if TYPE_CHECKING:
    from tacit.words.base import WordMechanism

BLOCK_CELLS = 2_000_000
KEPT = 256
"""So many pairs with the largest bounds are computed, for each of the three results."""


@dataclass(frozen=True)
class RadialForm:
    """The measurements of the first pass: scale, low, high and far of each input."""

    scales: Floats
    low: Floats
    high: Floats
    far: Floats
    cap: float
    error: float

    @property
    def deviation(self) -> float:
        """The distance of the law from the form: twice what rounding to integers can do, if the form is right."""
        return float((self.high - self.low).max())


def measure_form(
    mechanism: ExponentialWords, claim: Claim, progress: StepProgress | None = None, steps: int = 1
) -> tuple[RadialForm, Witness | None]:
    """The first pass: every cell of the law against the form. Also looks for unprotected outputs with two inputs."""
    count, outputs = len(mechanism.table), mechanism.outputs
    whole = len(outputs) == count
    ids = np.arange(count)
    scales = np.array(np.broadcast_to(mechanism.scales(ids), (count,)), dtype=np.float64)
    cap = min(mechanism.cap, exponent_cap(len(outputs)))
    low, high, far = np.empty(count), np.empty(count), np.empty(count)
    distances = mechanism.distances
    owner = np.full(count, -1)
    known = MechanismLaw(mechanism)
    shared: Witness | None = None
    step = max(1, BLOCK_CELLS // count)
    buffer = np.empty((step, len(outputs)))
    for start in range(0, count, step):
        block = ids[start : start + step]
        law = known.rows(block)
        exponents = distances.rows(block, buffer)
        far[block] = exponents.max(axis=1)
        exponents *= scales[block][:, None]
        np.minimum(exponents, cap, out=exponents)
        covered = law if whole else law[:, outputs]
        with np.errstate(divide="ignore"):
            np.log(covered, out=covered)
        exponents += covered
        low[block], high[block] = -exponents.max(axis=1), -exponents.min(axis=1)
        if claim.protected is not None:
            rows, columns = np.nonzero((law > 0) & ~claim.protected)
            for row, column in zip(block[rows].tolist(), columns.tolist(), strict=True):
                if owner[column] >= 0 and shared is None:
                    words = mechanism.vocabulary
                    shared = Witness(words[owner[column]], words[row], words[column], 0.0, 0.0)
                owner[column] = row
        if progress is not None:
            progress(int(block[-1]) + 1, steps * count)
    return RadialForm(scales, low, high, far, cap, distances.error_bound), shared


@dataclass
class _Top:
    """The pairs with the largest values so far, and the largest value among all others."""

    values: Floats
    pairs: Ids
    rest: float = -math.inf

    @classmethod
    def empty(cls) -> _Top:
        return cls(np.empty(0), np.empty((0, 2), dtype=np.int64))

    def offer(self, block: Floats, rows: Ids) -> None:
        """`block` (rows, all inputs): a value for each ordered pair."""
        threshold = self.values[-1] if len(self.values) == KEPT else -math.inf
        flat = block.ravel()
        if math.isinf(threshold) and flat.size > KEPT:
            threshold = float(np.partition(flat, flat.size - KEPT)[flat.size - KEPT])
            places = np.flatnonzero(flat >= threshold)
        else:
            places = np.flatnonzero(flat > threshold)
        if len(places) < flat.size:
            # What is left out of this block does not exceed the threshold.
            self.rest = max(self.rest, threshold)
        i, j = np.divmod(places, block.shape[1])
        values = np.concatenate([self.values, flat[places]])
        pairs = np.concatenate([self.pairs, np.stack([rows[i], j], axis=1)])
        order = np.argsort(-values, kind="stable")
        if len(order) > KEPT:
            self.rest = max(self.rest, float(values[order[KEPT]]))
        self.values, self.pairs = values[order[:KEPT]], pairs[order[:KEPT]]


def check_vocabulary(
    mechanism: WordMechanism,
    claim: Claim,
    *,
    tolerance: float = TOLERANCE,
    progress: StepProgress | None = None,
) -> ExactResult:
    """All ordered pairs of the vocabulary and all outputs, as the module says."""
    distance = claim.distance
    if not isinstance(mechanism, ExponentialWords) or not isinstance(distance, VectorDistance) or claim.delta:
        raise BadParameterError(
            "not-checked-by-distance",
            "{mechanism} is not checked by its distances: check some of its words, or its closest pairs",
            mechanism=mechanism.name,
        )
    count = len(mechanism.table)
    form, shared = measure_form(mechanism, claim, progress, steps=2)
    distances = DistanceRows(distance.points)
    error = max(form.error, distances.error_bound)
    top_excess, top_loss, top_slope = _Top.empty(), _Top.empty(), _Top.empty()
    one_scale = bool((form.scales == form.scales[0]).all())
    step = max(1, BLOCK_CELLS // count)
    buffer, work = np.empty((step, count)), np.empty((step, count))
    for start in range(0, count, step):
        rows = np.arange(start, min(start + step, count))
        d = distances.rows(rows, buffer)
        loss = _loss_bounds(form, rows, d, error, one_scale, work)
        own = (np.arange(len(rows)), rows)
        loss[own] = -math.inf
        if claim.sets is not None:
            loss[claim.sets[rows][:, None] != claim.sets[None, :]] = -math.inf
        top_loss.offer(loss, rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (loss - claim.offset) / np.maximum(d - error, 0.0)
        slope[own] = -math.inf
        top_slope.offer(slope, rows)
        d *= claim.epsilon
        loss -= d
        loss -= claim.offset + claim.slack - claim.epsilon * error
        top_excess.offer(loss, rows)
        if progress is not None:
            progress(count + int(rows[-1]) + 1, 2 * count)
    law = MechanismLaw(mechanism)
    worst = Worst(law, claim)
    pairs = np.unique(np.sort(np.concatenate([t.pairs for t in (top_excess, top_loss, top_slope)]), axis=1), axis=0)
    batch = max(1, BLOCK_CELLS // count)
    for start in range(0, len(pairs), batch):
        block = pairs[start : start + batch]
        worst.compare(block[:, 0], block[:, 1], law.rows(block[:, 0]), law.rows(block[:, 1]))
    sizes = np.array([count]) if claim.sets is None else np.unique(claim.sets, return_counts=True)[1]
    worst.pairs = int((sizes * (sizes - 1) // 2).sum())
    only = "" if claim.sets is None else f" ({claim.among})"
    return result_of(
        worst,
        f"all {worst.pairs:,} pairs of {count:,} words{only}, all {len(mechanism.outputs):,} outputs",
        tolerance,
        excess_at_most=top_excess.rest,
        tightest_at_most=top_loss.rest,
        steepest_at_most=top_slope.rest,
        shared=shared,
    )


def _loss_bounds(form: RadialForm, rows: Ids, d: Floats, error: float, one_scale: bool, out: Floats) -> Floats:
    """The bound on the loss of each ordered pair (row, any input), over all outputs."""
    bound = out[: len(rows)]
    if one_scale:
        np.multiply(d, form.scales[0], out=bound)
        bound += 3.0 * form.scales[0] * error
    else:
        mine, theirs = form.scales[rows][:, None], form.scales[None, :]
        np.multiply(d + 3.0 * error, np.minimum(mine, theirs), out=bound)
        bound += np.maximum(theirs - mine, 0.0) * (form.far[None, :] + error)
    np.minimum(bound, form.cap, out=bound)
    bound += form.high[None, :]
    nothing = np.isinf(form.low[rows])  # no covered output is possible, so no loss either
    bound -= np.where(nothing, 0.0, form.low[rows])[:, None]
    bound[nothing] = -math.inf
    return bound
