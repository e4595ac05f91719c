"""DP-SGD for users whose examples are sampled one by one: group privacy without the blow-up.

Each of T steps takes every example independently with probability q, clips its gradient to norm C, and adds noise
N(0, sigma^2 C^2) to the sum. A user has at most K examples. Adding or removing the user adds or removes all of them.

Claim. With J ~ Binomial(K, q), a step is dominated, for adding a user as for removing one, by the pair

    P = the law of J + sigma Z,        Q = the law of sigma Z,        Z ~ N(0, 1)

(Charles et al., "Fine-tuning large language models with user-level differential privacy", 2024; the privacy loss is
that of a mixture of Gaussians, Choquette-Choo et al. 2024). The general theorem of group privacy would give K epsilon
and a delta that grows like e^(K epsilon); this pair is what a user with K examples whose gradients all point the same
way really has, so nothing better can be said.

Proof. Given the coins of all other examples, and all earlier steps, the step releases m + N(0, sigma^2 C^2 I) without
the user and m + v_S + N(0, sigma^2 C^2 I) with the user, where S is the set of the user's examples that were drawn and
v_S the sum of their clipped gradients, |v_S| <= C |S|. A user with fewer than K examples has some whose gradient is 0.
Let C = 1. For a convex phi the divergence E phi(dP/dQ) under Q is

    E phi( sum over S of p_S M_S ),    M_S = exp(G_S - Var(G_S) / 2),    G_S = <v_S, Z> / sigma,

with G jointly Gaussian of mean 0 and Cov(G_S, G_T) = <v_S, v_T> / sigma^2 <= |S| |T| / sigma^2, the covariances of the
pair claimed above. Move linearly from the first covariances to the second. With S, T and all M, p not negative, the
derivative is (the terms with phi' cancel, because each M_S has mean 1 whatever its variance)

    1/2 sum over S, T of  (|S| |T| - <v_S, v_T>) / sigma^2  p_S p_T  E[ phi''(sum p M) M_S M_T ]  >=  0

so the divergence only grows (Kahane's inequality; hinges such as phi(x) = max(x - a, 0) are limits of smooth convex
functions). phi(x) = max(x - a, 0) is the hockey-stick divergence of P from Q, phi(x) = max(1 - a x, 0) that of Q from
P: both directions, for every a. Summed over S of equal size, p_S is the binomial law. Averaging over the coins of the
others only shrinks divergences (they are jointly convex), and dominating pairs compose (Zhu, Dong & Wang 2022).   QED

K = 1 is the accounting of DP-SGD for records, q = 1 that of a Gaussian step with reach K. Replacing a user is not
covered: the two users would have a mixture each.

Numbers. With l(x) = ln dP/dQ (x), which rises with x, the two hockey-stick divergences are

    delta(e) = P(X > x) - e^e Q(X > x)  where l(x) = e,      and      Q(X < x) - e^e P(X < x)  where l(x) = -e.

They are worked out at every point of a grid and joined to a privacy-loss distribution that is nowhere too small
("connect the dots", Doroshenko et al. 2022, dp-accounting), which the library composes. x comes from Newton's method to
all digits; as the divergence is largest at x, an error of 1e-12 in it changes the value by its square. (The class for
mixtures that the library has itself gives the same numbers, a hundred times slower, from an x that is rounded to 1e-6.)

Where delta is too small for privacy-loss distributions (`account.sgd.ROUNDING`), the Renyi bound of this pair is taken
(`account.group_renyi`), which loses no digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from tacit.account.group_renyi import epsilon_of_curve, mixture_curve
from tacit.account.sgd import (
    COARSE_INTERVAL,
    FINE_INTERVAL,
    ROUNDING,
    accounting_library,
    check_run,
    least_multiplier,
    renyi_multiplier,
    sgd_epsilon,
    sgd_noise_multiplier,
)
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency
from tacit.noise.gaussian import gaussian_epsilon, repeated_gaussian_multiplier
from tacit.noise.parameters import positive

LEAST_PROBABILITY = 2.0**-80
"""Numbers of drawn examples that are less likely count as the largest possible one, K: that is on the safe side."""
MOST_OF_A_USER = 1_000
TAIL = 2.0**-70
FAR = 9.6
"""Standard deviations that a normal number exceeds with a probability below `TAIL`."""
MOST_ROUNDS = 200
TABLE = 4_097
TOGETHER = 2**21
"""Numbers that are worked on together: points times numbers of drawn examples."""


def group_epsilon(
    *, sampling_rate: float, group: int, noise_multiplier: float, steps: int, delta: float, coarse: bool = False
) -> float:
    """Epsilon of a run for a user with at most `group` examples, never below the truth. `coarse` is faster and a little
    larger."""
    _check(sampling_rate, group, steps, delta)
    positive(noise_multiplier, "the noise multiplier")
    if group == 1:
        return sgd_epsilon(
            sampling_rate=sampling_rate, noise_multiplier=noise_multiplier, steps=steps, delta=delta, coarse=coarse
        )
    if sampling_rate == 1:
        return gaussian_epsilon(noise_multiplier / math.sqrt(steps), delta, float(group))
    interval = COARSE_INTERVAL if coarse else FINE_INTERVAL
    return _epsilon(sampling_rate, group, noise_multiplier, steps, delta, interval)


def group_noise_multiplier(
    *, epsilon: float, sampling_rate: float, group: int, steps: int, delta: float, tolerance: float = 1e-3
) -> float:
    """The smallest noise multiplier, relative to the bound of one example, with at most this epsilon for a user with at
    most `group` examples; rounded up within the relative `tolerance`."""
    _check(sampling_rate, group, steps, delta)
    positive(epsilon, "epsilon")
    if group == 1:
        return sgd_noise_multiplier(
            epsilon=epsilon, sampling_rate=sampling_rate, steps=steps, delta=delta, tolerance=tolerance
        )
    if sampling_rate == 1:
        return repeated_gaussian_multiplier(epsilon, delta, float(group), steps)
    return least_multiplier(
        lambda multiplier, interval: _epsilon(sampling_rate, group, multiplier, steps, delta, interval),
        epsilon,
        start=_start(epsilon, sampling_rate, group, steps, delta),
        tolerance=tolerance,
    )


def binomial_law(group: int, rate: float) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The numbers of drawn examples of a user with `group`, and their probabilities, never understated: what is too
    unlikely for double precision is added to the largest number, and that only makes the pair worse.

    >>> numbers, probabilities = binomial_law(2, 0.5)
    >>> numbers, [round(value, 9) for value in probabilities]
    ((0, 1, 2), [0.25, 0.5, 0.25])
    """
    from scipy.stats import binom

    values = [float(binom.pmf(drawn, group, rate)) for drawn in range(group + 1)]
    kept = {drawn: value for drawn, value in enumerate(values) if value >= LEAST_PROBABILITY}
    if group not in kept:
        kept[group] = (group + 1) * LEAST_PROBABILITY
    # Rounding makes them add up to 1 only nearly; what is missing is taken from, or given to, the larger part: a small
    # probability of no draw at all would be lost in the rounding of the others, or even turn negative.
    none = kept.pop(0, 0.0)
    rest = math.fsum(kept.values())
    if none > 0.5:
        return (0, *kept), (1.0 - rest, *kept.values())
    scaled = {drawn: value * ((1.0 - none) / rest) for drawn, value in kept.items()}
    return ((0, *scaled), (none, *scaled.values())) if none else (tuple(scaled), tuple(scaled.values()))


