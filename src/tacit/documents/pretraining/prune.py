"""DP-BART-PR: fewer encoder neurons, so less noise (Igamberdiev 2023, section 6.3.4, Algorithm 1).

    importance of neuron j   sum over i of |W_K[i, j]|, W_K the key projection of the cross-attention in the FIRST
                             decoder layer (in torch's layout, (out, in), column j reads encoder neuron j)
    each of 6 stages         prune the neurons below the 25 % quantile of what is left; then train on public text with
                             the pruned columns at 0 and the others clamped
    rewriting                weights of the last stage with the kept columns of the stage before (the k - 1 trick)

On a width of 768 this prunes 192, 336, 444, 525, 586, 632 neurons; stage 5 leaves 182, so n = 20 * 182 = 3,640. The
same columns are 0 for every document and position: they carry nothing and add nothing to the sensitivity.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.documents.autoencoders.base import Autoencoder
from tacit.documents.bounds import ClipValue
from tacit.documents.pretraining.corpus import PublicText, declared
from tacit.errors import BadInputError, BadParameterError

STAGES = 6
QUANTILE = 0.25


def next_kept(importance: NDArray[Any], kept: Sequence[int], quantile: float = QUANTILE) -> tuple[int, ...]:
    """The kept columns without those below the quantile of their importances."""
    if not 0 < quantile < 1:
        raise BadParameterError(f"the quantile to prune lies between 0 and 1, not {quantile}")
    columns = np.asarray(kept, dtype=np.int64)
    values = np.asarray(importance, dtype=np.float64)[columns]
    left = columns[values >= np.quantile(values, quantile)]
    return tuple(int(column) for column in left)


def key_importance(autoencoder: Autoencoder) -> NDArray[np.float64]:
    """Column sums of |W_K| of the first decoder layer's cross-attention."""
    model = getattr(autoencoder, "model", None)
    if autoencoder.kind != "bart" or model is None:
        raise BadInputError(f"pruning is defined for a BART, and this model is of the kind '{autoencoder.kind}'")
    weight = model.get_decoder().layers[0].encoder_attn.k_proj.weight
    importance: NDArray[np.float64] = weight.detach().double().abs().sum(dim=0).numpy()
    return importance


def prune(
    autoencoder: Autoencoder,
    corpus: PublicText,
    folder: Path,
    *,
    C: float,
    stages: int = STAGES,
    quantile: float = QUANTILE,
    steps: int = 500,
    batch_size: int = 32,
    learning_rate: float = 1e-4,
    held_out: int = 1_000,
    seed: int = 0,
    resume: bool = False,
    progress: Any = None,
) -> ClipValue:
    """Prune and retrain in place; returns the bound to rewrite with. Stages that are finished are not repeated."""
    from tacit.documents.autoencoders.base import load_autoencoder
    from tacit.documents.pretraining.loop import Plan, train

    corpus = declared(corpus)
    if stages < 2:
        raise BadParameterError("pruning needs at least 2 stages: the last one's weights go with the one before")
    kept: tuple[int, ...] = tuple(range(autoencoder.width))
    history: list[tuple[int, ...]] = []
    for stage in range(1, stages + 1):
        place = folder / f"stage-{stage}"
        if resume and (place / "tacit.json").exists():
            done = load_autoencoder(place)
            autoencoder.module.load_state_dict(done.module.state_dict())
            bound = done.record.trained_bound()
            assert isinstance(bound, ClipValue)
            kept = bound.kept or kept
            history.append(kept)
            continue
        kept = next_kept(key_importance(autoencoder), kept, quantile)
        history.append(kept)
        plan = Plan(
            steps=steps,
            batch_size=batch_size,
            learning_rate=learning_rate,
            evaluate_every=max(1, steps // 2),
            patience=1_000,
            held_out=held_out,
            seed=seed + stage,
        )
        bound = ClipValue(C, kept)
        train(autoencoder, corpus, plan, place, bound=bound, resume=resume, progress=progress)
        autoencoder.record.bound = bound.to_dict()
        autoencoder.save_pretrained(place)
    chosen = ClipValue(C, history[-2])
    autoencoder.record.bound = chosen.to_dict()
    autoencoder.record.pruning = {
        "stages": stages,
        "quantile": quantile,
        "pruned": [autoencoder.width - len(columns) for columns in history],
        "rule": "weights of the last stage, kept columns of the stage before",
    }
    return chosen
