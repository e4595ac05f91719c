"""Trade-off curves that an audit can test (`curve_audit`): Gaussian ones, and those of privacy profiles.

f-differential privacy (Dong, Roth & Su, 2022): for neighbors P and Q and every event S, P(S) <= 1 - f(Q(S)). A curve is
used through one function, `least`: how probable S must at least be under Q if it has a given probability under P. The
curves here are symmetric: they hold for both orders of P and Q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from tacit.account.sgd import COARSE_INTERVAL, ROUNDING, check_run, pld_accountant
from tacit.arrays import Floats
from tacit.auditing.models.one_run import widened
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency
from tacit.noise.gaussian import analytic_gaussian_sigma, gaussian_epsilon

EXPONENTS = np.concatenate([np.arange(0.0, 4.0, 0.1), np.arange(4.0, 20.0, 0.5), np.arange(20.0, 61.0, 2.0)])
"""The epsilons at which a profile is looked up. Fewer of them make a curve more cautious, never less."""


class TradeOff(Protocol):
    """A trade-off curve f of neighbors."""

    def least(self, probability: float) -> float:
        """The smallest x with 1 - f(x) >= probability; 0 for probability 0, and increasing."""


@dataclass(frozen=True)
class GaussianCurve:
    """N(0, 1) against N(mu, 1): 1 - f(x) = Phi(Phi^-1(x) + mu). For `changes` neighbor steps mu is that many times as
    large, exactly (Dong, Roth & Su, Theorem 2.14)."""

    mu: float

    def least(self, probability: float) -> float:
        return float(ndtr(ndtri(probability) - self.mu))

    def epsilon(self, delta: float) -> float:
        """The epsilon of this curve at delta, rounded down by far more than its own rounding: for lower bounds."""
        return 0.0 if self.mu <= 0 else gaussian_epsilon(1.0 / self.mu, delta, 1.0) * (1 - 1e-9)


def gaussian_curve_of(epsilon: float, delta: float) -> GaussianCurve:
    """The Gaussian curve with this epsilon at this delta."""
    return GaussianCurve(0.0 if epsilon == 0 else 1.0 / analytic_gaussian_sigma(epsilon, delta, 1.0))


@dataclass(frozen=True)
class ProfileCurve:
    """The curve of a mechanism that is (epsilon, delta)-DP for all these pairs at once.

    P(S) <= e**epsilon Q(S) + delta, for S and, with P and Q exchanged, for what is not in S.
    """

    epsilons: Floats
    deltas: Floats

    def __post_init__(self) -> None:
        if self.epsilons.shape != self.deltas.shape or not len(self.epsilons):
            raise BadParameterError("impossible-claim", "a privacy profile has one delta for each epsilon")
        object.__setattr__(self, "_growth", np.exp(self.epsilons))

    def least(self, probability: float) -> float:
        growth: Floats = self._growth  # type: ignore[attr-defined]
        own = (probability - self.deltas) / growth
        other = 1.0 - self.deltas - growth * (1.0 - probability)
        return max(0.0, float(own.max()), float(other.max()))


def profile_of_pair(epsilon: float, delta: float, changes: int = 1) -> ProfileCurve:
    """All that (epsilon, delta)-DP says, for `changes` neighbor steps."""
    wide, wide_delta = widened(epsilon, delta, changes)
    return ProfileCurve(np.array([wide]), np.array([wide_delta]))


def profile_of_training(
    *, sampling_rate: float, noise_multiplier: float, steps: int, adjacency: Adjacency = Adjacency.ADD_REMOVE,
    changes: int = 1,
) -> ProfileCurve:  # fmt: skip
    """The curve of a DP-SGD run with Poisson sampling, from its privacy-loss distribution, discretized pessimistically:
    it never promises more than the run keeps."""
    check_run(sampling_rate, steps, 0.5, None, adjacency)
    accountant = pld_accountant([(sampling_rate, steps)], noise_multiplier, adjacency, COARSE_INTERVAL)
    allowance = ROUNDING * max(steps, 16)
    pairs = [
        widened(epsilon, min(1.0, float(accountant.get_delta(epsilon)) + allowance), changes)
        for epsilon in EXPONENTS.tolist()
    ]
    finite = [(epsilon, delta) for epsilon, delta in pairs if epsilon < math.log(1e300)]
    return ProfileCurve(np.array([pair[0] for pair in finite]), np.array([pair[1] for pair in finite]))
