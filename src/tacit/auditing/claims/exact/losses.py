"""Losses of pairs of inputs, and the worst of many."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.auditing.claims.claim import Claim
from tacit.auditing.claims.exact.result import ExactResult, Witness
from tacit.auditing.claims.laws import Law
from tacit.errors import BadInputError


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
