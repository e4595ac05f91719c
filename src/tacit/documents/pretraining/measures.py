"""How well a model repeats held-out texts, without noise and with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from tacit.documents.autoencoders.base import (
    Autoencoder,
)
from tacit.documents.bounds import Bound, ClipL1, ClipL2, ClipValue, LatentNoise
from tacit.documents.pretraining.corpus import PublicText
from tacit.documents.pretraining.folders import BLEU
from tacit.errors import BadParameterError, require

if TYPE_CHECKING:
    from torch import Tensor
from tacit.documents.pretraining.batches import texts_to_train_and_measure
from tacit.documents.pretraining.plan import PretrainingPlan, seed_of_step, target_scale


def mean_size(bound: Bound, n: int) -> float:
    """The largest root mean square of n bounded numbers: C in a cube, C / sqrt(n) and C / n spread over a ball."""
    return bound.C / {"value": 1.0, "l2": math.sqrt(n), "l1": float(n)}[bound.kind]


def held_out_loss(
    autoencoder: Autoencoder,
    ids: Tensor,
    plan: PretrainingPlan,
    bound: Bound | None,
    noise: LatentNoise | None,
    weights: Tensor | None = None,
) -> float:
    """Mean loss on texts that training does not see, with the noise of the target, and always the same noise."""
    autoencoder.module.eval()
    torch.manual_seed(seed_of_step(plan.seed, -1))
    losses: list[float] = []
    with torch.inference_mode():
        for number, start in enumerate(range(0, len(ids), 256)):
            part = ids[start : start + 256]
            latents = autoencoder.latents(part)
            scale = None
            if bound is not None and noise is not None and plan.epsilons:
                scale = noise.scale(bound, bound.count(*latents.shape[1:]), target_scale(plan, number))
            latents = noisy(latents, bound, noise, scale)
            losses += [float(autoencoder.loss(latents, part, weights))] * len(part)
    return float(np.mean(losses))


def noisy(latents: Tensor, bound: Bound | None, noise: LatentNoise | None, scale: float | None) -> Tensor:
    """The tensor counterpart of `bounds.release`, with gradients; for public text only."""
    if bound is None:
        return latents
    latents = clipped(latents, bound)
    if noise is None or scale is None:
        return latents
    columns = bound.columns(latents.shape[2])
    shape = (*latents.shape[:2], len(columns))
    # Drawn on the processor, so that a seed gives the same noise on every device.
    drawn = torch.randn(shape) if noise.kind == "gaussian" else torch.distributions.Laplace(0.0, 1.0).sample(shape)
    drawn = drawn.to(latents.device)
    if len(columns) == latents.shape[2]:
        return latents + drawn * scale
    added = torch.zeros_like(latents)
    added[:, :, torch.from_numpy(columns).to(latents.device)] = drawn * scale
    return latents + added


def clipped(latents: Tensor, bound: Bound) -> Tensor:
    """The bound in torch. Release uses `Bound.apply`, which is exact."""
    if isinstance(bound, ClipValue):
        mask = torch.zeros(latents.shape[2])
        mask[torch.from_numpy(bound.columns(latents.shape[2]))] = 1.0
        return latents.clamp(-bound.C, bound.C) * mask.to(latents.device)
    if not isinstance(bound, ClipL1 | ClipL2):
        raise BadParameterError(
            "unknown-bound", "training knows no bound '{kind}': use l1, l2 or value", kind=bound.kind
        )
    flat = latents.flatten(1)
    norm: Tensor = torch.linalg.vector_norm(flat, ord=1 if isinstance(bound, ClipL1) else 2, dim=1, keepdim=True)
    return (flat * (bound.C / norm.clamp(min=bound.C))).reshape(latents.shape)


def reconstruction_bleu(
    autoencoder: Autoencoder,
    texts: Sequence[str],
    *,
    bound: Bound | None = None,
    beams: int = 1,
    lowercase: bool = False,
    batch_size: int = 128,
) -> float:
    """Corpus BLEU (sacrebleu, 0 to 100) of texts encoded, bounded and decoded without noise."""
    sacrebleu = require("sacrebleu", extra="documents", purpose="measuring BLEU")
    decoded: list[str] = []
    for start in range(0, len(texts), batch_size):
        latents = autoencoder.encode(texts[start : start + batch_size])
        decoded += autoencoder.decode(latents if bound is None else bound.apply(latents), beams=beams)
    return float(sacrebleu.corpus_bleu(decoded, [list(texts)], lowercase=lowercase).score)


def held_out_bleu(
    autoencoder: Autoencoder, corpus: PublicText, held_out: int, *, join: bool = False, lowercase: bool = False
) -> dict[str, float]:
    """BLEU on up to 500 held-out texts, and on joined ones if the model was trained with those."""
    bound = autoencoder.record.trained_bound()
    measured = {BLEU: corpus.split(held_out)[1]}
    if join:
        measured["held_out_bleu_joined"] = texts_to_train_and_measure(autoencoder, corpus, held_out, join=True)[1]
    return {
        name: round(reconstruction_bleu(autoencoder, texts[:500], bound=bound, lowercase=lowercase), 2)
        for name, texts in measured.items()
    }
