"""A check that the noise on a latent is as large as the claim needs, for claims too large to be refuted by counting.

Counting n samples shows losses up to ln n or so, and latent mechanisms claim epsilons of 10 to 1,000. But what they say
about themselves allows more: M(x) = b(x) + Z, the numbers of Z independent, all normal or all Laplace, of one scale.
Under that assumption (a Kolmogorov-Smirnov test looks for evidence against it) the residuals M(x) - b(x) bound the
scale from above, exactly:

    normal    sum r^2 / sigma^2 is chi-square with N degrees of freedom          ->  sigma <= sigma_up
    Laplace   2 sum |r| / scale is chi-square with 2 N degrees of freedom        ->  scale <= scale_up

and two bounded latents b(x), b(x') that the mechanism can be given have a loss that follows from the scale:

    normal    delta(epsilon) of Balle & Wang (2018, Theorem 8) at sigma_up and |b(x) - b(x')|_2; it falls with sigma
    Laplace   the largest loss is |b(x) - b(x')|_1 / scale, attained far out; at least |.|_1 / scale_up

so a larger delta, or a larger loss, than claimed refutes it. This catches the published ADePT (l2 clip, Laplace noise
for 2 C) at every epsilon, and the classical Gaussian rule at epsilon 10, where the true delta is 2.3e-5 instead of
1e-5: counting would need 10^10 samples for that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tacit.arrays import Floats
from tacit.auditing.claims.sampling import CONFIDENCE
from tacit.errors import BadInputError, BadParameterError
from tacit.noise.gaussian import gaussian_delta, gaussian_epsilon
from tacit.report import Finding, Light, Section
from tacit.rounding import rounded_down, rounded_up

if TYPE_CHECKING:
    from tacit.documents.bounds import Bound

MOST_FOR_FIT = 20_000
ROUNDING = 1e-6
"""Residuals below this share of the distance between two latents are no noise but rounding, whatever they look like:
what the release of one latent hits, that of the other never does."""


@dataclass(frozen=True)
class NoiseResult:
    """`epsilon` is a lower bound at the claimed delta; `delta`, for normal noise, one at the claimed epsilon."""

    family: str
    scale_at_most: float
    distance: float
    numbers: int
    epsilon: float
    delta: float | None
    claimed_epsilon: float
    claimed_delta: float
    confidence: float
    fit_p_value: float

    @property
    def fits(self) -> bool:
        """The assumption is not contradicted by the samples."""
        return self.fit_p_value >= 1e-6

    @property
    def refuted(self) -> bool:
        return self.fits and self.epsilon > self.claimed_epsilon


def normal_scale_at_most(residuals: ArrayLike, alpha: float) -> float:
    """sigma of independent N(0, sigma^2) numbers is at most this, wrong with probability at most alpha."""
    from scipy.stats import chi2

    r = np.asarray(residuals, dtype=np.float64).ravel()
    return math.sqrt(float(np.square(r).sum()) / float(chi2.ppf(alpha, r.size)))


def laplace_scale_at_most(residuals: ArrayLike, alpha: float) -> float:
    """The scale of independent Laplace numbers is at most this, wrong with probability at most alpha."""
    from scipy.stats import chi2

    r = np.asarray(residuals, dtype=np.float64).ravel()
    return 2.0 * float(np.abs(r).sum()) / float(chi2.ppf(alpha, 2 * r.size))


def noise_check(
    residuals: ArrayLike,
    difference: ArrayLike,
    family: str,
    epsilon: float,
    *,
    delta: float = 0.0,
    confidence: float = CONFIDENCE,
) -> NoiseResult:
    """Residuals of a release (noisy minus bounded latent) and the difference of two bounded latents."""
    r = np.asarray(residuals, dtype=np.float64).ravel()
    apart = np.asarray(difference, dtype=np.float64).ravel()
    if r.size < 100:
        raise BadInputError(
            "too-few-residuals",
            "{residuals} residuals are too few to measure a noise scale: release more latents",
            residuals=r.size,
        )
    if not (np.isfinite(r).all() and np.isfinite(apart).all()):
        raise BadInputError("not-finite", "a residual is infinite or not a number: check the latents")
    alpha = 1.0 - confidence
    smallest: float | None = None
    if not r.any() or _is_rounding(r, apart):
        scale, distance = float(np.abs(r).max()), float(np.linalg.norm(apart))
        at_least = math.inf if distance > 0 else 0.0
        r = np.zeros_like(r)
    elif family == "normal":
        if not delta:
            raise BadParameterError("claim-without-delta", "normal noise has no pure epsilon: give the claimed delta")
        scale, distance = normal_scale_at_most(r, alpha), float(np.linalg.norm(apart))
        at_least = gaussian_epsilon(scale, delta, distance) if distance > 0 else 0.0
        smallest = gaussian_delta(epsilon, scale, distance) if distance > 0 else 0.0
    elif family == "laplace":
        if delta:
            raise BadParameterError(
                "claim-with-delta", "the loss of Laplace noise is worked out for delta 0: give a claim without delta"
            )
        scale, distance = laplace_scale_at_most(r, alpha), float(np.abs(apart).sum())
        at_least = distance / scale
    else:
        raise BadParameterError(
            "unknown-noise", "the family of the noise is normal or laplace, not '{family}'", family=family
        )
    return NoiseResult(family, scale, distance, r.size, at_least, smallest, epsilon, delta, confidence, _fit(r, family))


def _is_rounding(residuals: Floats, apart: Floats) -> bool:
    return float(np.abs(residuals).max()) <= ROUNDING * float(np.abs(apart).max())


def _fit(residuals: Floats, family: str) -> float:
    """The p value of Kolmogorov-Smirnov against the family with the estimated scale. Estimating the scale makes the
    test rather too mild than too strict."""
    from scipy.stats import kstest

    r = residuals[:MOST_FOR_FIT]
    if not r.any():
        return 1.0
    if family == "normal":
        return float(kstest(r / np.sqrt(np.square(r).mean()), "norm").pvalue)
    return float(kstest(r / np.abs(r).mean(), "laplace").pvalue)


def noise_section(result: NoiseResult) -> Section:
    what = "standard deviation" if result.family == "normal" else "scale"
    norm = "l2" if result.family == "normal" else "l1"
    measured = (
        f"the {what} of the noise is at most {rounded_up(result.scale_at_most)}, and two latents are "
        f"{rounded_down(result.distance)} "
        f"apart in the {norm} norm"
    )
    if not result.fits:
        light, sentence = (
            Light.AMBER,
            (
                f"The noise does not look {'normal' if result.family == 'normal' else 'like Laplace noise'} (p value "
                f"{result.fit_p_value:.2g}), so nothing follows from its size."
            ),
        )
    elif result.refuted:
        light, sentence = Light.RED, (
            f"Refuted: {measured}, so epsilon is at least {rounded_down(result.epsilon)}"
            + ("" if result.delta is None else f" at delta {rounded_up(result.claimed_delta)} (and delta at least "
               f"{rounded_down(result.delta, 3)} at the claimed epsilon)")
            + f", and {rounded_up(result.claimed_epsilon)} is claimed."
        )  # fmt: skip
    else:
        light, sentence = (
            Light.GREEN,
            (
                f"Not refuted: {measured}; that shows an epsilon of at least {rounded_down(result.epsilon)}, and "
                f"{rounded_up(result.claimed_epsilon)} is claimed."
            ),
        )
    finding = Finding(
        "Size of the noise",
        light,
        sentence,
        f"Confidence {result.confidence:g}, given that the noise is independent {result.family} noise of one scale, as "
        "the mechanism says about itself.",
        refuted=result.refuted,
        numbers={
            "family": result.family,
            "scale_at_most": result.scale_at_most,
            "distance": result.distance,
            "epsilon_at_least": result.epsilon,
            "delta_at_least": result.delta,
            "claimed_epsilon": result.claimed_epsilon,
            "claimed_delta": result.claimed_delta,
            "fit_p_value": result.fit_p_value,
        },
    )
    return Section("Noise on the latent", f"{result.numbers:,} residuals were measured.", [finding])


def opposite_latents(bound: Bound, positions: int, width: int) -> Floats:
    """Two latents (2, positions, width) that a bound leaves as far apart as its sensitivities allow: opposite corners
    of its cube, opposite points +-(C / sqrt n) (1, ..., 1) of its l2 ball, or +-C e_1 in its l1 ball."""
    pair = np.zeros((2, positions, width))
    if bound.kind == "l1":
        pair[:, 0, 0] = bound.C, -bound.C
        return pair
    n = positions * width
    size = bound.C / math.sqrt(n) if bound.kind == "l2" else bound.C
    pair[0], pair[1] = size, -size
    return pair
