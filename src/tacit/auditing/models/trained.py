"""Losses of models that `tacit train` has made to label texts, read as in training: cut to the same length, filled up
in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.models.scores import (
    ClassifierScorer,
    TextLosses,
)
from tacit.auditing.models.scores.losses import finite_losses
from tacit.devices import device_of, moved
from tacit.errors import BadInputError
from tacit.progress import StepProgress
from tacit.training.origin import SETTINGS

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from tacit.training.tasks import Encoded, Task

ROWS = 32


def trained_scorer(folder: Path) -> TrainedScorer | None:
    """The scorer of a folder of `tacit train classify` or `regress`; None for any other folder."""
    from tacit.training.prediction import load_trained

    if not (folder / SETTINGS).is_file():
        return None
    task, model, tokenizer = load_trained(folder)
    return TrainedScorer(task, model, tokenizer, folder.name) if task.name in ("classify", "regress") else None


class TrainedScorer(ClassifierScorer):
    """-ln p(label | text), the squared error where labels are numbers, and without labels -ln of the largest
    probability."""

    def __init__(self, task: Task, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
        super().__init__(model, tokenizer, name, task.length)
        self.task = task

    def losses(
        self, texts: Sequence[str], labels: Sequence[str] | None = None, progress: StepProgress | None = None
    ) -> TextLosses:
        if self.task.name == "classify":
            self._marks(labels, len(texts))
        elif labels is None:
            raise BadInputError(
                "labels-missing",
                "{name} guesses numbers, which says nothing without the true ones: name the column of the labels",
                name=self.name,
            )
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        encoded = [self.task.encode({"text": text}, self.tokenizer, train=False) for text in clean]
        cut = sum(len(self.tokenizer(text, verbose=False)["input_ids"]) > self.task.length for text in clean)
        total = np.zeros(len(texts))
        order = sorted(range(len(texts)), key=lambda place: len(encoded[place]["input_ids"]))
        for start in range(0, len(order), ROWS):
            batch = order[start : start + ROWS]
            total[batch] = self._of([encoded[i] for i in batch], None if labels is None else [labels[i] for i in batch])
            if progress:
                progress(start + len(batch), len(texts))
        return TextLosses(finite_losses(total, self.name), np.ones(len(texts), dtype=np.int64), cut)

    def _of(self, encoded: list[Encoded], labels: list[str] | None) -> Floats:
        from tacit.training.tasks.base import model_inputs

        with self.torch.inference_mode():
            batch = moved(self.task.collate(encoded, self.tokenizer), device_of(self.model))
            logits = self.model(**model_inputs(batch)).logits.cpu().double()
        if self.task.name == "regress":
            assert labels is not None
            true = np.array(
                [self.task.encode({"text": "", "label": x}, self.tokenizer, train=True)["label"] for x in labels]
            )
            return np.asarray((logits[:, 0].numpy() - true) ** 2)
        scores = logits.log_softmax(dim=-1)
        if labels is None:
            return np.asarray(-scores.max(dim=1).values.numpy())
        return np.asarray(-scores.gather(1, self._tensor(self._marks(labels, len(labels))).cpu())[:, 0].numpy())
