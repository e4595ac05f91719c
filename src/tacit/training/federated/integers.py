"""Federated rounds in whole numbers: updates that a secure sum could add, with Skellam noise (Agarwal et al. 2021).

A client turns its update x, clipped to length C, into whole numbers:

    1. y = H D x / sqrt(d):   public random signs D and a Hadamard matrix H of size d, a power of two, spread x evenly;
    2. z = the numbers s y, each rounded up or down at random without bias, drawn again until |z| <= D2;
    3. z modulo 2^b is sent, with the client's share of the noise.

The server adds up modulo 2^b, which is the sum itself while it stays below 2^(b-1), and undoes 1. Everything private
enters the sum through z, whose length is checked in exact integer arithmetic: however floating point rounded before,
one client moves the sum by at most D2, and by at most D2^2 in absolute values. Reduction modulo 2^b, and what a sum
that wraps around does to the model, are post-processing; the scale s is chosen so that wrapping is rare.

    D2^2 = min( (s C + sqrt(d))^2,  s^2 C^2 + d / 4 + sqrt(2 ln(1 / beta)) (s C + sqrt(d) / 2) )

is kept by a rounding with probability at least 1 - beta (Kairouz, Liu & Steinke, "The distributed discrete Gaussian
mechanism for federated learning with secure aggregation", ICML 2021).

Accounting (`SkellamPlan`). A user is visited at most V times (`visits`), and each visit is a Skellam mechanism of Renyi
divergence R(a) <= a / (2 m^2) + (2 a + 5) / (4 m^2 mu) at every order a >= 2, m = sqrt(mu) / D2; V of them add up, and
the best order gives epsilon. No amplification by sampling is claimed: none is proven for this bound here.

Noise is planned for the smallest cohort K: each client adds variance mu / K, so if at least K of those asked answer,
the sum has at least mu. The simulation draws the noise of exactly K shares, whoever is there: were it to grow with the
cohort, its size would tell how many came.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tacit.account.delta import automatic_delta
from tacit.account.renyi import ORDERS, epsilon_of_order
from tacit.arrays import Floats, Integers
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency
from tacit.noise.skellam import skellam, skellam_divergence
from tacit.noise.source import Source, public_generator
from tacit.training.federated.visits import VisitPlan
from tacit.training.plan import MOST_NOISE, SECRET_KEY, steps_of

LEAST_VARIANCE = 2.0**16
"""Of the noise, in squared steps: from here on it is nearly as good as normal noise."""
USUAL_BITS = 32
ROUNDING_FAILS = 1e-3
"""beta: how often a rounding is drawn again, at most."""
MOST_ROUNDINGS = 100
WRAPS = 1e-9
"""The largest probability that any number of a round's sum wraps around, for updates that all point the same way."""
SIMULATED = "the secure sum is simulated: the server of this run sees single updates before they are added"
SHARES = "at least as many users as planned answer in each round, and add their share of the noise"
POISSON = "the Skellam noise is drawn by a Poisson sampler in double precision"


