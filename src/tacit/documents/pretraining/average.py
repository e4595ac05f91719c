"""Weights between two trainings of one model: (1 - share) START + share MODEL.

Wortsman et al. 2022 ("Robust fine-tuning of zero-shot models") found that the straight line between a model and its
fine-tuned successor often passes points that are better than both ends. Here the successor was trained on with the
noise of an epsilon (DP-BART-PR+): at small epsilon it learns to write safe, frequent sentences and forgets rare words;
on the way back it still expects noise and knows the words again. Both ends learned from public text only, so what lies
between them is public too, and no guarantee changes: the bound and the noise are those of MODEL.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tacit.documents.autoencoders.base import Autoencoder
from tacit.errors import BadInputError, BadParameterError

if TYPE_CHECKING:
    from torch import Tensor


def average_weights(start: Autoencoder, model: Autoencoder, share: float) -> Autoencoder:
    """`model` with its weights moved toward those of `start`; a share of 1 leaves it as it was."""
    if not 0.0 < share <= 1.0:
        raise BadParameterError(
            "impossible-share", "the share of the second model is above 0 and at most 1, not {share:g}", share=share
        )
    before, after = start.module.state_dict(), model.module.state_dict()
    if start.kind != model.kind or _shapes(before) != _shapes(after):
        raise BadInputError(
            "models-do-not-match",
            "the two models have different shapes: give a model and one that was trained on from it",
        )
    if start.record.bound is not None and _kept(start.record.bound) != _kept(model.record.bound):
        raise BadInputError(
            "models-do-not-match",
            "the two models keep different columns: give a model and one that was trained on from it",
        )
    model.module.load_state_dict(
        {
            name: value.lerp(after[name], share) if value.is_floating_point() else after[name]
            for name, value in before.items()
        }
    )
    paid = list(dict.fromkeys(part for part in (start.record.private, model.record.private) if part is not None))
    model.record = replace(
        model.record,
        corpora=list(dict.fromkeys([*start.record.corpora, *model.record.corpora])),
        private=" and ".join(part for part in paid if part) if paid and all(paid) else ("" if paid else None),
    )
    return model


def _shapes(weights: dict[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in weights.items()}


def _kept(bound: dict[str, Any] | None) -> Any:
    return None if bound is None else bound.get("kept")