def _start(epsilon: float, rate: float, group: int, steps: int, delta: float) -> float:
    """A multiplier to begin the search at: that of one example at the rate at which any of the group is drawn, or that
    of the mean number of drawn ones."""
    any_drawn = -math.expm1(group * math.log1p(-rate))
    return renyi_multiplier(epsilon, any_drawn, steps, delta) * max(1.0, rate * group)


@lru_cache(maxsize=4096)
def _epsilon(rate: float, group: int, multiplier: float, steps: int, delta: float, interval: float) -> float:
    allowance = ROUNDING * max(steps, 16)
    if delta <= 2.0 * allowance:
        return epsilon_of_curve(_renyi_curve(rate, group, multiplier), steps, delta)
    step = losses_of_step(group, rate, multiplier, interval)
    return float(step.self_compose(steps).get_epsilon_for_delta(delta - allowance))


@lru_cache(maxsize=256)
def _renyi_curve(rate: float, group: int, multiplier: float) -> dict[float, float]:
    pair = MixturePair.binomial(group, rate, multiplier)
    return mixture_curve(pair.drawn, pair.probabilities, multiplier)


def losses_of_step(group: int, rate: float, multiplier: float, interval: float) -> Any:
    """The privacy-loss distribution of one step, for adding and for removing a user, as the library composes it."""
    pld = accounting_library().pld
    pair = MixturePair.binomial(group, rate, multiplier)
    joined = []
    for deltas_at, (low, high) in ((pair.removing, pair.range), (pair.adding, pair.range_of_adding)):
        first, last = math.floor(low / interval), math.ceil(high / interval)
        epsilons = interval * np.arange(first, last + 1, dtype=np.float64)
        pieces = np.array_split(epsilons, 1 + len(epsilons) * len(pair.drawn) // TOGETHER)
        deltas = np.clip(np.concatenate([deltas_at(piece) for piece in pieces]), 0.0, 1.0)
        # The last digits may rise; a divergence that is too large is on the safe side.
        falling = np.maximum.accumulate(deltas[::-1])[::-1]
        joined.append(pld.pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, first, last, falling))
    return pld.privacy_loss_distribution.PrivacyLossDistribution(*joined)


