"""Renyi differential privacy of steps that sample the examples of users: a bound that holds at every delta.

The pair of `account.groups`, P = the law of J + sigma Z and Q = that of sigma Z, dominates a step: for adding a user
and for removing one, every hockey-stick divergence of the step is at most that of the pair. A Renyi divergence of order
a > 1 is an increasing function of E_Q phi(dP/dQ) for a convex phi, which is a sum of hockey-stick divergences of both
directions with weights that are not negative; so it is at most that of the pair too. T steps have T times as much, and
epsilon follows as for records (`account.renyi`).

Floats. With r = dP/dQ, which rises with x, and E_Q r = 1,

    removing    exp((a - 1) D_a(P || Q)) = E_Q r^a         = 1 + E_Q psi(r),    psi(r) = r^a - 1 - a (r - 1)
    adding      exp((a - 1) D_a(Q || P)) = E_Q r^(1 - a)   = 1 + E_Q psi(r),    psi(r) = r^(1-a) - 1 + (a - 1)(r - 1)

Both psi are convex in r with the minimum 0 at r = 1. So between two points psi is at most the larger of its values
there, and the sum over the pieces of a grid of that times the probability of the piece is never below the truth; above
it by about the width of a piece, in proportion. Nothing of size 1 is taken from anything of size 1, because r - 1 is a
sum of exact small numbers. Outside of the grid, with K the most examples, j the least number that is drawn with any
probability, and l = ln r, which is convex with a slope of at most K / sigma^2:

    left     removing: psi <= a - 1                       adding: psi <= r^(1-a), where r is at least its term of j
    right    removing: psi <= r^a, l below its steepest   adding: psi <= (a - 1) r, so at most (a - 1) P(beyond)

all of which are integrals of e^linear under a normal law. (The grid ends at or above K, where r is at least 1 whatever
was drawn, and begins below 0, where it is at most 1.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, logsumexp

from tacit.account.renyi import epsilon_of_order
from tacit.arrays import Floats

ORDERS = (
    1.1,
    1.25,
    1.5,
    1.75,
    *map(float, range(2, 33)),
    36.0,
    40.0,
    48.0,
    56.0,
    64.0,
    80.0,
    96.0,
    128.0,
    192.0,
    256.0,
)
PIECES = 128
"""Of one standard deviation."""
MOST_PIECES = 2**16
TOGETHER = 2**20
"""Floats that are worked on together: points times numbers of drawn examples."""
FAR = 14.0
FARTHEST = 400.0
"""Standard deviations: what lies beyond has a bound of its own, which is only less tight."""
ROUNDING = 1e-14
"""How far psi may be off, relative to a times the sizes of all parts of r - 1; double precision has a hundred times as
many digits."""
LARGE = 30.0
"""Logarithms above which the largest part of psi is more than the whole."""
MARGIN = 1e-9
"""Of the whole: log-probabilities of pieces, and their sum, have more digits than that."""


@dataclass(frozen=True)
class RatioGrid:
    """r - 1 and ln r at the points x of a grid, and the log-probability under Q of each piece between two of them.

    drawn, logs   the numbers of drawn examples, with the logarithms of their probabilities
    sizes         the sums of the absolute values of the parts of r - 1
    """

    sigma: float
    drawn: Floats
    logs: Floats
    x: Floats
    excess: Floats
    sizes: Floats
    losses: Floats
    pieces: Floats

    @classmethod
    def of(cls, drawn: Floats, probabilities: Floats, sigma: float) -> RatioGrid:
        """The grid for the law of so many drawn examples."""
        logs = np.log(probabilities)
        low, high = _ends(drawn, logs, sigma)
        # Where many of a user are drawn, r grows by e^(K / sigma) within a standard deviation.
        width = min(sigma, 4.0 * sigma**2 / float(drawn[-1])) / PIECES
        count = min(MOST_PIECES, math.ceil((high - low) / width))
        x = np.linspace(low, high, count + 1)
        parts = [_ratios(part, drawn, logs, sigma) for part in np.array_split(x, 1 + len(x) * len(drawn) // TOGETHER)]
        excess, sizes, losses = (np.concatenate([part[i] for part in parts]) for i in range(3))
        return cls(sigma, drawn, logs, x, excess, sizes, losses, _log_probabilities(x / sigma))

    def divergence(self, order: float) -> float:
        """The larger of the divergences of this order of adding a user and of removing one, never below the truth."""
        largest = max(self._moment(self._removing(order), order), self._moment(self._adding(order), order))
        return largest / (order - 1.0)

    def _moment(self, parts: list[float], order: float) -> float:
        """ln(1 + the sum of these logarithms of numbers)."""
        return float(np.logaddexp(0.0, logsumexp(parts) + MARGIN))

    def _removing(self, order: float) -> list[float]:
        steepest = self.drawn[-1] / self.sigma**2
        at_end = order * (self.losses[-1] - steepest * self.x[-1])
        beyond = at_end + _log_tail(order * steepest, -self.x[-1], self.sigma)
        below = math.log(order - 1.0) + _log_tail(0.0, self.x[0], self.sigma)
        return [self._within(order, order), beyond, below]

    def _adding(self, order: float) -> list[float]:
        power = order - 1.0
        least = self.drawn[0] / self.sigma**2
        at_zero = -power * (self.logs[0] - self.drawn[0] * least / 2.0)
        below = at_zero + _log_tail(power * least, self.x[0], self.sigma)
        above = logsumexp(self.logs + log_ndtr((self.drawn - self.x[-1]) / self.sigma))
        return [self._within(-power, order), below, math.log(power) + float(above)]

    def _within(self, power: float, order: float) -> float:
        """The logarithm of the bound on E_Q psi inside of the grid, psi(r) = r^power - 1 - power (r - 1)."""
        exponents = power * self.losses
        values = np.expm1(np.minimum(exponents, LARGE)) - power * self.excess
        logs = np.log(np.maximum(values, 0.0) + ROUNDING * order * self.sizes + 1e-300)
        logs = np.where(exponents > LARGE, exponents, logs)
        if power < 0.0:
            logs = np.where(self.losses > LARGE, math.log(-power) + self.losses, logs)
        return float(logsumexp(self.pieces + np.maximum(logs[:-1], logs[1:])))


def mixture_curve(drawn: Floats, probabilities: Floats, sigma: float) -> dict[float, float]:
    """The Renyi divergence of one step, by order."""
    grid = RatioGrid.of(drawn, probabilities, sigma)
    return {order: grid.divergence(order) for order in ORDERS}


def epsilon_of_curve(curve: Mapping[float, float], steps: int, delta: float) -> float:
    """The epsilon of so many steps that have this curve each."""
    return max(0.0, min(epsilon_of_order(steps * spent, order, delta) for order, spent in curve.items()))


def _ends(drawn: Floats, logs: Floats, sigma: float) -> tuple[float, float]:
    """Where the grid begins and ends: between there, all that matters for the orders that are tried."""
    rare = min(FARTHEST, FAR + math.sqrt(2.0 * ORDERS[-1] * -float(logs[0])))
    # Where the largest number of drawn examples has taken over, l is a line, and the bound beyond is the truth.
    crossings = (drawn[1:] + drawn[:-1]) / 2.0 + sigma**2 * (logs[:-1] - logs[1:]) / np.diff(drawn)
    taken_over = float(crossings.max()) + 40.0 * sigma**2 if len(crossings) else float(drawn[-1])
    farthest = ORDERS[-1] * float(drawn[-1]) + FAR * sigma
    high = min(max(taken_over, FAR * sigma), farthest, FARTHEST * sigma)
    return -rare * sigma, max(high, float(drawn[-1]))


def _ratios(x: Floats, drawn: Floats, logs: Floats, sigma: float) -> tuple[Floats, Floats, Floats]:
    """r - 1, the sum of the absolute values of its parts, and ln r at these points."""
    exponents = (drawn * x[:, None] - drawn**2 / 2.0) / sigma**2
    terms = exponents + logs
    largest = terms.max(axis=1)
    losses = np.log(np.exp(terms - largest[:, None]).sum(axis=1)) + largest
    # Probabilities add up to 1, so r - 1 is the mean of what each number of drawn examples adds.
    changes, probabilities = np.expm1(np.minimum(exponents, 600.0)), np.exp(logs)
    excess, sizes = changes @ probabilities, np.abs(changes) @ probabilities
    # Where r is near 1 its logarithm has the digits of r - 1.
    return excess, sizes, np.where(np.abs(excess) < 0.5, np.log1p(np.maximum(excess, -0.9)), losses)


def _log_probabilities(standard: Floats) -> Floats:
    """The logarithm of the probability of each piece between neighboring points of the standard normal law."""
    above = standard[1:] > 0.0
    larger = log_ndtr(np.where(above, -standard[:-1], standard[1:]))
    smaller = log_ndtr(np.where(above, -standard[1:], standard[:-1]))
    logs: Floats = larger + np.log(-np.expm1(smaller - larger))
    return logs


def _log_tail(slope: float, end: float, sigma: float) -> float:
    """ln of the integral of exp(slope |x|) under N(0, sigma^2) on the far side of `end`: over x < end for slopes that
    fall with x, and mirrored over x > -end for those that rise."""
    return float((slope * sigma) ** 2 / 2.0 + log_ndtr((end + slope * sigma**2) / sigma))
