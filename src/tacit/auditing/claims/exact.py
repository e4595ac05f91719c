"""Exact checks: the law of a mechanism against its claim, over all given pairs of inputs and all outputs.

For two inputs x, x' the loss of an output y is ln(Pr[M(x) = y] / Pr[M(x') = y]).

    tightest epsilon   the largest loss; with a delta, the smallest epsilon for which
                       sum over y of max(0, Pr[M(x) = y] - e^epsilon Pr[M(x') = y])  <=  delta      (hockey stick)
    tightest metric    the largest (loss - offset) / d(x, x')
    excess             the largest loss minus its bound; with a delta, the hockey stick at the bound minus delta

Three ways to the same numbers:

    columns   a plain claim without delta needs no pairs at all: the largest loss of an output is the logarithm of the
              largest over the smallest probability in its column
    radial    see `radial`: all pairs of a large vocabulary, for laws that depend on a distance
    pairs     every pair and output, for all others

A positive excess refutes the claim, and the witness can be checked by hand. None proves it for the pairs that were
checked, and for no others. Probabilities are doubles and their logarithms are right to about 1e-15; `tolerance` is far
above that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.auditing.claims.claim import Claim
from tacit.auditing.claims.laws import Law
from tacit.errors import BadInputError
from tacit.progress import StepProgress
from tacit.report import AtMost, Finding, Light, Section, Table
from tacit.rounding import rounded_down, rounded_up

TOLERANCE = 1e-9
BLOCK_CELLS = 4_000_000
MOST_CELLS = 60_000_000
"""Inputs times outputs that are kept in memory for all pairs: half a gigabyte."""


class ClaimVerdict(StrEnum):
    REFUTED = "refuted"
    HOLDS = "holds for everything that was checked"
    OPEN = "open"


@dataclass(frozen=True)
class Witness:
    """Two inputs and an output, with what was found and what was allowed."""

    left: str
    right: str
    output: str | None
    loss: float
    bound: float
    distance: float | None = None
    delta: float | None = None


@dataclass(frozen=True)
class ExactResult:
    """What an exact check found. `tightest` and `steepest` are largest values over all pairs; where only an interval is
    known, `..._at_most` is its upper end and the witness attains the lower one."""

    claim: Claim
    scope: str
    pairs: int
    worst: Witness
    excess: float
    excess_at_most: float
    largest: Witness
    tightest: float
    tightest_at_most: float
    steepest: float | None = None
    steepest_at_most: float | None = None
    shared_output: Witness | None = None
    tolerance: float = TOLERANCE

    @property
    def verdict(self) -> ClaimVerdict:
        if self.excess > self.tolerance or self.shared_output is not None:
            return ClaimVerdict.REFUTED
        return ClaimVerdict.HOLDS if self.excess_at_most <= self.tolerance else ClaimVerdict.OPEN


# One pair -------------------------------------------------------------------------------------------------------------


def hockey_stick(p: Floats, q: Floats, epsilon: float | Floats) -> Floats:
    """sum max(0, p - e^epsilon q) over the last axis: the smallest delta at this epsilon."""
    factor = np.exp(np.minimum(epsilon, 700.0))
    result: Floats = np.maximum(p - np.asarray(factor)[..., None] * q, 0.0).sum(axis=-1)
    return result


def smallest_epsilon(p: Floats, q: Floats, delta: float) -> float:
    """The smallest epsilon >= 0 with hockey stick <= delta: exact, by sorting the outputs by their ratio.

    With the k outputs of largest ratio, the stick is A_k - e^epsilon B_k (sums of p and q), so epsilon =
    ln((A_k - delta) / B_k) for the k whose own ratios it separates; it is the maximum over all k.
    """
    possible = p > 0
    if delta == 0:
        return max(0.0, float(log_ratios(p, q).max()))
    p, q = p[possible], q[possible]
    order = np.argsort(-log_ratios(p, q), kind="stable")
    above, below = np.cumsum(p[order]) - delta, np.cumsum(q[order])
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.where(above > 0, np.log(np.maximum(above, 0.0)) - np.log(below), -math.inf)
    return max(0.0, float(values.max()))


def log_ratios(p: Floats, q: Floats) -> Floats:
    """ln(p / q): infinite where only q is 0, -infinite where p is 0 (the output says nothing then)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(p) - np.log(q)
    result: Floats = np.where(p > 0, ratios, -math.inf)
    return result


