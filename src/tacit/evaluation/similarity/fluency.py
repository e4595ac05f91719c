"""Perplexity of the released texts under a public language model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.arrays import Floats
from tacit.documents.language_models import CausalModel, Generator, load_causal
from tacit.evaluation.scores import Interval, bootstrap_interval
from tacit.evaluation.similarity.measure import Measure, check_pairs
from tacit.noise.source import public_generator
from tacit.progress import StepProgress

PERPLEXITY = "perplexity"
PERPLEXITY_TOKENS = 64


def surprise(texts: Sequence[str], model: CausalModel, progress: StepProgress | None = None) -> Floats:
    """(texts, 2): the summed surprise (nats) of the first tokens of each text, and how many tokens that is."""
    import torch

    first = list(model.special_frame().before) or [model.end if model.end is not None else model.pad]
    rows = [[*first, *model.tokens(text, PERPLEXITY_TOKENS)] for text in texts]
    surprises = np.zeros((len(rows), 2))
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for start in range(0, len(order), 16):
        batch = order[start : start + 16]
        longest = max(len(rows[i]) for i in batch)
        ids = torch.tensor([rows[i] + [model.pad] * (longest - len(rows[i])) for i in batch]).to(model.device)
        mask = torch.tensor([[1] * len(rows[i]) + [0] * (longest - len(rows[i])) for i in batch]).to(model.device)
        if longest > len(first):
            with torch.inference_mode():
                logits = model.model(input_ids=ids, attention_mask=mask).logits[:, len(first) - 1 : -1].float()
                losses = torch.nn.functional.cross_entropy(
                    logits.transpose(1, 2), ids[:, len(first) :], reduction="none"
                )
                counted = mask[:, len(first) :].float()
                sums = (losses * counted).sum(dim=1)
            surprises[batch] = torch.stack([sums, counted.sum(dim=1)], dim=1).cpu().double().numpy()
        if progress is not None:
            progress(start + len(batch), len(order))
    return surprises


def perplexity(
    originals: Sequence[str],
    releases: Sequence[str],
    model: str | Generator = "smollm2",
    progress: StepProgress | None = None,
) -> Measure:
    """Perplexity per token of the released texts. Lower is more fluent; it says nothing about what they mean."""
    check_pairs(originals, releases)
    judge = load_causal(model, PERPLEXITY)
    rng = public_generator(1)
    salad = [" ".join(rng.permutation(np.array(text.split(), dtype=object)).tolist()) for text in releases]
    table = surprise([*originals, *releases, *salad], judge, progress)
    parts = table[: len(originals)], table[len(originals) : 2 * len(originals)], table[2 * len(originals) :]

    def of(rows: Floats) -> float:
        tokens = rows[:, 1].sum()
        return math.exp(rows[:, 0].sum() / tokens) if tokens else math.nan

    before, after, floor = (of(part) for part in parts)
    if math.isnan(after):
        interval = Interval(after, math.nan, math.nan, len(releases))
    else:
        interval = bootstrap_interval(lambda at: of(parts[1][at]) if parts[1][at, 1].sum() else after, len(releases))
    note = f"{judge.name}, first {PERPLEXITY_TOKENS} tokens; floor: the released words in random order; lower is better"
    per_text = parts[1][:, 0] / np.maximum(parts[1][:, 1], 1)
    return Measure("perplexity", interval, floor, before, len(releases), note, logarithmic=True, per_text=per_text)
