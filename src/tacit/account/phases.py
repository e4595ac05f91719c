"""DP-SGD whose sampling rate changes: phases of steps, each with a rate of its own, and one noise multiplier.

Phase i has T_i Poisson-sampled Gaussian steps at the rate q_i, fixed before the first step. Every step is dominated by
the same pair of laws as a step of a run with the constant rate q_i, and dominating pairs compose whatever comes before
(Zhu, Dong & Wang, AISTATS 2022): the privacy-loss distribution of the run is the convolution of those of its phases, in
any order. The discretization is pessimistic in each phase, so it is in the sum.

Rounding. As in `account.sgd`, a delta from the library is off by at most `ROUNDING` for each step; adding up phases is
one more convolution each, which is allowed for as sixteen steps are. Where that is more than half of delta, the Renyi
bounds of the phases are added up instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from tacit.account.renyi import renyi_epsilon_of_phases
from tacit.account.sgd import (
    COARSE_INTERVAL,
    FINE_INTERVAL,
    ROUNDING,
    check_run,
    least_multiplier,
    pld_epsilon_of_phases,
    reach,
    renyi_multiplier,
)
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency
from tacit.noise.gaussian import gaussian_epsilon
from tacit.noise.parameters import positive


class Phase(NamedTuple):
    """So many steps at one sampling rate."""

    rate: float
    steps: int


def phased_epsilon(
    *,
    phases: Sequence[Phase],
    noise_multiplier: float,
    delta: float,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    coarse: bool = False,
) -> float:
    """Epsilon of a run in phases, never below the truth. `coarse` is eight times faster and a little larger."""
    _check(phases, delta, adjacency)
    positive(noise_multiplier, "the noise multiplier")
    return _epsilon(phases, noise_multiplier, delta, adjacency, COARSE_INTERVAL if coarse else FINE_INTERVAL)


def phased_noise_multiplier(
    *,
    epsilon: float,
    phases: Sequence[Phase],
    delta: float,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    tolerance: float = 1e-3,
) -> float:
    """The smallest noise multiplier with at most this epsilon, rounded up within the relative `tolerance`."""
    _check(phases, delta, adjacency)
    positive(epsilon, "epsilon")
    steps = sum(phase.steps for phase in phases)
    mean = sum(phase.rate * phase.steps for phase in phases) / steps
    return least_multiplier(
        lambda multiplier, interval: _epsilon(phases, multiplier, delta, adjacency, interval),
        epsilon,
        start=renyi_multiplier(epsilon, mean, steps, delta),
        tolerance=tolerance,
    )


def _epsilon(
    phases: Sequence[Phase], noise_multiplier: float, delta: float, adjacency: Adjacency, interval: float
) -> float:
    steps = sum(phase.steps for phase in phases)
    if all(phase.rate == 1 for phase in phases):
        return gaussian_epsilon(noise_multiplier / math.sqrt(steps), delta, reach(adjacency))
    allowance = ROUNDING * (max(steps, 16) + 16 * len(phases))
    if delta <= 2.0 * allowance:
        return renyi_epsilon_of_phases(phases, noise_multiplier, delta, adjacency)
    return pld_epsilon_of_phases(phases, noise_multiplier, delta - allowance, adjacency, interval)


def _check(phases: Sequence[Phase], delta: float, adjacency: Adjacency) -> None:
    if not phases:
        raise BadParameterError("no-phases", "a run has at least 1 phase of steps")
    for phase in phases:
        check_run(phase.rate, phase.steps, delta, None, adjacency)