# Pair by pair ---------------------------------------------------------------------------------------------------------


@dataclass
class _Record:
    """The largest value so far, and where it was found."""

    value: float = -math.inf
    witness_at: tuple[int, int, int | None, float, float, float | None] | None = None

    def offer(
        self, values: Floats, place: Callable[[int], tuple[int, int, int | None, float, float, float | None]]
    ) -> None:
        if not len(values):
            return
        best = int(np.argmax(values))
        if self.witness_at is None or values[best] > self.value:
            self.value, self.witness_at = float(values[best]), place(best)


@dataclass
class Worst:
    """The worst of many pairs by three measures: excess over the bound, loss, loss per distance."""

    law: Law
    claim: Claim
    pairs: int = 0
    excess: _Record = field(default_factory=_Record)
    loss: _Record = field(default_factory=_Record)
    slope: _Record = field(default_factory=_Record)

    def compare(self, left: Ids, right: Ids, P: Floats, Q: Floats) -> Floats:
        """Look at these pairs, with the probabilities of both sides (pairs, outputs), in both directions. Returns the
        larger loss of each pair."""
        claim = self.claim
        if claim.protected is not None:
            P, Q = P[..., claim.protected], Q[..., claim.protected]
        bounds = claim.bounds(left, right)
        distances = None if claim.distance is None else claim.distance.between(left, right)
        both = [self._direction(*side, bounds, distances) for side in ((left, right, P, Q), (right, left, Q, P))]
        self.pairs += len(left)
        return np.maximum(*both)

    def _direction(
        self, left: Ids, right: Ids, P: Floats, Q: Floats, bounds: Floats, distances: Floats | None
    ) -> Floats:
        claim = self.claim
        P, Q = np.broadcast_to(P, (len(left), P.shape[-1])), np.broadcast_to(Q, (len(left), Q.shape[-1]))
        ratios = log_ratios(P, Q)
        outputs = ratios.argmax(axis=1)
        if claim.delta:
            losses = np.array([smallest_epsilon(p, q, claim.delta) for p, q in zip(P, Q, strict=True)])
            sticks = hockey_stick(P, Q, bounds)
            excesses = np.where(np.isinf(bounds), -math.inf, sticks - claim.delta)
        else:
            losses = ratios[np.arange(len(left)), outputs]
            with np.errstate(invalid="ignore"):
                excesses = np.where(np.isinf(bounds), -math.inf, losses - bounds)
            sticks = None

        def place(i: int) -> tuple[int, int, int | None, float, float, float | None]:
            stick = None if sticks is None else float(sticks[i])
            return int(left[i]), int(right[i]), int(outputs[i]), float(losses[i]), float(bounds[i]), stick

        self.excess.offer(excesses, place)
        # Where nothing is claimed, the loss says nothing about the claim.
        claimed = np.where(np.isinf(bounds), -math.inf, losses)
        self.loss.offer(claimed, place)
        if distances is not None:
            self.slope.offer(slopes(claimed - claim.offset, distances), place)
        return losses

    def witness(self, record: _Record) -> Witness:
        if record.witness_at is None:
            raise BadInputError("too-few-inputs", "there is no pair of inputs to check: give at least two inputs")
        left, right, column, loss, bound, stick = record.witness_at
        claim = self.claim
        distance = None
        if claim.distance is not None:
            distance = float(claim.distance.between(np.array([left]), np.array([right]))[0])
        if column is not None and claim.protected is not None:
            column = int(np.flatnonzero(claim.protected)[column])
        output = None if column is None else str(self.law.outputs[column])
        inputs = self.law.inputs
        return Witness(str(inputs[left]), str(inputs[right]), output, loss, bound, distance, stick)


