"""The spending of DP-Forward as published (Du et al., CCS 2023, and its code), computed from its own settings.

The published form adds N(0, sigma^2) to token vectors that were clipped to Frobenius norm C = 1, and claims local
(epsilon, delta) = (8, 1e-5) for a text. Any two texts are neighbors, so two clipped vectors can be 2 C apart. A text
whose noise is drawn anew in each of E epochs is released E times: with equal sigma that is one Gaussian release at
sqrt(E) times the distance.

    sensitivity C in place of 2 C                   sigma 0.600:  19.2 for one pass, 40.6 for three
    and central calibration with sampling 1 / n     sigma 0.319:  45.7 for one pass, 105 for three

(rounded up; before rounding 104.4). The second sigma is the noise multiplier that the published command arrives at; it
would be right for an observer of a mean over n texts, of which a secret one is drawn, and what leaves is every text.

>>> published = published_forward()
>>> f"{published.claimed:g} {published.one_pass:.1f} {published.all_passes:.1f}"
'8 45.6 104.4'
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from tacit.arrays import Floats
from tacit.noise.gaussian import add_gaussian, analytic_gaussian_sigma, gaussian_epsilon
from tacit.noise.source import Source

CLAIMED_EPSILON: Final = 8.0
DELTA: Final = 1e-5
CLIP: Final = 1.0
EPOCHS: Final = 3
CENTRAL_MULTIPLIER: Final = 0.319
"""The noise multiplier of the published command, calibrated for sampling rate 1 / n."""


@dataclass(frozen=True)
class SpentByForward:
    """The claim for a text, and what one pass over the data and all of them spend."""

    claimed: float
    sigma: float
    one_pass: float
    all_passes: float


def published_forward(*, central: bool = True, epochs: int = EPOCHS) -> SpentByForward:
    """The loss of the published settings between two clipped texts at delta 1e-5; with `central=False`, of the local
    calibration, whose only mistakes are the sensitivity and the repeated noise."""
    sigma = CENTRAL_MULTIPLIER if central else analytic_gaussian_sigma(CLAIMED_EPSILON, DELTA, CLIP)
    return SpentByForward(
        CLAIMED_EPSILON,
        sigma,
        gaussian_epsilon(sigma, DELTA, 2 * CLIP),
        gaussian_epsilon(sigma, DELTA, 2 * CLIP * math.sqrt(epochs)),
    )


def published_noisy_latents(latents: Floats, epsilon: float, delta: float, source: Source) -> Floats:
    """Clipped vectors with noise for sensitivity C, as published: a fixture that an audit must refute."""
    flat = latents.reshape(len(latents), -1)
    lengths = np.sqrt(np.square(flat).sum(axis=1))
    clipped = flat * np.minimum(1.0, CLIP / np.maximum(lengths, 1e-300))[:, np.newaxis]
    noisy = add_gaussian(clipped, sigma=analytic_gaussian_sigma(epsilon, delta, CLIP), source=source)
    return noisy.reshape(latents.shape)
