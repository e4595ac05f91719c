"""The losses of a private writer, by which canaries are looked for in it. Loads torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from tacit.arrays import Floats
from tacit.auditing.models.canaries import Losses
from tacit.auditing.models.scores.losses import TextLosses, finite_losses
from tacit.auditing.models.scores.networks import CausalScorer
from tacit.devices import device_of, moved
from tacit.progress import StepProgress
from tacit.training.synthesis import PrivateWriter

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

LABELS = 4
TEXTS_AT_A_TIME = 64


def writer_losses(writer: PrivateWriter, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Losses:
    """The loss of a text, the mean over the control codes of the most frequent labels: canaries may stand under any."""
    counts = writer.counts.counts
    frequent = sorted(counts, key=lambda combination: -counts[combination])[:LABELS]

    def losses(texts: Sequence[str]) -> Floats:
        total = np.zeros(len(texts))
        with torch.inference_mode():
            for combination in frequent:
                codes = dict(zip(writer.task.codes.columns, combination, strict=True))
                for start in range(0, len(texts), TEXTS_AT_A_TIME):
                    part = texts[start : start + TEXTS_AT_A_TIME]
                    encoded = [writer.task.encode({"text": text, **codes}, tokenizer, train=True) for text in part]
                    batch = moved(writer.task.collate(encoded, tokenizer), device_of(model))
                    pieces = (batch["targets"] != -100).sum(1)
                    total[start : start + len(part)] += (writer.task.loss(model, batch) * pieces).cpu().numpy()
        return total / len(frequent)

    return losses


class WriterScorer(CausalScorer):
    """The model that 'tacit synthesize' trains to write: texts under its control codes, as in training. Labels are not
    looked at: the loss is the mean over the codes of the most frequent ones."""

    def __init__(self, folder: Path, longest: int) -> None:
        writer = PrivateWriter.open(folder)
        model, tokenizer = writer.load()
        super().__init__(model, tokenizer, folder.name, writer.task.length, longest)
        self._losses_under_codes = writer_losses(writer, self.model, tokenizer)

    def losses(
        self, texts: Sequence[str], labels: Sequence[str] | None = None, progress: StepProgress | None = None
    ) -> TextLosses:
        rows, cut = self._rows(texts)
        total = self._losses_under_codes(texts)
        if progress:
            progress(len(texts), len(texts))
        tokens = np.array([max(1, len(row)) for row in rows], dtype=np.int64)
        return TextLosses(finite_losses(total, self.name), tokens, cut)
