"""DP-SGD accounting: from the noise of a training run to its epsilon, and back.

Each of T steps takes every record independently with probability q (Poisson sampling), clips its gradient to
norm C, adds noise N(0, sigma**2 C**2) to the sum, and moves the model (Abadi et al., "Deep learning with
differential privacy", CCS 2016). The noise multiplier is sigma. The result is (epsilon, delta)-DP for one
training record.

* q = 1: T Gaussian steps are one Gaussian step with sigma / sqrt(T); the epsilon is exact, in closed form.
* q < 1: privacy-loss distributions (PLD; Koskela, Jälkö & Honkela, AISTATS 2020; Doroshenko et al., PETS 2022)
  with the library dp-accounting, discretized pessimistically. Renyi DP (Mironov 2017) is a looser cross-check.

Small deltas. The library convolves by Fourier transforms in double precision, so a delta that it computes is off by an
*absolute* error, in either direction: about 1.1e-16 per step was measured (1e-10 after a million steps), because the
spectrum is raised to the power T. `ROUNDING` allows sixteen times as much, and the epsilon is asked for at delta less
that allowance, so it is never too small. Where the allowance is more than half of delta, this accountant knows nothing
about it, and the Renyi bound (`account/renyi.py`) is taken instead, which loses no digits.

Adjacency. Adding or removing one record changes the sum by C. Replacing one changes it by 2 C: for q = 1 that
halves sigma; for q < 1 dp-accounting compares (1-q) N(0) + q N(+C) with (1-q) N(0) + q N(-C). Its Renyi
accountant reads "replace one" differently (the multiplier is then relative to 2 C), so it is never asked: our own
bound goes by way of the data without the record.

Shuffled or fixed batches are *not* covered by q < 1: account for one pass over disjoint fixed batches as one
step with sampling_rate=1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from types import ModuleType
from typing import Any, Literal

from tacit.account.delta import check_delta
from tacit.account.renyi import epsilon_of_order, renyi_divergence, renyi_epsilon
from tacit.errors import BadParameterError, require
from tacit.guarantee import Adjacency
from tacit.noise.gaussian import gaussian_epsilon, repeated_gaussian_multiplier
from tacit.noise.parameters import positive, proper_delta

Method = Literal["pld", "rdp"]
Conversion = Literal["classic", "improved"]

FINE_INTERVAL = 1e-4
COARSE_INTERVAL = 1e-3
"""Steps in which privacy loss is discretized, always rounded to the safe side; coarse only to find the place."""

ROUNDING = 2.0**-49
"""For each step, how far a delta from privacy-loss distributions may be off: sixteen units of double precision."""

INTEGER_ORDERS = tuple(range(2, 257))


def sgd_epsilon(
    *,
    sampling_rate: float,
    noise_multiplier: float,
    steps: int,
    delta: float,
    records: int | None = None,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    method: Method = "pld",
    coarse: bool = False,
) -> float:
    """Epsilon of a DP-SGD run. Give `records` to have a delta of 1 / records or more refused. `coarse` is eight times
    faster and never smaller, by about 0.001."""
    check_run(sampling_rate, steps, delta, records, adjacency)
    positive(noise_multiplier, "the noise multiplier")
    if method == "rdp":
        return _rdp_epsilon(sampling_rate, noise_multiplier, steps, delta, adjacency)
    if sampling_rate == 1:
        return gaussian_epsilon(noise_multiplier / math.sqrt(steps), delta, reach(adjacency))
    return _sampled_epsilon(
        sampling_rate, noise_multiplier, steps, delta, adjacency, COARSE_INTERVAL if coarse else FINE_INTERVAL
    )


def sgd_noise_multiplier(
    *,
    epsilon: float,
    sampling_rate: float,
    steps: int,
    delta: float,
    records: int | None = None,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    tolerance: float = 1e-3,
) -> float:
    """The smallest noise multiplier with at most this epsilon, rounded up within the relative `tolerance`."""
    check_run(sampling_rate, steps, delta, records, adjacency)
    positive(epsilon, "epsilon")
    if sampling_rate == 1:
        return repeated_gaussian_multiplier(epsilon, delta, reach(adjacency), steps)

    return least_multiplier(
        lambda multiplier, interval: _sampled_epsilon(sampling_rate, multiplier, steps, delta, adjacency, interval),
        epsilon,
        start=renyi_multiplier(epsilon, sampling_rate, steps, delta),
        tolerance=tolerance,
    )


def least_multiplier(
    epsilon_at: Callable[[float, float], float], epsilon: float, *, start: float, tolerance: float
) -> float:
    """The smallest noise multiplier with at most this epsilon, rounded up within the relative `tolerance`.

    epsilon_at   epsilon of a multiplier, with the steps in which privacy loss is discretized
    """

    def excess(log_multiplier: float, interval: float) -> float:
        return epsilon_at(math.exp(log_multiplier), interval) - epsilon

    # From fast to exact: the Renyi bound, a coarse and then a fine discretization, each starting at the last.
    first = math.log(start)
    coarse = _root_above(lambda x: excess(x, COARSE_INTERVAL), first, width=0.2, tolerance=tolerance / 4)
    if -tolerance * epsilon <= excess(coarse, FINE_INTERVAL) <= 0:
        return math.exp(coarse)
    return math.exp(_root_above(lambda x: excess(x, FINE_INTERVAL), coarse, width=0.02, tolerance=tolerance / 2))


def classic_rdp_epsilon(
    *,
    sampling_rate: float,
    noise_multiplier: float,
    steps: int,
    delta: float,
    conversion: Conversion = "classic",
    orders: Sequence[int] = INTEGER_ORDERS,
) -> float:
    """The integer-order Renyi bound that papers print, for add/remove adjacency and Poisson sampling:

        RDP(a) = 1 / (a - 1) * ln sum_k C(a, k) (1-q)**(a-k) q**k exp((k**2 - k) / (2 sigma**2)),
        classic:   epsilon = min_a  T RDP(a) + ln(1 / delta) / (a - 1)                       (Mironov 2017)
        improved:  epsilon = min_a  T RDP(a) + ln((a-1) / a) - (ln delta + ln a) / (a - 1)   (Canonne et al.)

    For comparison with published numbers: `sgd_epsilon` is tighter.
    """
    check_run(sampling_rate, steps, delta, None, Adjacency.ADD_REMOVE)
    positive(noise_multiplier, "the noise multiplier")
    if conversion not in ("classic", "improved") or min(orders) < 2:
        raise BadParameterError(
            "unknown-conversion", "choose the conversion 'classic' or 'improved', and integer orders from 2"
        )
    values = []
    for order in orders:
        spent = steps * renyi_divergence(sampling_rate, noise_multiplier, order)
        if conversion == "classic":
            values.append(spent - math.log(delta) / (order - 1))
        else:
            values.append(epsilon_of_order(spent, order, delta))
    return max(0.0, min(values))


def renyi_multiplier(epsilon: float, sampling_rate: float, steps: int, delta: float) -> float:
    """A noise multiplier near the smallest one with this epsilon, by the Renyi bound."""

    def excess(log_multiplier: float) -> float:
        return (
            classic_rdp_epsilon(
                sampling_rate=sampling_rate,
                noise_multiplier=math.exp(log_multiplier),
                steps=steps,
                delta=delta,
                conversion="improved",
                orders=(*range(2, 64), 80, 128, 256, 512),
            )
            - epsilon
        )

    return math.exp(_root_above(excess, 0.0, width=0.5, tolerance=1e-3))


def _root_above(function: Callable[[float], float], start: float, *, width: float, tolerance: float) -> float:
    """A point where a decreasing function is not positive, within `tolerance` above its root."""
    falling = cache(function)
    low = high = start
    while falling(high) > 0:
        low, high, width = high, high + width, 2 * width
        if high > 40:
            raise BadParameterError(
                "epsilon-out-of-reach",
                "no amount of noise reaches this epsilon with this delta: take fewer steps, a smaller sampling "
                "rate, a larger delta or a larger epsilon",
            )
    while falling(low) <= 0:
        low, high, width = low - width, low, 2 * width
        if low < -10:
            raise BadParameterError(
                "epsilon-needs-no-noise", "this epsilon needs next to no noise: give a smaller epsilon"
            )
    from scipy.optimize import brentq

    root = float(brentq(falling, low, high, xtol=tolerance / 2, rtol=8.9e-16))
    while falling(root) > 0:
        root += tolerance / 2
    return root


def accounting_library() -> ModuleType:
    """The library dp-accounting, which is optional."""
    return require("dp_accounting", extra="accounting", purpose="accounting for DP-SGD")


def _event(library: ModuleType, sampling_rate: float, noise_multiplier: float, steps: int) -> Any:
    gaussian = library.GaussianDpEvent(noise_multiplier)
    step = gaussian if sampling_rate == 1 else library.PoissonSampledDpEvent(sampling_rate, gaussian)
    return library.SelfComposedDpEvent(step, steps)


def _sampled_epsilon(
    sampling_rate: float,
    noise_multiplier: float,
    steps: int,
    delta: float,
    adjacency: Adjacency,
    interval: float,
) -> float:
    """The epsilon of sampled steps, never below the truth: by privacy-loss distributions where their rounding leaves
    room for this delta, by the Renyi bound elsewhere."""
    allowance = ROUNDING * max(steps, 16)
    if delta <= 2.0 * allowance:
        return renyi_epsilon(sampling_rate, noise_multiplier, steps, delta, adjacency)
    return pld_epsilon_of_phases([(sampling_rate, steps)], noise_multiplier, delta - allowance, adjacency, interval)


def pld_epsilon_of_phases(
    phases: Sequence[tuple[float, int]],
    noise_multiplier: float,
    delta: float,
    adjacency: Adjacency,
    interval: float,
) -> float:
    """Epsilon of phases of steps (sampling rate, number of steps) by privacy-loss distributions, which convolve.

    The last answers are kept: a run asks for the same epsilon when it is planned, while it runs and on its card.
    """
    return _pld_epsilon(tuple(phases), noise_multiplier, delta, adjacency, interval)


@lru_cache(maxsize=4096)
def _pld_epsilon(
    phases: tuple[tuple[float, int], ...], noise_multiplier: float, delta: float, adjacency: Adjacency, interval: float
) -> float:
    return float(pld_accountant(phases, noise_multiplier, adjacency, interval).get_epsilon(delta))


def pld_accountant(
    phases: Sequence[tuple[float, int]], noise_multiplier: float, adjacency: Adjacency, interval: float
) -> Any:
    """The accountant of the library after these phases of steps."""
    library = accounting_library()
    relations = {
        Adjacency.ADD_REMOVE: library.NeighboringRelation.ADD_OR_REMOVE_ONE,
        Adjacency.REPLACE_ONE: library.NeighboringRelation.REPLACE_ONE,
    }
    accountant = library.pld.PLDAccountant(relations[adjacency], interval)
    for sampling_rate, steps in phases:
        accountant.compose(_event(library, sampling_rate, noise_multiplier, steps))
    return accountant


def _rdp_epsilon(
    sampling_rate: float, noise_multiplier: float, steps: int, delta: float, adjacency: Adjacency
) -> float:
    if adjacency is Adjacency.REPLACE_ONE:
        if sampling_rate < 1:
            return renyi_epsilon(sampling_rate, noise_multiplier, steps, delta, adjacency)
        noise_multiplier /= 2
    library = accounting_library()
    accountant = library.rdp.RdpAccountant()
    accountant.compose(_event(library, sampling_rate, noise_multiplier, steps))
    return float(accountant.get_epsilon(delta))


def reach(adjacency: Adjacency) -> float:
    """The distance that one change moves the clipped sum, in units of the clipping norm."""
    return 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0


def check_run(sampling_rate: float, steps: int, delta: float, records: int | None, adjacency: Adjacency) -> None:
    """Refuse what no run of DP-SGD can have."""
    if not 0 < sampling_rate <= 1:
        raise BadParameterError(
            "impossible-sampling-rate",
            "the sampling rate must lie in (0, 1], not {sampling_rate}: expected lot / records",
            sampling_rate=sampling_rate,
        )
    if steps < 1 or int(steps) != steps:
        raise BadParameterError(
            "impossible-number-of-steps",
            "the number of steps must be a whole number of at least 1, not {steps}",
            steps=steps,
        )
    if adjacency not in (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE):
        raise BadParameterError(
            "adjacency-not-accounted", "DP-SGD is accounted for adding or removing one record, or for replacing one"
        )
    proper_delta(delta)
    if records is not None:
        check_delta(delta, records)
