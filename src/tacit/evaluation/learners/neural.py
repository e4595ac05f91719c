"""The base of neural learners: targets as numbers, one training loop, one way to predict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from tacit.devices import chosen_device
from tacit.errors import BadParameterError, require
from tacit.evaluation.learners.base import (
    Task,
    Text,
    check_trainable,
    flat_labels,
)
from tacit.evaluation.scores import Label, label_order, most_frequent
from tacit.noise.source import public_generator
from tacit.progress import StepProgress

if TYPE_CHECKING:
    from torch import Tensor, nn

IGNORED = -100
Prepared = TypeVar("Prepared", bound=Sized)
"""A text as a network reads it."""
"""The target of a padded token, which counts in no loss."""


@dataclass(frozen=True)
class Targets:
    """Labels as numbers and back."""

    task: Task
    labels: tuple[Label, ...] = ()
    common: Label = None
    mean: float = 0.0
    spread: float = 1.0

    @classmethod
    def of(cls, task: Task, labels: Sequence[Any]) -> Targets:
        if task == "similarity":
            numbers = np.asarray(labels, dtype=np.float64)
            return cls(task, mean=float(numbers.mean()), spread=float(numbers.std()) or 1.0)
        flat = flat_labels(task, labels)
        return cls(task, label_order(flat), most_frequent(flat))

    @property
    def outputs(self) -> int:
        return 1 if self.task == "similarity" else len(self.labels)

    def numbers(self, labels: Sequence[Any], read: Sequence[int], width: int) -> Tensor:
        """`read`: how many tokens of each text the model sees; `width`: how many columns its scores have."""
        import torch

        if self.task == "similarity":
            return torch.tensor([(float(label) - self.mean) / self.spread for label in labels])
        place = {label: i for i, label in enumerate(self.labels)}
        if self.task != "tagging":
            return torch.tensor([place[label] for label in labels])
        rows = [[place[tag] for tag in tags[:count]] for tags, count in zip(labels, read, strict=True)]
        return torch.tensor([row + [IGNORED] * (width - len(row)) for row in rows])

    def loss(self, scores: Tensor, numbers: Tensor) -> Tensor:
        from torch.nn import functional

        if self.task == "similarity":
            return functional.mse_loss(scores.squeeze(-1), numbers)
        return functional.cross_entropy(scores.flatten(0, -2), numbers.flatten(), ignore_index=IGNORED)

    def answers(self, scores: Tensor, read: Sequence[int], lengths: Sequence[int]) -> list[Any]:
        if self.task == "similarity":
            return [float(score) * self.spread + self.mean for score in scores.squeeze(-1)]
        best = scores.argmax(dim=-1).tolist()
        if self.task != "tagging":
            return [self.labels[i] for i in best]
        # What a model could not read gets the commonest tag.
        tags = [[self.labels[i] for i in row[:count]] for row, count in zip(best, read, strict=True)]
        return [row + [self.common] * (length - len(row)) for row, length in zip(tags, lengths, strict=True)]


class NeuralLearner(ABC, Generic[Prepared]):
    """A network that is trained from its seed. Subclasses say how a batch of texts becomes scores.

    least_steps   a small training set is read more often than `epochs`, until this many steps are done
    """

    name: str
    random = True

    def __init__(
        self,
        task: Task,
        *,
        epochs: int,
        batch_size: int,
        learning_rate: float,
        least_steps: int = 0,
        progress: StepProgress | None = None,
    ) -> None:
        require("torch", extra="documents", purpose="a neural learner")
        if epochs < 1 or batch_size < 1 or not learning_rate > 0:
            raise BadParameterError(
                "impossible-learner", "a neural learner needs at least one epoch, one text a batch and a positive rate"
            )
        self.task = task
        self.epochs, self.batch_size, self.learning_rate = epochs, batch_size, learning_rate
        self.least_steps = least_steps
        self.progress = progress

    @abstractmethod
    def _build(self, outputs: int) -> nn.ModuleDict: ...

    @abstractmethod
    def _prepared(self, texts: Sequence[Any]) -> list[Prepared]:
        """Each text as whatever `_scores` takes a batch of."""

    @abstractmethod
    def _scores(self, batch: Sequence[Prepared]) -> Tensor:
        """(texts, outputs), or (texts, tokens, outputs) for tagging."""

    def fit(self, texts: Sequence[Text], labels: Sequence[Any], seed: int = 0) -> Self:
        import torch

        check_trainable(texts, labels, self.task)
        self.targets = Targets.of(self.task, labels)
        prepared = self._prepared(texts)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = self._build(self.targets.outputs).to(chosen_device())
            self._train(prepared, labels, seed)
        self.network.eval()
        return self

    def _train(self, prepared: list[Prepared], labels: Sequence[Any], seed: int) -> None:
        import torch

        weights = [weight for weight in self.network.parameters() if weight.requires_grad]
        optimizer = torch.optim.AdamW(weights, lr=self.learning_rate, weight_decay=0.01)
        rounds = -(-len(prepared) // self.batch_size)
        epochs = max(self.epochs, -(-self.least_steps // rounds))
        steps = epochs * rounds
        warm = max(1, steps // 10)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
        )
        self.network.train()
        for step, batch in enumerate(self._batches(len(prepared), epochs, seed), start=1):
            scores = self._scores([prepared[i] for i in batch])
            width = scores.shape[1] if self.task == "tagging" else 0
            read = [self._tokens_read(prepared[i]) for i in batch]
            numbers = self.targets.numbers([labels[i] for i in batch], read, width)
            loss = self.targets.loss(scores, numbers.to(scores.device))
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            schedule.step()
            if self.progress is not None:
                self.progress(step, steps)

    def _batches(self, count: int, epochs: int, seed: int) -> Iterator[Sequence[int]]:
        rng = public_generator(seed)
        for _ in range(epochs):
            order = rng.permutation(count).tolist()
            for start in range(0, count, self.batch_size):
                yield order[start : start + self.batch_size]

    def predict(self, texts: Sequence[Text]) -> list[Any]:
        import torch

        prepared = self._prepared(texts)
        order = sorted(range(len(texts)), key=lambda i: self._length(prepared[i]))
        answers: list[Any] = [None] * len(texts)
        for start in range(0, len(order), 4 * self.batch_size):
            batch = order[start : start + 4 * self.batch_size]
            with torch.inference_mode():
                scores = self._scores([prepared[i] for i in batch])
            lengths = [len(texts[i]) if self.task == "tagging" else 0 for i in batch]
            read = [self._tokens_read(prepared[i]) for i in batch]
            for i, answer in zip(batch, self.targets.answers(scores, read, lengths), strict=True):
                answers[i] = answer
        return answers

    def _length(self, prepared: Prepared) -> int:
        """The length of a text, for grouping texts of about the same length."""
        return len(prepared)

    def _tokens_read(self, prepared: Prepared) -> int:
        """The number of tokens of a text to be tagged that the model sees."""
        return len(prepared)
