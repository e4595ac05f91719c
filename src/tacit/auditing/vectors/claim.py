"""Is the noise of a release as large as its card needs? A statistical test that can only refute.

    forward    residuals (released - bounded vector) bound the scale of the noise from above, and two bounded vectors
               can be 2 C apart (`tacit.auditing.claims.noise`)
    angular    the angles between released and clean vectors have a known law; angles that are too small refute it
               (one-sided Kolmogorov-Smirnov test)

Both are wrong about a true claim with a probability of at most 1 - confidence.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Floats, Floats32
from tacit.auditing.claims.noise import noise_check, noise_section, opposite_latents
from tacit.checks import LatentSamples
from tacit.embeddings.angular import Angular
from tacit.embeddings.base import VectorMechanism
from tacit.embeddings.forward import Forward
from tacit.noise.sphere import CELLS, AngularNoise
from tacit.report import Finding, Light, Section

CONFIDENCE = 0.999
FEWEST_ROWS = 20


def claim_section(mechanism: VectorMechanism, clean: Floats, released: Floats32) -> Section | None:
    """The check of the size of the noise; None where there is none for this mechanism, or too few rows."""
    if len(released) < FEWEST_ROWS:
        return None
    if isinstance(mechanism, Forward):
        return _noise_of_forward(mechanism, clean, released)
    if isinstance(mechanism, Angular) and mechanism.form == "angle":
        return _angles(mechanism, clean, released)
    return None


def _noise_of_forward(mechanism: Forward, clean: Floats, released: Floats32) -> Section:
    check = next(each for each in mechanism.checks() if isinstance(each, LatentSamples))
    bounded = mechanism.bound.apply(clean[:, np.newaxis, :])[:, 0]
    pair = mechanism.bound.apply(opposite_latents(mechanism.bound, *mechanism.latent_shape))
    return noise_section(
        noise_check(
            released.astype(np.float64) - bounded,
            (pair[0] - pair[1]).ravel(),
            str(check.family),
            check.epsilon + check.slack,
            delta=check.delta,
            confidence=CONFIDENCE,
        )
    )


def angle_distribution(noise: AngularNoise, angles: Floats) -> Floats:
    """The probability of at most each angle under the law, linear within a cell."""
    total = noise.cell_ends[-1]
    ends = np.array([0.0, *(end / total for end in noise.cell_ends)])
    return np.asarray(np.interp(angles, np.linspace(0.0, math.pi, CELLS + 1), ends))


def _angles(mechanism: Angular, clean: Floats, released: Floats32) -> Section:
    from scipy.stats import kstest

    lengths = np.linalg.norm(released.astype(np.float64), axis=1)
    cosines = np.einsum("ij,ij->i", released.astype(np.float64), clean) / np.where(lengths > 0, lengths, 1.0)
    angles = np.arccos(np.clip(cosines, -1.0, 1.0))
    noise = AngularNoise(mechanism.epsilon, mechanism.dimensions)
    p_value = float(kstest(angle_distribution(noise, angles), "uniform", alternative="greater").pvalue)
    refuted = p_value < 1.0 - CONFIDENCE
    sentence = (
        f"The released vectors are turned by {np.degrees(angles.mean()):.1f} degrees on average; angles as small as "
        f"these have probability {p_value:.2g} under the noise that the card claims."
    )
    finding = Finding(
        "Size of the angles",
        Light.RED if refuted else Light.GREEN,
        f"Refuted: {sentence}" if refuted else f"Not refuted: {sentence}",
        f"Confidence {CONFIDENCE:g}; one-sided Kolmogorov-Smirnov test.",
        refuted=refuted,
        numbers={"mean_angle": float(angles.mean()), "p_value": p_value, "claimed_epsilon": mechanism.epsilon},
    )
    return Section("Noise on the angle", f"{len(angles):,} angles were measured.", [finding])