@dataclass(frozen=True)
class MixturePair:
    """The laws P of J + sigma Z and Q of sigma Z, where J is `drawn` with these probabilities."""

    drawn: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    sigma: float

    @classmethod
    def binomial(cls, group: int, rate: float, sigma: float) -> MixturePair:
        drawn, probabilities = binomial_law(group, rate)
        return cls(np.array(drawn, dtype=np.float64), np.array(probabilities), sigma)

    def loss(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """ln dP/dQ at these points."""
        return self._loss_and_slope(x)[0]

    def removing(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """The hockey-stick divergence of P from Q, for each epsilon."""
        x = self.place_of(epsilons)
        deltas: NDArray[np.float64] = self.above(x) - np.exp(epsilons) * ndtr(-x / self.sigma)
        return deltas

    def adding(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """The hockey-stick divergence of Q from P, for each epsilon."""
        x = self.place_of(-epsilons)
        # e^e P(X < x) is at most Q(X < x), so it does not overflow; where x is at minus infinity both are 0.
        deltas: NDArray[np.float64] = ndtr(x / self.sigma) - np.exp(epsilons + self._log_below(x))
        return deltas

    def above(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(X > x)."""
        total: NDArray[np.float64] = ndtr((self.drawn - x[:, None]) / self.sigma) @ self.probabilities
        return total

    def _log_below(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        logs = log_ndtr((x[:, None] - self.drawn) / self.sigma) + np.log(self.probabilities)
        largest = np.maximum(logs.max(axis=1, keepdims=True), -1e300)
        # At minus infinity nothing is below: the sum is 0, and so is what the result says, exp(-1e300).
        total: NDArray[np.float64] = np.log(np.maximum(np.exp(logs - largest).sum(axis=1), 1e-300)) + largest[:, 0]
        return total

    @property
    def range(self) -> tuple[float, float]:
        """Privacy losses of removing a user; what lies outside has a probability below `TAIL`."""
        return self._losses(-FAR * self.sigma, self._far())

    @property
    def range_of_adding(self) -> tuple[float, float]:
        """Privacy losses of adding a user; what lies outside has a probability below `TAIL`."""
        low, high = self._losses(-FAR * self.sigma, FAR * self.sigma)
        return -high, -low

    def _losses(self, low: float, high: float) -> tuple[float, float]:
        first, last = self.loss(np.array([low, high])).tolist()
        return first, last

    def _far(self) -> float:
        """A point that P exceeds with a probability below `TAIL`."""
        low, high = 0.0, float(self.drawn.max()) + FAR * self.sigma
        while high - low > 0.01 * self.sigma:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.above(np.array([middle]))[0] < TAIL else (middle, high)
        return high

    def place_of(self, losses: NDArray[np.float64]) -> NDArray[np.float64]:
        """The points with these privacy losses; minus infinity for losses that no point has."""
        least = math.log(self.probabilities[0]) if self.drawn[0] == 0.0 else -math.inf
        places = np.full_like(losses, -math.inf)
        possible = losses > least
        if not possible.any():
            return places
        aim = losses[possible]
        low, high = -FAR * self.sigma, FAR * self.sigma
        while self.loss(np.array([high]))[0] < aim.max():
            high *= 2.0
        while self.loss(np.array([low]))[0] > aim.min() and low > -1e9 * self.sigma:
            low *= 2.0
        # Near enough by a table; from there Newton's method, which converges from anywhere, as the loss is convex.
        table = np.linspace(low, high, TABLE)
        x = np.interp(aim, self.loss(table), table)
        for _ in range(MOST_ROUNDS):
            value, slope = self._loss_and_slope(x)
            step = (value - aim) / np.maximum(slope, 1e-300)
            x = x - step
            if np.all(np.abs(step) <= 1e-12 * (self.sigma + np.abs(x))):
                break
        places[possible] = x
        return places

    def _loss_and_slope(self, x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        exponents = self._exponents(x)
        largest = exponents.max(axis=1, keepdims=True)
        parts = np.exp(exponents - largest)
        total = parts.sum(axis=1)
        return np.log(total) + largest[:, 0], parts @ self.drawn / total / self.sigma**2

    def _exponents(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        exponents: NDArray[np.float64] = (
            np.log(self.probabilities) + (self.drawn * x[:, None] - self.drawn**2 / 2.0) / self.sigma**2
        )
        return exponents


def _check(rate: float, group: int, steps: int, delta: float) -> None:
    check_run(rate, steps, delta, None, Adjacency.ADD_REMOVE)
    if not 1 <= group <= MOST_OF_A_USER:
        raise BadParameterError(
            "impossible-group-size",
            "of each user between 1 and {most:,} rows can count, not {group:,}",
            most=MOST_OF_A_USER,
            group=group,
        )
