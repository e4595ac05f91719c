"""Bounding a latent and making it noisy: one typed pair, whose sensitivity is derived and never given.

A document becomes a latent z of n numbers. Any two documents are neighbors, so the sensitivity is the diameter of the
set that all latents are forced into (Igamberdiev 2023, sections 5.4 and 6.3; * is what the noise of each norm needs):

    bound                                    set                  l1 diameter *Laplace   l2 diameter *Gaussian
    ClipL1(C)     z * min(1, C / ||z||_1)    l1 ball              2 C                    2 C
    ClipL2(C)     z * min(1, C / ||z||_2)    l2 ball              2 C sqrt(n)            2 C
    ClipValue(C)  clamp(z_i, -C, C)          cube                 2 C n                  2 C sqrt(n)

Proof. Two points of a ball of radius C in a norm are at most 2 C apart in that norm, two points of the cube at most
2 C in each coordinate. ||v||_2 <= ||v||_1 <= sqrt(n) ||v||_2 gives the rest, and each value is attained: by +-C e_1 in
the l1 ball, by +-(C / sqrt(n)) (1, ..., 1) in the l2 ball, by two opposite corners of the cube. Pruned columns are
constant, so they add nothing to n.

`Laplace` asks a bound for its l1 sensitivity, `AnalyticGaussian` for the l2 one. The published ADePT, which clips in l2
and takes 2 C for the Laplace mechanism, cannot be written down with these types: on the pair +-(C / sqrt(n)) (1, ...,
1) its real loss is sqrt(n) * epsilon (Habernal 2021).

The bounds hold for the floating-point numbers that are released, not only on paper: a clamp is exact, and a norm clip
leaves room for every rounding error of its own arithmetic. What is not a number becomes 0, so that no model and no
text can break the bound. Sensitivities are rounded up.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.arrays import Floats
from tacit.errors import BadInputError, BadParameterError
from tacit.noise.gaussian import add_gaussian, analytic_gaussian_sigma
from tacit.noise.laplace import add_laplace, laplace_grid
from tacit.noise.parameters import positive, proper_delta
from tacit.noise.source import Source

# Bounds -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound(ABC):
    """Forces the latent of every document, of shape (positions, width), into a bounded set."""

    C: float

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        positive(self.C, "the clipping constant C")

    @abstractmethod
    def apply(self, latents: ArrayLike) -> Floats:
        """Bounded copies of latents of shape (documents, positions, width), each document on its own."""

    @abstractmethod
    def l1_sensitivity(self, n: int) -> float:
        """The largest l1 distance of two bounded latents with n released numbers."""

    @abstractmethod
    def l2_sensitivity(self, n: int) -> float:
        """The largest l2 distance of two bounded latents with n released numbers."""

    def columns(self, width: int) -> NDArray[np.int64]:
        """The columns that are released; all others are constant 0."""
        return np.arange(width)

    def count(self, positions: int, width: int) -> int:
        """n: how many numbers of one document are released."""
        return positions * len(self.columns(width))

    def to_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "C": self.C}


@dataclass(frozen=True)
class ClipL1(Bound):
    """z * min(1, C / ||z||_1): sensitivities 2 C (l1) and 2 C (l2)."""

    kind: ClassVar[str] = "l1"

    def apply(self, latents: ArrayLike) -> Floats:
        return _norm_clipped(latents, self.C, order=1)

    def l1_sensitivity(self, n: int) -> float:
        _whole(n)
        return 2 * self.C

    def l2_sensitivity(self, n: int) -> float:
        _whole(n)
        return 2 * self.C


@dataclass(frozen=True)
class ClipL2(Bound):
    """z * min(1, C / ||z||_2): sensitivities 2 C sqrt(n) (l1) and 2 C (l2)."""

    kind: ClassVar[str] = "l2"

    def apply(self, latents: ArrayLike) -> Floats:
        return _norm_clipped(latents, self.C, order=2)

    def l1_sensitivity(self, n: int) -> float:
        return _times_root(2 * self.C, n)

    def l2_sensitivity(self, n: int) -> float:
        _whole(n)
        return 2 * self.C


@dataclass(frozen=True)
class ClipValue(Bound):
    """clamp(z_i, -C, C), and 0 in every column that is not kept: sensitivities 2 C n (l1) and 2 C sqrt(n) (l2).

    kept   indices of the encoder neurons that are released, the same for all positions and documents; None keeps all
    """

    kept: tuple[int, ...] | None = None

    kind: ClassVar[str] = "value"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kept is None:
            return
        kept = tuple(sorted({int(column) for column in self.kept}))
        if not kept or kept[0] < 0 or len(kept) != len(self.kept):
            raise BadParameterError(
                "bad-kept-columns", "the kept columns are different indices from 0 on, and at least one of them"
            )
        object.__setattr__(self, "kept", kept)

    def columns(self, width: int) -> NDArray[np.int64]:
        if self.kept is None:
            return np.arange(width)
        if self.kept[-1] >= width:
            raise BadInputError(
                "kept-columns-of-another-model",
                "column {column} is to be kept, but the latent has {width} columns: use the kept columns together "
                "with the model they were chosen for",
                column=self.kept[-1],
                width=width,
            )
        return np.array(self.kept, dtype=np.int64)

    def apply(self, latents: ArrayLike) -> Floats:
        values = _documents(latents)
        np.clip(values, -self.C, self.C, out=values)
        if self.kept is not None:
            pruned = np.ones(values.shape[2], dtype=bool)
            pruned[self.columns(values.shape[2])] = False
            values[:, :, pruned] = 0.0
        return values

    def l1_sensitivity(self, n: int) -> float:
        return _rounded_up(Fraction(2 * self.C) * _whole(n))

    def l2_sensitivity(self, n: int) -> float:
        return _times_root(2 * self.C, n)

    def to_dict(self) -> dict[str, object]:
        return {**super().to_dict(), "kept": None if self.kept is None else list(self.kept)}


BOUNDS: dict[str, type[Bound]] = {bound.kind: bound for bound in (ClipL1, ClipL2, ClipValue)}


def bound_from_dict(data: Mapping[str, Any]) -> Bound:
    """The bound that a checkpoint was trained with."""
    kind = BOUNDS.get(str(data.get("kind")))
    if kind is None:
        raise BadInputError(
            "unknown-bound",
            "a bound is one of {bounds}, not '{kind}': train the model again",
            bounds=", ".join(BOUNDS),
            kind=data.get("kind"),
        )
    if kind is ClipValue:
        kept: Sequence[int] | None = data.get("kept")
        return ClipValue(float(data["C"]), None if kept is None else tuple(kept))
    return kind(float(data["C"]))


# Noise ------------------------------------------------------------------------------------------------------------


class LatentNoise(ABC):
    """Noise that asks a bound for the sensitivity it needs."""

    kind: ClassVar[str]

    @abstractmethod
    def scale(self, bound: Bound, n: int, epsilon: float) -> float:
        """The scale (Laplace) or standard deviation (Gaussian) for n released numbers."""

    @abstractmethod
    def add(self, values: Floats, bound: Bound, epsilon: float, source: Source) -> Floats:
        """Noisy copies of bounded values of shape (documents, n), each document with the whole epsilon."""


@dataclass(frozen=True)
class Laplace(LatentNoise):
    """Pure epsilon: exact discrete Laplace noise of scale (l1 sensitivity) / epsilon on a public grid."""

    kind: ClassVar[str] = "laplace"

    def scale(self, bound: Bound, n: int, epsilon: float) -> float:
        return laplace_grid(epsilon, bound.l1_sensitivity(n), n).scale

    def add(self, values: Floats, bound: Bound, epsilon: float, source: Source) -> Floats:
        sensitivity = bound.l1_sensitivity(values.shape[1])
        rows = [add_laplace(row, epsilon=epsilon, l1_sensitivity=sensitivity, source=source) for row in values]
        return np.stack(rows) if rows else values.copy()


@dataclass(frozen=True)
class AnalyticGaussian(LatentNoise):
    """(epsilon, delta): exactly normal noise on a public grid; sigma after Balle & Wang 2018 for the l2 sensitivity."""

    delta: float

    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        proper_delta(self.delta)

    def scale(self, bound: Bound, n: int, epsilon: float) -> float:
        return analytic_gaussian_sigma(epsilon, self.delta, bound.l2_sensitivity(n))

    def add(self, values: Floats, bound: Bound, epsilon: float, source: Source) -> Floats:
        return add_gaussian(values, sigma=self.scale(bound, values.shape[1], epsilon), source=source)


def release(latents: ArrayLike, bound: Bound, noise: LatentNoise | None, epsilon: float, source: Source) -> Floats:
    """The private step: bound every document, add noise to the released columns, leave the pruned ones at 0.

    Without noise (None) nothing is private.
    """
    bounded = bound.apply(latents)
    if noise is None:
        return bounded
    documents, positions, width = bounded.shape
    columns = bound.columns(width)
    values = bounded[:, :, columns].reshape(documents, positions * len(columns))
    noisy = noise.add(values, bound, epsilon, source)
    result = np.zeros_like(bounded)
    result[:, :, columns] = noisy.reshape(documents, positions, len(columns))
    return result


# Arithmetic -------------------------------------------------------------------------------------------------------


def _norm_clipped(latents: ArrayLike, C: float, *, order: int) -> Floats:
    """Scale each document whose norm may exceed C, so that the true norm of the resulting doubles is at most C.

    Let u = 2**-53, and N the computed norm of the n numbers, divided by the largest of them beforehand so that
    nothing over- or underflows. Each division, square, and root adds at most a factor 1 + u, and a sum of n terms at
    most 1 + n u in any order, so the true norm is at most N (1 + g) with g = (n + 8) * 2**-52. Multiplying by
    f = C / (N (1 + g)) * (1 - 2**-49) makes the true norm at most C (1 - 2**-49) (1 + u)**5 < C, counting the
    rounding of f and of every product.
    """
    values = _documents(latents)
    flat = values.reshape(len(values), math.prod(values.shape[1:]))
    if flat.size == 0:
        return values
    magnitudes = np.abs(flat)
    largest = magnitudes.max(axis=1)
    divisor = np.where(largest > 0, largest, 1.0)
    magnitudes /= divisor[:, np.newaxis]
    unit_norm = magnitudes.sum(axis=1) if order == 1 else np.sqrt(np.square(magnitudes).sum(axis=1))
    slack = 1 + (flat.shape[1] + 8) * 2.0**-52
    with np.errstate(over="ignore"):
        norm = unit_norm * divisor * slack
        shrunk = C * (1 - 2.0**-49) / np.where(norm > C, unit_norm * slack, 1.0)
    for row in np.flatnonzero(norm > C):
        # Divided by the largest first: the factor alone could underflow for huge values.
        flat[row] = flat[row] / divisor[row] * shrunk[row]
    return values


def _documents(latents: ArrayLike) -> Floats:
    """A fresh double copy of shape (documents, positions, width), with 0 for what is not a number."""
    values = np.array(latents, dtype=np.float64)
    if values.ndim != 3:
        raise BadParameterError(
            "wrong-shape",
            "latents have the shape (documents, positions, width), not {dimensions} dimensions: add the missing "
            "ones, for example with latents[np.newaxis]",
            dimensions=values.ndim,
        )
    largest = np.finfo(np.float64).max
    return np.nan_to_num(values, copy=False, nan=0.0, posinf=largest, neginf=-largest)


def _times_root(factor: float, n: int) -> float:
    """factor * sqrt(n), rounded up."""
    product = factor * math.sqrt(_whole(n))
    while Fraction(product) ** 2 < Fraction(factor) ** 2 * n:
        product = math.nextafter(product, math.inf)
    return product


def _rounded_up(exact: Fraction) -> float:
    value = float(exact)
    return value if Fraction(value) >= exact else math.nextafter(value, math.inf)


def _whole(n: int) -> int:
    if int(n) != n or n < 1:
        raise BadParameterError("impossible-count", "a latent has at least one number, not {count}", count=n)
    return int(n)
