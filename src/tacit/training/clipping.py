"""Clipping: a factor for each example such that no example adds more than a known amount to the sum.

With factors f_b and gradients g_b the released sum is sum_b f_b g_b. Proof obligation of every style: |f_b g_b| <=
`bound` for every example, whatever its gradient. Then adding or removing an example moves the sum by at most `bound`,
replacing one by at most twice as much.

    flat        f = min(1, C / |g|)                              (Abadi et al. 2016)
    per-layer   the same for each parameter with C / sqrt(K): the K squared bounds add up to C^2
    automatic   f = C / (|g| + gamma): no threshold to tune       (Bu et al. 2023)
    damped      f = C / (|g| + r / (|g| + r)): as automatic, but small gradients are not blown up (Xia et al. 2023)
    quantile    flat, with C moved towards a quantile of the norms (Andrew et al. 2021); the share of examples below C
                is released with noise of its own, see `QuantileClipping`

Rounding. Norms and sums are computed in single precision. The norms that are handed in are no less than those of what
is added up, with what canceling positions can make of rounding errors (`gradients.examples.safe_squared_norm`, which
says under which model of rounding); each factor is lowered by `MARGIN` for the few operations here. Adding different
examples to one sum rounds once more, relative to that sum: single precision approximates it, as the card says.

Records that break. A gradient whose norm is not a finite number gets the factor 0 and adds nothing
(`PerExample.weighted_sums`), so |f_b g_b| = 0 <= `bound`: whether such a record is there moves the sum by nothing at
all, and above all it cannot stop the run, which would show that it was there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from tacit.errors import BadParameterError, check_choice
from tacit.noise.normal import normal_noise
from tacit.noise.source import Source

MARGIN = 1e-4


@dataclass(frozen=True)
class Clipped:
    """Factors per parameter and example, and how many examples were shortened: `lost` are those among them whose
    gradient is not finite and adds nothing. Their norm counts as infinite."""

    factors: dict[str, Tensor]
    shortened: int
    norms: Tensor

    @property
    def lost(self) -> int:
        return int(torch.isinf(self.norms).sum())


class Clipping(Protocol):
    @property
    def bound(self) -> float: ...

    def clip(self, squared_norms: Mapping[str, Tensor]) -> Clipped: ...


@dataclass
class FlatClipping:
    bound: float = 1.0

    def __post_init__(self) -> None:
        _positive(self.bound)

    def clip(self, squared_norms: Mapping[str, Tensor]) -> Clipped:
        norms = total_norms(squared_norms)
        # One over infinity is the factor 0 of a gradient that is not finite.
        factors = (self.bound / norms).clamp(max=1.0) * (1.0 - MARGIN)
        return Clipped(dict.fromkeys(squared_norms, factors), int((norms > self.bound).sum()), norms)


@dataclass
class LayerClipping:
    """Each parameter on its own: cheap norms stay where they are, and no layer can use up the bound of another."""

    bound: float = 1.0
    layers: int = 1

    def __post_init__(self) -> None:
        _positive(self.bound)
        if self.layers < 1:
            raise BadParameterError("layers-not-counted", "per-layer clipping needs the number of trainable parameters")

    def clip(self, squared_norms: Mapping[str, Tensor]) -> Clipped:
        if len(squared_norms) > self.layers:
            raise BadParameterError(
                "wrong-number-of-layers",
                "{gradients} parameters have a gradient, but the bound is for {layers}",
                gradients=len(squared_norms),
                layers=self.layers,
            )
        each = self.bound / math.sqrt(self.layers)
        norms = total_norms(squared_norms)
        factors = {}
        shortened = torch.zeros_like(norms, dtype=torch.bool)
        for name, squared in squared_norms.items():
            # Not finite in one layer: nothing of the example is used.
            own = torch.where(torch.isinf(norms), norms, squared.sqrt())
            shortened |= own > each
            factors[name] = (each / own.clamp_min(1e-30)).clamp(max=1.0) * (1.0 - MARGIN)
        return Clipped(factors, int(shortened.sum()), norms)


@dataclass
class AutomaticClipping:
    bound: float = 1.0
    gamma: float = 0.01

    def __post_init__(self) -> None:
        _positive(self.bound)
        _positive(self.gamma)

    def clip(self, squared_norms: Mapping[str, Tensor]) -> Clipped:
        norms = total_norms(squared_norms)
        factors = self.bound / (norms + self.gamma) * (1.0 - MARGIN)
        return Clipped(dict.fromkeys(squared_norms, factors), len(norms), norms)


@dataclass
class DampedClipping:
    """Per-sample adaptive clipping: weights C / (|g| + r / (|g| + r)).

    |g| f = C |g| / (|g| + r / (|g| + r)) < C, because r / (|g| + r) is positive. The weight of a gradient near 0 is C,
    where that of automatic clipping is C / gamma: examples that are right already do not pull as hard as wrong ones.
    """

    bound: float = 1.0
    damping: float = 0.1

    def __post_init__(self) -> None:
        _positive(self.bound)
        _positive(self.damping)

    def clip(self, squared_norms: Mapping[str, Tensor]) -> Clipped:
        norms = total_norms(squared_norms)
        # An infinite norm gives the factor 0: the damping term vanishes and the norm remains.
        factors = self.bound / (norms + self.damping / (norms + self.damping)) * (1.0 - MARGIN)
        return Clipped(dict.fromkeys(squared_norms, factors), len(norms), norms)


@dataclass
class QuantileClipping:
    """Flat clipping whose bound follows a quantile of the norms.

    After each step the share b of examples with |g| <= C is estimated with noise and C becomes
    C exp(-rate (b - quantile)). The count is sum over the batch of (1[|g| <= C] - 1/2), which one example moves by 1/2,
    plus N(0, count_noise^2). With `count_noise` = s and the multiplier z of the whole step, gradients get the
    multiplier (z^-2 - (2s)^-2)^(-1/2) (Andrew et al. 2021, theorem 1): both releases together are one Gaussian
    mechanism with multiplier z, for adding or removing an example, and likewise for replacing one.
    """

    bound: float = 1.0
    quantile: float = 0.5
    rate: float = 0.2
    count_noise: float = 10.0

    def __post_init__(self) -> None:
        _positive(self.bound)
        _positive(self.count_noise)
        if not 0.0 < self.quantile < 1.0:
            raise BadParameterError(
                "impossible-quantile", "the quantile must lie between 0 and 1, not {quantile}", quantile=self.quantile
            )

    def gradient_multiplier(self, multiplier: float) -> float:
        rest = multiplier**-2 - (2.0 * self.count_noise) ** -2
        if rest <= 0.0:
            raise BadParameterError(
                "count-noise-too-small",
                "counting with noise {count_noise:g} uses up the whole noise multiplier {multiplier:.3g}: raise "
                "count_noise",
                count_noise=self.count_noise,
                multiplier=multiplier,
            )
        return float(rest**-0.5)

    def clip(self, squared_norms: Mapping[str, Tensor]) -> Clipped:
        return FlatClipping(self.bound).clip(squared_norms)

    def update(self, below: int, examples: int, expected: float, source: Source) -> None:
        """Move the bound after a step in which `below` of `examples` gradients were not longer than it."""
        noise = float(normal_noise(1, source)[0])
        self.move(below - examples / 2.0 + self.count_noise * noise, expected)

    def move(self, noisy_count: float, expected: float) -> None:
        """Move the bound after a count that already has its noise, N(0, count_noise^2) or a correlated one."""
        share = noisy_count / expected + 0.5
        self.bound = min(max(self.bound * math.exp(-self.rate * (share - self.quantile)), 1e-6), 1e6)


AnyClipping = FlatClipping | LayerClipping | AutomaticClipping | DampedClipping | QuantileClipping


def make_clipping(style: str, bound: float, parameters: int) -> AnyClipping:
    """Clipping by name."""
    makers: dict[str, Callable[[float], AnyClipping]] = {
        "flat": FlatClipping,
        "per-layer": lambda bound: LayerClipping(bound, parameters),
        "automatic": AutomaticClipping,
        "damped": DampedClipping,
        "quantile": QuantileClipping,
    }
    check_choice(style, makers, code="unknown-clipping", what="clipping style")
    return makers[style](bound)


def total_norms(squared_norms: Mapping[str, Tensor]) -> Tensor:
    """The norm of each example's gradient; infinite where it is not a finite number."""
    norms = torch.stack(list(squared_norms.values())).sum(0).sqrt()
    return norms.masked_fill(~torch.isfinite(norms), math.inf).clamp_min(1e-30)


def _positive(value: float) -> None:
    if not 0.0 < value < math.inf:
        raise BadParameterError(
            "impossible-clipping-bound", "a clipping bound must be a positive number, not {value}", value=value
        )
