"""Shuffled local releases: the promise of a file whose rows stand in a secret, uniformly random order.

n records are released by the same local mechanism, each with noise of its own, and then shuffled. Whoever sees the
shuffled rows (and knows n) does not know which row is whose, so for the data set as a whole a smaller epsilon holds,
with a delta: (epsilon, delta)-differential privacy in the central model, between data sets of n records that differ by
replacing one record. The local promise holds as well, whoever sees the order.

**The two-weight law** (`TwoWeights`; `tacit.documents.staircase`): an input has exactly s near outcomes of K, a near
one has probability a = t / Z, any other b = w / Z. Its bound is the privacy blanket (Balle, Bell, Gascón & Nissim,
CRYPTO 2019), computed exactly:

Write every law as  r = g U + (1 - g) V  with U uniform over all K outcomes, g = K b the same for all inputs, V uniform
over the near outcomes. Tell the observer which of the other n - 1 records drew from V, and what: that can only help.
What is left is the outcome of the record in question among M uniform ones, M ~ Bin(n - 1, g). For N = M + 1 outcomes in
random order the density of r_0 relative to U^N is (K / N) sum_j r_0(o_j), so the hockey-stick divergence is

    delta_N = (K / N) E[ (sum_j h(o_j))_+ ],    h = r_0 - e^epsilon r_1,    o_1 .. o_N independent and uniform.

*The worst pair of inputs has near sets as disjoint as they can be.* Let the near sets N_0, N_1 share s - m outcomes.
On the m outcomes of N_0 alone h is a - e^eps b, on the m of N_1 alone b - e^eps a, on the shared ones a (1 - e^eps),
on the rest b (1 - e^eps). Going from m to m + 1 takes one outcome from the shared ones and one from the rest, and puts
one into each of the other two. Their two values of h have the same sum as before, (a + b)(1 - e^eps), and lie outside
of the old ones: b - e^eps a <= a (1 - e^eps), b (1 - e^eps) <= a - e^eps b, because b <= a. So h(o) becomes larger in
the convex order, sums of independent copies too, and with them E[(...)_+], which is convex. The largest m is min(s, K
- s).

**Any mechanism with a pure local epsilon_0** has the bound of Feldman, McMillan & Talwar (FOCS 2021, theorem 3.2):
with Q_0, Q_1 such that R_0 = (e Q_0 + Q_1) / (e + 1) and R_1 = (Q_0 + e Q_1) / (e + 1), e = e^epsilon_0 (they exist),
every other law is at least e^-epsilon_0 (R_0 + R_1) / 2 = e^-epsilon_0 (Q_0 + Q_1) / 2. So with probability
e^-epsilon_0 another record is drawn evenly from Q_0 and Q_1, and the rest is as above with two outcomes, K = 2, s = 1.

delta_N falls with N, since one more uniform outcome can be added without looking. So values of M are put together in
groups, each counted with its smallest M. Sums over binomial laws are cut where almost nothing is left, which is added
at its largest, and the rounding of the binomial functions is covered by a relative 1e-9. All of it errs on the safe
side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from tacit.account.delta import check_records
from tacit.arrays import Floats
from tacit.errors import BadParameterError
from tacit.noise.parameters import positive, proper_delta

GROUPS: Final = 48
"""Groups of the number of uniform outcomes."""
DEVIATIONS: Final = 12.0
"""How far a binomial sum reaches on either side, in standard deviations."""
RELATIVE_ERROR: Final = 1e-9
PRECISION: Final = 1e-3
"""The relative distance at which the search for epsilon stops, above the solution."""


@dataclass(frozen=True)
class TwoWeights:
    """The law of a choice among `outcomes`, of which `near` have the whole-number weight t and the others w <= t."""

    near: int
    outcomes: int
    t: int
    w: int

    def __post_init__(self) -> None:
        if not (1 <= self.near < self.outcomes and 1 <= self.w <= self.t):
            raise BadParameterError("impossible-law", "a law of two weights has 1 <= near < outcomes and 1 <= w <= t")

    @property
    def total(self) -> int:
        return self.near * self.t + (self.outcomes - self.near) * self.w


@dataclass(frozen=True)
class _Hiding:
    """One outcome of a law among uniform ones.

    high, low   K times the two probabilities
    share       of the outcomes that only one of the two inputs has near: m / K for each of them
    base        K times the probability of an outcome that both inputs have alike
    blanket     with which probability another record is a uniform outcome
    """

    high: float
    low: float
    share: float
    base: float
    blanket: float


def _hiding_of(law: TwoWeights) -> _Hiding:
    scale = law.outcomes / law.total
    apart = min(law.near, law.outcomes - law.near)
    base = law.w if 2 * law.near <= law.outcomes else law.t
    return _Hiding(law.t * scale, law.w * scale, apart / law.outcomes, base * scale, law.w * scale)


def _hiding_of_pure(epsilon: float) -> _Hiding:
    odds = math.exp(min(epsilon, 700.0))
    return _Hiding(2 * odds / (odds + 1), 2 / (odds + 1), 0.5, 0.0, math.exp(-epsilon) * (1 - 1e-12))


def blanket_delta(law: TwoWeights, rows: int, epsilon: float) -> float:
    """An upper bound on delta at this epsilon for `rows` shuffled releases of the two-weight law."""
    return _delta(_hiding_of(law), rows, epsilon)


def blanket_epsilon(law: TwoWeights, rows: int, delta: float) -> float:
    """An upper bound on epsilon at this delta for `rows` shuffled releases of the two-weight law."""
    return _epsilon(_hiding_of(law), rows, delta, math.log(law.t / law.w) * (1 + 1e-12))


def clones_delta(local_epsilon: float, rows: int, epsilon: float) -> float:
    """An upper bound on delta for `rows` shuffled releases of any mechanism with this pure local epsilon."""
    return _delta(_hiding_of_pure(positive(local_epsilon, "epsilon")), rows, epsilon)


def clones_epsilon(local_epsilon: float, rows: int, delta: float) -> float:
    """An upper bound on epsilon for `rows` shuffled releases of any mechanism with this pure local epsilon."""
    return _epsilon(_hiding_of_pure(positive(local_epsilon, "epsilon")), rows, delta, local_epsilon)


# The bound ----------------------------------------------------------------------------------------------------------


def _epsilon(law: _Hiding, rows: int, delta: float, local: float) -> float:
    """The end of a bisection at which delta holds; the local epsilon where nothing less does."""
    proper_delta(delta)
    low, high = 0.0, local
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        if _delta(law, rows, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _delta(law: _Hiding, rows: int, epsilon: float) -> float:
    check_records(rows)
    from scipy.stats import binom

    starts = _group_starts(rows - 1, law.blanket)
    below = np.append(binom.cdf(starts - 1, rows - 1, law.blanket), 1.0)
    # Fewer uniform outcomes than in the first group: counted as if none was left to hide among, as all can be lost.
    total = float(below[0])
    for start, chance in zip(starts.tolist(), np.diff(below).tolist(), strict=True):
        if chance > 0:
            total += chance * (1 + RELATIVE_ERROR) * _delta_among(law, start + 1, epsilon)
    return min(1.0, total * (1 + RELATIVE_ERROR))


def _group_starts(count: int, chance: float) -> Floats:
    """The smallest numbers of groups that cover a binomial law but for a tiny rest at its lower end."""
    low, high = _range(count, chance)
    if high - low < GROUPS:
        return np.arange(low, high + 1, dtype=np.float64)
    return np.unique(np.floor(np.linspace(low, high, GROUPS)))


def _range(count: int, chance: float) -> tuple[int, int]:
    mean, deviation = count * chance, math.sqrt(count * chance * (1 - chance))
    reach = DEVIATIONS * deviation + DEVIATIONS
    return max(0, math.floor(mean - reach)), min(count, math.ceil(mean + reach))


def _delta_among(law: _Hiding, count: float, epsilon: float) -> float:
    """delta_N for N = count, the outcome in question included.

    With n_0 and n_1 outcomes that only one of the inputs has near, T = n_0 + n_1, the sum of h is (in units of 1 / K)

        n_0 (u_0 + u_1) - T u_1 - N base (e^eps - 1),   u_0 = high - e^eps low - base (1 - e^eps),
                                                        u_1 = base (1 - e^eps) - low + e^eps high

    T ~ Bin(N, 2 share), n_0 given T ~ Bin(T, 1/2), and  E[n_0; n_0 >= c] = T/2 Pr[Bin(T - 1, 1/2) >= c - 1].
    """
    from scipy.stats import binom

    growth = math.exp(epsilon)
    shared = law.base * (1 - growth)
    up, down = law.high - growth * law.low - shared, shared - law.low + growth * law.high
    if up <= 0:
        return 0.0
    apart, chances, rest = _numbers_apart(count, 2 * law.share)
    needed = apart * down - shared * count
    least = np.floor(needed / (up + down)) + 1
    gained = (up + down) * apart / 2 * binom.sf(least - 2, np.maximum(apart - 1, 0), 0.5)
    lost = needed * binom.sf(least - 1, apart, 0.5)
    gained[apart == 0] = 0.0
    positive_parts = np.maximum(gained - lost, 0.0) + RELATIVE_ERROR * (gained + np.abs(lost))
    return float((chances * positive_parts).sum() / count + rest * law.high)


def _numbers_apart(count: float, chance: float) -> tuple[Floats, Floats, float]:
    """Values of T with their probabilities, and the probability of all others."""
    from scipy.stats import binom

    if chance >= 1.0:
        return np.array([count]), np.ones(1), 0.0
    low, high = _range(int(count), chance)
    values = np.arange(low, high + 1, dtype=np.float64)
    rest = float(binom.cdf(low - 1, count, chance) + binom.sf(high, count, chance))
    return values, np.asarray(binom.pmf(values, count, chance)), rest