def slopes(losses: Floats, distances: Floats) -> Floats:
    """loss / distance; at distance 0 infinite if there is a loss beyond rounding, else nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.where(losses > 1e-5, losses / distances, np.where(distances > 0, losses / distances, -math.inf))
    return np.asarray(np.nan_to_num(result, nan=-math.inf, posinf=math.inf, neginf=-math.inf))


def check_pairs(
    law: Law,
    claim: Claim,
    pairs: Ids,
    *,
    scope: str | None = None,
    tolerance: float = TOLERANCE,
    progress: StepProgress | None = None,
) -> ExactResult:
    """Every output of every given pair (pairs, 2)."""
    pairs = np.asarray(pairs, dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise BadInputError("too-few-inputs", "give at least one pair of inputs to check")
    given, pairs = len(pairs), pairs[np.isfinite(claim.bounds(pairs[:, 0], pairs[:, 1]))]
    if not len(pairs):
        raise BadInputError(
            "no-claim-about-pairs", "nothing is claimed about any of these pairs: choose inputs of the same set"
        )
    scope = scope or f"{given:,} pairs"
    if len(pairs) < given:
        scope += f" ({len(pairs):,} of them, about which something is claimed)"
    worst = Worst(law, claim)
    step = max(1, BLOCK_CELLS // len(law.outputs) // 2)
    for start in range(0, len(pairs), step):
        block = pairs[start : start + step]
        rows, place = np.unique(block, return_inverse=True)
        known = law.rows(rows)
        place = place.reshape(block.shape)
        worst.compare(block[:, 0], block[:, 1], known[place[:, 0]], known[place[:, 1]])
        if progress is not None:
            progress(min(start + step, len(pairs)), len(pairs))
    return result_of(worst, scope, tolerance)


def check_all(
    law: Law,
    claim: Claim,
    ids: Ids | None = None,
    *,
    tolerance: float = TOLERANCE,
    progress: StepProgress | None = None,
) -> ExactResult:
    """All pairs of these inputs (default: all inputs) and all outputs."""
    ids = np.arange(len(law.inputs)) if ids is None else np.unique(np.asarray(ids, dtype=np.int64))
    if len(ids) < 2:
        raise BadInputError("too-few-inputs", "a privacy claim compares two inputs: give at least two")
    scope = f"all {len(ids) * (len(ids) - 1) // 2:,} pairs of {len(ids):,} inputs, all {len(law.outputs):,} outputs"
    if claim.sets is not None:
        scope = f"all pairs of {len(ids):,} inputs ({claim.among}), all {len(law.outputs):,} outputs"
    if not claim.is_metric and not claim.delta:
        return _check_columns(law, claim, ids, scope, tolerance, progress)
    if len(ids) * len(law.outputs) > MOST_CELLS:
        raise BadInputError(
            "too-many-pairs",
            "all pairs of {inputs:,} inputs over {outputs:,} outputs are too many: check fewer inputs, or the "
            "closest pairs ({option.words[closest:500]})",
            inputs=len(ids),
            outputs=len(law.outputs),
        )
    worst = Worst(law, claim)
    known = law.rows(ids)
    step = max(1, BLOCK_CELLS // len(law.outputs))
    for i in range(len(ids) - 1):
        for start in range(i + 1, len(ids), step):
            others = ids[start : start + step]
            worst.compare(np.full(len(others), ids[i]), others, known[i], known[start : start + step])
        if progress is not None:
            progress((i + 1) * (2 * len(ids) - i - 2), len(ids) * (len(ids) - 1))
    return result_of(worst, scope, tolerance, shared=shared_output(law, claim, ids, known))


def shared_output(law: Law, claim: Claim, ids: Ids, known: Floats) -> Witness | None:
    """An unprotected output that two inputs can give, though a utility-optimized claim allows one only."""
    if claim.protected is None:
        return None
    open_columns = np.flatnonzero(~claim.protected)
    shared = np.flatnonzero((known[:, open_columns] > 0).sum(axis=0) > 1)
    if not shared.size:
        return None
    column = int(open_columns[shared[0]])
    first, second = np.flatnonzero(known[:, column] > 0)[:2]
    loss = float(np.log(known[first, column] / known[second, column]))
    names = (str(law.inputs[ids[first]]), str(law.inputs[ids[second]]))
    return Witness(*names, str(law.outputs[column]), loss, 0.0)


def _check_columns(
    law: Law, claim: Claim, ids: Ids, scope: str, tolerance: float, progress: StepProgress | None
) -> ExactResult:
    """The largest over the smallest probability of each column: every pair at once."""
    worst = Worst(law, claim)
    groups: Iterator[Ids] = iter([ids])
    if claim.sets is not None:
        owners = claim.sets[ids]
        groups = (ids[owners == owner] for owner in np.unique(owners))
    done = 0
    for group in groups:
        highest, lowest, top, bottom = _extremes(law, group, progress if claim.sets is None else None)
        if len(group) > 1:
            losses = log_ratios(highest, lowest)
            bound = claim.epsilon + claim.slack

            def place(
                column: int, top: Ids = top, bottom: Ids = bottom, losses: Floats = losses, bound: float = bound
            ) -> tuple[int, int, int | None, float, float, float | None]:
                return int(top[column]), int(bottom[column]), column, float(losses[column]), bound, None

            worst.loss.offer(losses, place)
            worst.excess.offer(losses - bound, place)
            worst.pairs += len(group) * (len(group) - 1) // 2
        done += len(group)
        if progress is not None and claim.sets is not None:
            progress(done, len(ids))
    return result_of(worst, scope, tolerance)


def _extremes(law: Law, ids: Ids, progress: StepProgress | None) -> tuple[Floats, Floats, Ids, Ids]:
    """Largest and smallest probability of each column, and the inputs that have them."""
    width = len(law.outputs)
    highest, lowest = np.full(width, -math.inf), np.full(width, math.inf)
    top, bottom = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64)
    step = max(1, BLOCK_CELLS // width)
    for start in range(0, len(ids), step):
        block = ids[start : start + step]
        rows = law.rows(block)
        for pick, best, owner, better in (
            (rows.argmax(axis=0), highest, top, np.greater),
            (rows.argmin(axis=0), lowest, bottom, np.less),
        ):
            values = rows[pick, np.arange(width)]
            new = better(values, best)
            best[new], owner[new] = values[new], block[pick[new]]
        if progress is not None:
            progress(start + len(block), len(ids))
    return highest, lowest, top, bottom


def result_of(
    worst: Worst,
    scope: str,
    tolerance: float,
    *,
    excess_at_most: float = -math.inf,
    tightest_at_most: float = -math.inf,
    steepest_at_most: float = -math.inf,
    shared: Witness | None = None,
) -> ExactResult:
    """The result; upper ends for pairs that were bounded instead of computed."""
    steepest = None if worst.slope.witness_at is None else worst.slope.value
    tightest = max(0.0, worst.loss.value)
    return ExactResult(
        worst.claim,
        scope,
        worst.pairs,
        worst.witness(worst.excess),
        worst.excess.value,
        max(worst.excess.value, excess_at_most),
        worst.witness(worst.loss),
        tightest,
        max(tightest, tightest_at_most),
        steepest,
        None if steepest is None else max(steepest, steepest_at_most),
        shared,
        tolerance,
    )


# For the report -------------------------------------------------------------------------------------------------------


def exact_section(result: ExactResult, *, title: str = "Exact check") -> Section:
    """The result for people: one finding, and the worst pairs."""
    claim, w = result.claim, result.worst
    numbers: dict[str, object] = {
        "verdict": result.verdict.value,
        "pairs": result.pairs,
        "excess": result.excess,
        "excess_at_most": result.excess_at_most,
        "tightest_epsilon": result.tightest,
        "tightest_epsilon_at_most": result.tightest_at_most,
        "claimed_epsilon": claim.epsilon,
        "claimed_delta": claim.delta,
        "worst": {"left": w.left, "right": w.right, "output": w.output, "loss": w.loss, "bound": w.bound},
    }
    if result.steepest is not None:
        numbers |= {"tightest_metric": result.steepest, "tightest_metric_at_most": result.steepest_at_most}
    if w.delta is not None:
        numbers["smallest_delta"] = w.delta
    verdict = result.verdict
    light = {ClaimVerdict.REFUTED: Light.RED, ClaimVerdict.HOLDS: Light.GREEN, ClaimVerdict.OPEN: Light.AMBER}[verdict]
    finding = Finding(
        "Claim against the exact law",
        light,
        _sentence(result),
        f"An excess above {result.tolerance:g} refutes; below it, the claim is true for {result.scope}, and nothing is "
        "said about others.",
        refuted=verdict is ClaimVerdict.REFUTED,
        numbers=numbers,
    )
    rows = [("largest excess over the claim", result.excess, w), ("largest loss", result.tightest, result.largest)]
    if result.shared_output is not None:
        rows.append(("unprotected output of two inputs", result.shared_output.loss, result.shared_output))
    table = Table(
        "Worst cases",
        ["what", "value", "input x", "input x'", "output", "loss", "allowed", "distance"],
        [
            [what, AtMost(value), v.left, v.right, v.output, AtMost(v.loss), AtMost(v.bound), v.distance]
            for what, value, v in rows
        ],
        note="loss = ln(Pr[output | x] / Pr[output | x'])",
    )
    return Section(title, f"Checked: {result.scope}. Claim: {claim}.", [finding], [table])


def _sentence(result: ExactResult) -> str:
    w, claim = result.worst, result.claim
    if result.shared_output is not None:
        s = result.shared_output
        return f"Refuted: the unprotected output '{s.output}' comes from two inputs, '{s.left}' and '{s.right}'."
    if result.verdict is ClaimVerdict.REFUTED and w.delta is not None:
        return (
            f"Refuted: between '{w.left}' and '{w.right}' the smallest delta at the claimed epsilon is "
            f"{rounded_down(w.delta, 4)}, "
            f"and {rounded_up(claim.delta)} is claimed."
        )
    if result.verdict is ClaimVerdict.REFUTED:
        shown = rounded_down(w.loss)
        return (
            f"Refuted: the output '{w.output}' tells '{w.left}' from '{w.right}' with a loss that is {shown}, and "
            f"{rounded_up(w.bound)} is allowed."
        )
    if result.verdict is ClaimVerdict.OPEN:
        return (
            f"Open: no pair was found that breaks the claim, but for some the proven bound on the loss exceeds what is "
            f"allowed by up to {rounded_up(result.excess_at_most, 3)}."
        )
    parts = [f"The claim holds for {result.scope}. The tightest epsilon"]
    if claim.delta:
        parts[0] += f" at delta {rounded_up(claim.delta)}"
    parts[0] += f" is {_between(result.tightest, result.tightest_at_most)}"
    if result.steepest is not None and result.steepest_at_most is not None:
        parts.append(
            f"per unit of distance it is {_between(result.steepest, result.steepest_at_most)} of the claimed "
            f"{rounded_up(claim.epsilon)}"
        )
    return "; ".join(parts) + "."


def _between(low: float, high: float) -> str:
    """A value that lies between the two: one number, rounded up, where they hardly differ."""
    if high - low <= 1e-6 * max(1.0, abs(low)):
        return rounded_up(high)
    return f"between {rounded_down(low)} and {rounded_up(high)}"


def words_of(law: Law, names: Sequence[str]) -> Ids:
    """The numbers of these inputs."""
    place = {str(name): number for number, name in enumerate(law.inputs)}
    missing = [name for name in names if name not in place]
    if missing:
        raise BadInputError(
            "unknown-input",
            "there is no input '{name}': the inputs are {known}, …",
            name=missing[0],
            known=", ".join(list(place)[:5]),
        )
    return np.array([place[name] for name in names], dtype=np.int64)
