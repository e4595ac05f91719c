"""Methods that make vectors noisy and whose published form breaks its promise."""

from __future__ import annotations

import math

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.claims.noise import opposite_latents
from tacit.auditing.claims.published_forward import DELTA, EPOCHS, published_forward
from tacit.auditing.published.result import PublishedCost, Refutation
from tacit.documents.bounds import ClipL2
from tacit.noise.response import response_matrix

BERT_WIDTH = 768


def spread(left: Floats, right: Floats) -> float:
    """The l1 distance of two vectors, without what adding up in floating point leaves behind."""
    return round(float(np.abs(left - right).sum()), 9)


def adept_as_published(epsilon: float = 10.0, numbers: int = 1_024, C: float = 1.0) -> Refutation:
    """ADePT: l2 clip to C, Laplace noise of scale 2 C / epsilon on each number."""
    left, right = opposite_latents(ClipL2(C), 1, numbers)
    return Refutation(
        f"ADePT on a latent of {numbers:,} numbers",
        epsilon,
        spread(left, right) * epsilon / (2 * C),
        "it clips in the l2 norm and adds Laplace noise for the l1 norm, which is larger by the root of the width",
    )


def fair_encoder_as_coded(epsilon: float = 10.0, numbers: int = 100) -> Refutation:
    """Maheshwari et al. 2022 in their public code: l2 normalization, Laplace noise of scale 2 / epsilon."""
    left, right = opposite_latents(ClipL2(1.0), 1, numbers)
    return Refutation(
        f"the public code of FEDERATE at its width of {numbers:,}",
        epsilon,
        spread(left, right) * epsilon / 2.0,
        "it divides by the l2 norm and takes 2 for the l1 sensitivity: the mistake of ADePT",
    )


def corners(width: int) -> tuple[Floats, Floats]:
    """Two representations that were shifted and scaled to reach from 0 to 1, as far apart as such vectors can be."""
    first = np.zeros(width)
    first[0] = 1.0
    return first, 1.0 - first


def dpnr_with_independent_noise(epsilon: float = 1.0, width: int = BERT_WIDTH) -> Refutation:
    """DPNR as its paper describes it: numbers in [0, 1], Laplace noise of scale 1 / epsilon on each."""
    left, right = corners(width)
    return Refutation(
        f"DPNR on {width} numbers in [0, 1], with fresh noise on each,",
        epsilon,
        spread(left, right) * epsilon,
        "the l1 sensitivity is the width, and 1 is used",
    )


def dpnr_as_coded(epsilon: float = 1.0, width: int = BERT_WIDTH) -> Refutation:
    """DPNR in its public code: one Laplace number for a text, added to all of its numbers."""
    left, right = corners(width)
    noise_cancels = not np.allclose(np.diff(left), np.diff(right))
    return Refutation(
        "the public code of DPNR, which draws one number for a text and adds it to all coordinates,",
        epsilon,
        math.inf if noise_cancels else float(np.abs(left - right).max()) * epsilon,
        "the noise cancels in the difference of two coordinates, which is released exactly",
    )


def word_dropout(epsilon: float = 8.0, dropped: float = 0.5) -> PublishedCost:
    """The price of a word when words are dropped at random: one that is dropped costs nothing, and nobody knows."""
    return PublishedCost(
        f"where a word costs epsilon {epsilon:g} and {dropped:.0%} of all words are dropped at random before, a word "
        "costs {value}: too many words for what it saves, so it is no option of Tacit",
        math.log1p((1 - dropped) * math.expm1(epsilon)),
    )


def cape_as_coded(epsilon: float = 1.0, width: int = BERT_WIDTH) -> Refutation:
    """CAPE in its public code: one noise vector for a batch; the difference of two of its texts is released exactly."""
    neighbor, other = corners(width)
    with_one, with_other = neighbor - other, other - other
    noise_cancels = not np.allclose(with_one, with_other)
    return Refutation(
        "the public code of CAPE, which adds one noise vector to all texts of a batch,",
        epsilon,
        math.inf if noise_cancels else 0.0,
        "the noise cancels in the difference of two texts; and with fresh noise the l1 sensitivity would be "
        f"{width}, not 1",
    )


def unary_encoding(epsilon: float = 8.0, width: int = BERT_WIDTH, bits: int = 10) -> PublishedCost:
    """A representation as bits that share a budget: how likely a bit stays what it is."""
    keep = float(response_matrix(epsilon / (width * bits), 2)[0, 0])
    return PublishedCost(
        f"where {width} numbers of {bits} bits share epsilon {epsilon:g}, a bit keeps its value with probability "
        "{value}, and a coin does so with probability 0.5",
        keep,
    )


def forward_noise_with_trained_encoder(epsilon: float = 3.0, width: int = 6) -> Refutation:
    """DP-FP: noise on the representation W x, and an optimizer that also moves W.

    Whatever vector g comes back through the noise, the gradient of W is g x^T: its rows are multiples of the raw
    input. Weights after a step on x differ from weights after a step on x' for every g but 0, so the two laws have no
    outcome in common.
    """
    x, other = np.eye(width)[0], np.eye(width)[1]
    back = 1.0 + np.arange(3.0)
    update, other_update = np.outer(back, x), np.outer(back, other)
    rows_show_the_input = np.allclose(update @ other, 0.0) and not np.allclose(other_update @ other, 0.0)
    return Refutation(
        "DP-FP, which adds noise to representations and trains the encoder below it,",
        epsilon,
        math.inf if rows_show_the_input else epsilon,
        "the gradient of a layer below the noise is an outer product with the raw input",
    )


def forward_settings() -> Refutation:
    """The command that DP-Forward publishes: central calibration of a local release, new noise in each epoch."""
    spent = published_forward()
    return Refutation(
        f"the published command of DP-Forward over its {EPOCHS} epochs",
        spent.claimed,
        spent.all_passes,
        "it calibrates as if a secret text of many were released, takes C for the distance of two texts, and draws new "
        f"noise in each epoch ({spent.one_pass:.1f} for one of them)",
        DELTA,
    )


def tokens_of_a_text(epsilon: float = 5.0, tokens: int = 20) -> PublishedCost:
    """A budget for each generated token, where every token is drawn from the whole text."""
    return PublishedCost(
        f"at epsilon {epsilon:g} for a token, a text of {tokens} tokens costs {{value}}, since each token is drawn "
        "from an encoding of the whole text",
        tokens * epsilon,
    )