# Accounting -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SkellamPlan(VisitPlan):
    """Users in a fixed order, Skellam noise: `multiplier` is m, the deviation of the noise relative to D2."""

    bits: int = USUAL_BITS
    fewest: int | None = None

    @classmethod
    def planned(
        cls,
        *,
        epsilon: float,
        users: int,
        cohort: int,
        epochs: float,
        delta: float | None = None,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        releases: int = 1,
        bits: int = USUAL_BITS,
        fewest: int | None = None,
    ) -> SkellamPlan:
        """The plan with the least noise that stays within epsilon."""
        chosen = automatic_delta(users, releases) if delta is None else delta
        draft = cls(users, cohort, steps_of(epochs, users, cohort), 1.0, chosen, adjacency, bits=bits, fewest=fewest)
        low, high = 1e-3, 2.0 * MOST_NOISE
        for _ in range(80):
            middle = math.sqrt(low * high)
            enough = replace(draft, multiplier=middle).epsilon() <= epsilon
            low, high = (low, middle) if enough else (middle, high)
        if high > MOST_NOISE:
            raise BadParameterError(
                "noise-drowns-learning",
                "epsilon {epsilon:g} needs noise of {multiplier:.3g} times the clipping bound, in which nothing can "
                "be learned: raise epsilon, train for fewer epochs, or gather more users",
                epsilon=epsilon, multiplier=high,
            )  # fmt: skip
        return replace(draft, multiplier=high)

    def epsilon(self, steps: int | None = None) -> float:
        done = self.steps if steps is None else steps
        if not self.private:
            return math.inf
        if not done:
            return 0.0
        moved = 2.0 if self.adjacency is Adjacency.REPLACE_ONE else 1.0
        return skellam_epsilon(self.multiplier / moved, math.ceil(done / self.separation), self.delta)

    @property
    def smallest_cohort(self) -> int:
        """K: as given, or half of the planned cohort, for those that drop out."""
        return max(1, self.batch // 2) if self.fewest is None else self.fewest

    @property
    def _noise_assumptions(self) -> tuple[str, ...]:
        return (POISSON, SHARES, SIMULATED, SECRET_KEY)

    def _noise_parameters(self, steps: int) -> dict[str, object]:
        return {
            "noise": f"Skellam (whole numbers), deviation {self.multiplier:.4g} times the longest update",
            "sums": f"modulo 2^{self.bits}",
            "shares of noise": f"planned for {self.smallest_cohort:,} users of a round, of a cohort of {self.batch:,}",
            "visits": f"at most {math.ceil(steps / self.separation)} of one {self.unit.value}, {self.separation} "
            "rounds apart; no amplification by sampling",
            "rounds": steps,
        }


@lru_cache(maxsize=4096)
def skellam_epsilon(multiplier: float, visits: int, delta: float) -> float:
    """Epsilon of so many visits, whatever the dimension, for noise of at least `LEAST_VARIANCE`."""
    longest = math.sqrt(LEAST_VARIANCE) / multiplier
    losses = (visits * skellam_divergence(order, LEAST_VARIANCE, longest) for order in ORDERS)
    return max(0.0, min(epsilon_of_order(loss, order, delta) for loss, order in zip(losses, ORDERS, strict=True)))


# Updates as whole numbers ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IntegerCode:
    """How updates of `size` numbers and length `bound` at most become whole numbers, and sums become updates.

    scale   s, a power of two
    bits    sums are taken modulo 2**bits
    """

    size: int
    bound: float
    scale: float
    bits: int = USUAL_BITS

    @classmethod
    def fitting(cls, size: int, bound: float, multiplier: float, cohort: int, bits: int = USUAL_BITS) -> IntegerCode:
        """The code with the finest scale at which sums of a cohort do not wrap around, up to rounding that no longer
        matters (s C = 64 sqrt(d)); refused if the noise is then too coarse."""
        finest = 64.0 * math.sqrt(_power_above(size)) / bound
        scale = 2.0 ** math.ceil(math.log2(max(finest, 2.0 * math.sqrt(LEAST_VARIANCE) / (multiplier * bound))))
        made = cls(size, bound, scale, bits)
        while made.wrap_probability(multiplier, cohort) > WRAPS:
            made = replace(made, scale=made.scale / 2.0)
            if made.variance(multiplier) < LEAST_VARIANCE:
                raise BadParameterError(
                    "too-few-bits",
                    "sums of {cohort:,} updates do not fit into {bits} bits: give more bits, or a smaller cohort",
                    cohort=cohort, bits=bits,
                )  # fmt: skip
        return made

    @property
    def dimension(self) -> int:
        """d: the size, filled up to a power of two."""
        return _power_above(self.size)

    @property
    def longest_square(self) -> int:
        """The whole number below D2^2."""
        reach, d = self.scale * self.bound, self.dimension
        usual = reach**2 + d / 4 + math.sqrt(2 * math.log(1 / ROUNDING_FAILS)) * (reach + math.sqrt(d) / 2)
        return math.floor(min((reach + math.sqrt(d)) ** 2, usual))

    def variance(self, multiplier: float) -> float:
        """mu of the noise: (m D2)^2, rounded up."""
        return math.nextafter(multiplier**2 * self.longest_square, math.inf)

    def wrap_probability(self, multiplier: float, cohort: int) -> float:
        """A bound on the chance that a number of the sum leaves the range, over the public signs, rounding and noise.

        After the rotation a number of the sum is sub-Gaussian with variance at most (K s C)^2 / d for K updates that
        all point the same way; rounding adds K / 4 and the noise about mu.
        """
        spread = (cohort * self.scale * self.bound) ** 2 / self.dimension + cohort / 4 + 1.1 * self.variance(multiplier)
        return min(1.0, 2.0 * self.dimension * math.exp(-(2.0 ** (2 * self.bits - 2)) / (2.0 * spread)))

    def encode(self, update: Floats, step: int, source: Source) -> Integers:
        """The whole numbers of an update, at most D2 long whatever the update is.

        A vector that is longer than the bound, or not finite, is not the business of this function to repair: after
        `MOST_ROUNDINGS` it counts as no update.
        """
        turned = self._turned(update, step) * self.scale
        if np.isfinite(turned).all() and np.abs(turned).max(initial=0.0) < 2.0**30:
            whole = np.floor(turned)
            rest = turned - whole
            for _ in range(MOST_ROUNDINGS):
                rounded = (whole + (source.generator.random(rest.size) < rest)).astype(np.int64)
                if _exact_square(rounded) <= self.longest_square:
                    return rounded
        return np.zeros(self.dimension, dtype=np.int64)

    def wrapped(self, numbers: Integers) -> Integers:
        """Numbers modulo 2**bits, from -2**(bits-1) on."""
        half = 1 << (self.bits - 1)
        return ((numbers + half) % (1 << self.bits)) - half

    def noise(self, multiplier: float, source: Source) -> Integers:
        """The noise of the smallest cohort together, in one draw: its shares of mu / K add up to the same law."""
        return skellam(self.variance(multiplier), self.dimension, source)

    def decode(self, total: Integers, step: int) -> Floats:
        """The sum of updates that a sum of whole numbers stands for."""
        signs = self._signs(step)
        turned = hadamard(total.astype(np.float64)) / math.sqrt(self.dimension) * signs
        return np.asarray(turned[: self.size] / self.scale, dtype=np.float64)

    def _turned(self, update: Floats, step: int) -> Floats:
        filled = np.zeros(self.dimension)
        filled[: self.size] = update
        return hadamard(filled * self._signs(step)) / math.sqrt(self.dimension)

    def _signs(self, step: int) -> Floats:
        """Public random signs of a round, the same for all its users."""
        return np.asarray(public_generator(step).integers(0, 2, self.dimension) * 2.0 - 1.0, dtype=np.float64)


def hadamard(values: Floats) -> Floats:
    """The product with the Hadamard matrix of that size, a power of two.

    >>> hadamard(np.array([1.0, 2.0]))
    array([ 3., -1.])
    """
    result = values.copy()
    half = 1
    while half < len(result):
        pairs = result.reshape(-1, 2, half)
        result = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        half *= 2
    return result


def _exact_square(numbers: Integers) -> int:
    """The squared length of whole numbers below 2**31, in two parts, so that nothing overflows."""
    squares = numbers * numbers
    return (int((squares >> 31).sum()) << 31) + int((squares & ((1 << 31) - 1)).sum())


def _power_above(size: int) -> int:
    return 1 << max(0, (size - 1).bit_length())
