"""Min-K%++: membership in a causal language model by its least expected tokens (Zhang et al., ICLR 2025).

    z_t = (ln p(x_t | x_<t) - mean) / standard deviation,     both over tokens drawn from p(. | x_<t)

The signal is the mean of the lowest 20 % of the z_t of a text: in training texts even the rare tokens lie near a mode
of the prediction. It needs no reference model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.models.scores.networks import CausalScorer
from tacit.progress import StepProgress

LOWEST = 0.2


def min_k_signal(
    scorer: CausalScorer, texts: Sequence[str], progress: StepProgress | None = None, *, lowest: float = LOWEST
) -> Floats:
    """The signal of each text; not a number for texts without any token to predict."""
    signal = np.full(len(texts), np.nan)
    torch, done = scorer.torch, 0
    for places, logits, targets in scorer.predictions(texts):
        if targets.shape[1]:
            logs = logits.double().log_softmax(dim=-1)
            chances = logs.exp()
            # A token of probability 0 has no part in the mean, and minus infinity times 0 is not a number.
            finite = logs.clamp_min(-1e4)
            mean = (chances * finite).sum(dim=-1)
            spread = ((chances * finite.square()).sum(dim=-1) - mean.square()).clamp_min(1e-12).sqrt()
            own = finite.gather(-1, targets[..., None])[..., 0]
            scores = ((own - mean) / spread).sort(dim=1).values
            count = max(1, int(lowest * targets.shape[1]))
            signal[places] = torch.mean(scores[:, :count], dim=1).numpy()
        done += len(places)
        if progress:
            progress(done, len(texts))
    return signal
