"""Noise that is correlated over the rounds of a run: matrix factorizations of running sums, and their sensitivity.

Round t adds up clipped updates, x_t. A model that is moved by every x_t depends on the running sums A x, where A is
lower triangular and full of ones. With A = B C, release

    B (C x + z)  =  A x + B z,       z independent N(0, sigma**2 I)

(Li et al. 2015; Denisov et al., "Improved differential privacy for SGD via optimal private linear operators on adaptive
streams", NeurIPS 2022). What is released is a function of C x + z alone: **one** Gaussian mechanism, whose sensitivity
is that of C x. For lower-triangular C this stays true when x_t is chosen after looking at everything released before
(ibid., theorem 2.1). No sampling is assumed and no amplification is claimed: the order of the users may be known.

Sensitivity. A user is visited in the rounds j, j + b, j + 2 b, ... for some j < b, at most ceil(n / b) times in n
rounds, and each visit moves x_t by a vector of norm at most 1 (the clipping bound). If G = C^T C has no negative entry,

    max |C u|**2  =  max over the visits of  sum over s, t of G[s, t]  =  max |C 1_visits|**2,

reached when the user pushes into the same direction every time. `sensitivity` is this number, exactly.

    Toeplitz    C[s, t] = c[s - t], with 1 = c[0] >= c[1] >= ... >= 0. `bands` = 1 is independent noise.
                *square root*: A = C C, the Taylor series of (1 - x)**(-1/2) (Henzinger et al. 2022; Fichtenberger et
                al. 2023), cut after some bands (Kalinin & Lampert 2024).
                *optimal*: the c with the smallest error for these rounds and visits, by numerical optimization
                (Choquette-Choo et al. 2023 for bands; McKenna 2024 for Toeplitz). Whatever it finds, the sensitivity
                is computed from the result.
    Buffered    c[t] = sum of w_i l_i**(t-1), a few geometric series: as good as many bands, in a few vectors of memory
                (Dvijotham et al. 2024, BLT)
    Tree        one number for every complete node of a binary tree over the rounds (Dwork et al. 2010; Chan et al.
                2011; Kairouz et al., "Practical and private (deep) learning without sampling or shuffling", ICML 2021)

Sensitivity of a Toeplitz factor (Kalinin & Lampert 2024, theorem 2). Columns s < t have the inner product
f(t - s, n - 1 - t), f(d, m) = sum over i <= m of c[i] c[i + d], which falls with d (c does not rise) and grows with m
(no term is negative). Visits i_0 < i_1 < ... that are at least b apart have i_v >= v b and i_w - i_v >= (w - v) b, so
no pair of them has a larger inner product than the pair (v b, w b): the worst visits are 0, b, 2 b, ... This proves the
number for *every* user who comes back after at least b rounds, not only for a fixed order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from tacit.arrays import Floats
from tacit.errors import BadParameterError


class Factorization(Protocol):
    """The factors from which the noise of a run is made."""

    @property
    def label(self) -> str:
        """In a few words, for a card."""

    def sensitivity(self, rounds: int, separation: int) -> float:
        """The largest distance that one user moves C x, in units of the clipping bound."""

    def variances(self, rounds: int) -> Floats:
        """Of the noise on each running sum, for z of variance 1: the squared norms of the rows of B."""

    def encoder(self, rounds: int) -> Floats:
        """C, as a whole: for looking at small cases."""

    def decoder(self, rounds: int) -> Floats:
        """B, as a whole."""


def error_of(factorization: Factorization, rounds: int, separation: int) -> float:
    """Root mean square of the noise on the running sums, relative to the clipping bound, at the noise multiplier (ratio
    of sigma to sensitivity) 1: the figure by which factorizations are compared at equal privacy."""
    spread = math.sqrt(float(factorization.variances(rounds).mean()))
    return factorization.sensitivity(rounds, separation) * spread


# Toeplitz -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Toeplitz:
    """C[s, t] = coefficients[s - t], zero beyond the last one; without any given, independent noise."""

    coefficients: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        _check_series(np.array(self.coefficients))

    @property
    def label(self) -> str:
        return "independent" if self.bands == 1 else f"banded, {self.bands} bands"

    @property
    def bands(self) -> int:
        return len(self.coefficients)

    def series(self, rounds: int) -> Floats:
        coefficients = np.zeros(rounds)
        kept = min(rounds, self.bands)
        coefficients[:kept] = self.coefficients[:kept]
        return coefficients

    def sensitivity(self, rounds: int, separation: int) -> float:
        return _series_sensitivity(self.series(rounds), separation)

    def variances(self, rounds: int) -> Floats:
        return np.cumsum(_divided(np.ones(rounds), np.array(self.coefficients)) ** 2)

    def inverse_series(self, rounds: int) -> Floats:
        """The first column of the inverse of C: how the noise of a round follows from z."""
        impulse = np.zeros(rounds)
        impulse[0] = 1.0
        return _divided(impulse, np.array(self.coefficients))

    def encoder(self, rounds: int) -> Floats:
        return _triangle(self.series(rounds))

    def decoder(self, rounds: int) -> Floats:
        return _triangle(_divided(np.ones(rounds), np.array(self.coefficients)))


@dataclass(frozen=True)
class Buffered:
    """c[0] = 1, c[t] = sum over i of weights[i] decays[i]**(t - 1): C^-1 z needs one vector for each decay."""

    weights: tuple[float, ...]
    decays: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.weights) != len(self.decays) or not self.weights:
            raise BadParameterError("series-without-decay", "each geometric series has a weight and a decay")
        fits = all(w >= 0 for w in self.weights) and all(0 <= d <= 1 for d in self.decays)
        if not fits or math.fsum(self.weights) > 1:
            raise BadParameterError(
                "impossible-series", "weights must not be negative and add up to at most 1; decays lie in [0, 1]"
            )

    @property
    def label(self) -> str:
        return f"buffered Toeplitz, {len(self.weights)} buffers"

    def series(self, rounds: int) -> Floats:
        powers = np.array(self.decays)[:, None] ** np.arange(max(rounds - 1, 0))
        return np.concatenate([[1.0], np.array(self.weights) @ powers])[:rounds]

    def sensitivity(self, rounds: int, separation: int) -> float:
        return _series_sensitivity(self.series(rounds), separation)

    def _decoder_series(self, rounds: int) -> Floats:
        """1 / C as a quotient of two short polynomials: C = 1 + sum w x / (1 - l x)."""
        below = np.array([1.0])
        for decay in self.decays:
            below = np.convolve(below, [1.0, -decay])
        above = below.copy()
        for i, weight in enumerate(self.weights):
            rest = np.array([0.0, weight])
            for j, decay in enumerate(self.decays):
                rest = np.convolve(rest, [1.0, -decay]) if j != i else rest
            above[: len(rest)] += rest
        from scipy.signal import lfilter

        return np.asarray(lfilter(below, above, np.ones(rounds)))

    def variances(self, rounds: int) -> Floats:
        return np.cumsum(self._decoder_series(rounds) ** 2)

    def encoder(self, rounds: int) -> Floats:
        return _triangle(self.series(rounds))

    def decoder(self, rounds: int) -> Floats:
        return _triangle(self._decoder_series(rounds))


def square_root(bands: int, momentum: float = 0.0) -> Toeplitz:
    """The first coefficients of ((1 - x) (1 - momentum x))**(-1/2): without a cut, the factor C with C C = A, where A
    adds up updates that a server with this momentum remembers (Kalinin & Lampert 2024)."""
    check_counts(bands=bands)
    _check_momentum(momentum)
    steps = np.arange(1, bands)
    root = np.concatenate([[1.0], np.cumprod((2 * steps - 1) / (2 * steps))])
    whole = np.convolve(root, root * momentum ** np.arange(bands))[:bands] if momentum else root
    return Toeplitz(tuple(float(value) for value in np.minimum.accumulate(whole)))


@lru_cache(maxsize=64)
def optimal_banded(rounds: int, separation: int, bands: int, momentum: float = 0.0) -> Toeplitz:
    """The banded Toeplitz factor with the smallest root mean square error on the running sums (of what a server with
    this momentum remembers), for users that come back every `separation` rounds.

    With c[j] = s_1 ... s_j and s_i in (0, 1) no coefficient rises or is negative. The gradient is exact: with e = A / C
    as power series, the derivative of e by c[j] is -x**j e / C.
    """
    check_counts(rounds=rounds, separation=separation, bands=bands)
    _check_momentum(momentum)
    bands = min(bands, rounds)
    if bands == 1:
        return Toeplitz()
    from scipy.optimize import minimize

    workload = np.cumsum(momentum ** np.arange(rounds)) if momentum else np.ones(rounds)
    weights = np.arange(rounds, 0, -1) / rounds
    ratios = np.clip(_ratios(np.array(square_root(bands, momentum).coefficients)), 0.05, 0.995)

    def loss(logits: Floats) -> tuple[float, Floats]:
        steps = 1.0 / (1.0 + np.exp(-logits))
        series = np.concatenate([[1.0], np.cumprod(steps)])
        spread = _divided(workload, series)
        again = _divided(spread, series)
        weighted = weights * spread
        squared_error = float(weighted @ spread)
        error_slope = np.array([-2.0 * (weighted[j:] @ again[: rounds - j]) for j in range(1, bands)])
        full = np.zeros(rounds)
        full[:bands] = series
        visits = _visits_sum(full, separation)
        squared_sensitivity = float(visits @ visits)
        starts = np.arange(0, rounds, separation)
        visit_slope = np.array([2.0 * visits[starts[starts + j < rounds] + j].sum() for j in range(1, bands)])
        slope = error_slope / squared_error + visit_slope / squared_sensitivity
        # c[j] holds s_i for all i <= j; the derivative of ln s by its logit is 1 - s.
        behind = np.cumsum((slope * series[1:])[::-1])[::-1]
        return math.log(squared_error) + math.log(squared_sensitivity), behind * (1.0 - steps)

    start = np.log(ratios) - np.log1p(-ratios)
    optimum = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}, bounds=[(-30.0, 30.0)] * len(start)
    )
    steps = 1.0 / (1.0 + np.exp(-optimum.x))
    # Rounded, so that a run is planned the same way again, whatever the last digits of a search.
    return Toeplitz((1.0, *(round(float(value), 5) for value in np.cumprod(steps))))


@lru_cache(maxsize=64)
def optimal_buffered(rounds: int, separation: int, buffers: int = 3) -> Buffered:
    """The buffered factor with the smallest error that a local search finds, from decays on all time scales."""
    check_counts(rounds=rounds, separation=separation, buffers=buffers)
    from scipy.optimize import minimize

    def made(parameters: Floats) -> Buffered:
        shares = np.exp(parameters[:buffers] - np.logaddexp(0.0, np.logaddexp.reduce(parameters[:buffers])))
        decays = 1.0 / (1.0 + np.exp(-parameters[buffers:]))
        # Rounding must not lift the sum of the weights above 1.
        return Buffered(tuple((shares * (1 - 1e-12)).tolist()), tuple(decays.tolist()))

    def rounded(factor: Buffered) -> Buffered:
        weights = (math.floor(weight * 1e5) / 1e5 for weight in factor.weights)
        return Buffered(tuple(weights), tuple(round(decay, 6) for decay in factor.decays))

    def loss(parameters: Floats) -> float:
        return math.log(error_of(made(parameters), rounds, separation))

    horizon = np.geomspace(2.0, max(4.0, 2.0 * rounds), buffers)
    start = np.concatenate([np.linspace(0.0, -2.0, buffers) - math.log(buffers), np.log(horizon - 1.0)])
    bounds = [(-15.0, 5.0)] * buffers + [(-5.0, 15.0)] * buffers
    optimum = minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"maxiter": 300})
    return rounded(made(optimum.x))


# Parts ----------------------------------------------------------------------------------------------------------------


def _divided(series: Floats, by: Floats) -> Floats:
    """The power series of a quotient, to as many terms as `series` has."""
    from scipy.signal import lfilter

    return np.asarray(lfilter([1.0], by[: len(series)], series))


def _triangle(series: Floats) -> Floats:
    from scipy.linalg import toeplitz

    return np.asarray(toeplitz(series, np.zeros(len(series))))


def _visits_sum(series: Floats, separation: int) -> Floats:
    """The sum of the columns 0, b, 2 b, ... of the triangle of a series."""
    total = np.zeros(len(series))
    for start in range(0, len(series), separation):
        total[start:] += series[: len(series) - start]
    return total


def _series_sensitivity(series: Floats, separation: int) -> float:
    check_counts(separation=separation)
    return float(np.linalg.norm(_visits_sum(series, separation)))


def _ratios(series: Floats) -> Floats:
    return series[1:] / np.maximum(series[:-1], 1e-300)


def _check_series(series: Floats) -> None:
    """The conditions of the theorem about sensitivity."""
    proper = len(series) > 0 and series[0] == 1.0 and bool(np.isfinite(series).all())
    if not proper or bool((np.diff(series) > 0).any()) or series[-1] < 0:
        raise BadParameterError(
            "sensitivity-not-proven",
            "the coefficients of a Toeplitz factor must start with 1, never rise, and not be negative: for others "
            "the sensitivity is not proven",
        )


def _check_momentum(momentum: float) -> None:
    if not 0.0 <= momentum < 1.0:
        raise BadParameterError("impossible-momentum", "momentum lies in [0, 1), not {momentum}", momentum=momentum)


def check_counts(**counts: float) -> None:
    for name, value in counts.items():
        if int(value) != value or value < 1:
            raise BadParameterError(
                "impossible-count", "the number of {name} must be at least 1, not {value}", name=name, value=value
            )
