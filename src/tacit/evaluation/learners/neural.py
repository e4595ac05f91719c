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


@dataclass(frozen=True)
class Validation:
    """Rows that a learner does not learn from: its loss on them says when to stop.

    epochs     the most passes over the training rows
    patience   passes without a smaller loss before it stops; the weights of the smallest loss are kept
    """

    texts: Sequence[Text]
    labels: Sequence[Any]
    epochs: int = 50
    patience: int = 5


class NeuralLearner(ABC, Generic[Prepared]):
    """A network that is trained from its seed. Subclasses say how a batch of texts becomes scores.

    least_steps   a small training set is read more often than `epochs`, until this many steps are done
    validation    stop early by these rows, in place of a fixed number of epochs
    passes        the passes that the last training took
    """

    name: str
    random = True
    validation: Validation | None = None
    passes = 0

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

    def loss_on(self, texts: Sequence[Text], labels: Sequence[Any]) -> float:
        """The mean loss of the network on some rows; labels that no training row had are left out."""
        import torch

        known = set(self.targets.labels)
        kept = [i for i, label in enumerate(labels) if self.task == "similarity" or known.issuperset(
            label if self.task == "tagging" else [label])]  # fmt: skip
        prepared = self._prepared([texts[i] for i in kept])
        total = 0.0
        for start in range(0, len(kept), 4 * self.batch_size):
            part = prepared[start : start + 4 * self.batch_size]
            with torch.inference_mode():
                loss = self._loss(part, [labels[i] for i in kept[start : start + len(part)]])
            total += float(loss) * len(part)
        return total / max(1, len(kept))

    def _loss(self, batch: Sequence[Prepared], labels: Sequence[Any]) -> Tensor:
        scores = self._scores(batch)
        width = scores.shape[1] if self.task == "tagging" else 0
        numbers = self.targets.numbers(labels, [self._tokens_read(row) for row in batch], width)
        return self.targets.loss(scores, numbers.to(scores.device))

    def _train(self, prepared: list[Prepared], labels: Sequence[Any], seed: int) -> None:
        import torch

        weights = [weight for weight in self.network.parameters() if weight.requires_grad]
        optimizer = torch.optim.AdamW(weights, lr=self.learning_rate, weight_decay=0.01)
        rounds = -(-len(prepared) // self.batch_size)
        patient = self.validation
        epochs = max(self.epochs, -(-self.least_steps // rounds)) if patient is None else patient.epochs
        steps = epochs * rounds
        warm = max(1, (steps if patient is None else rounds) // 10)

        def rate(step: int) -> float:
            # Nobody knows beforehand when a training that stops early ends: its rate does not fall.
            falling = 1.0 if patient is not None else (steps - step) / max(1, steps - warm)
            return min((step + 1) / warm, falling)

        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
        stop = None if patient is None else EarlyStop(self, patient)
        self.network.train()
        for step, batch in enumerate(self._batches(len(prepared), epochs, seed), start=1):
            loss = self._loss([prepared[i] for i in batch], [labels[i] for i in batch])
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimizer.step()
            schedule.step()
            self.passes = -(-step // rounds)
            if self.progress is not None:
                self.progress(step, steps)
            if stop is not None and step % rounds == 0 and stop.after_a_pass():
                break
        if stop is not None:
            self.network.load_state_dict(stop.best)
        if self.progress is not None:
            self.progress(steps, steps)

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


class EarlyStop:
    """The smallest loss on validation rows so far, the weights that had it, and how long ago that was."""

    def __init__(self, learner: NeuralLearner[Any], validation: Validation) -> None:
        self.learner, self.validation = learner, validation
        self.loss, self.waited = float("inf"), 0
        self.best = self._weights()

    def after_a_pass(self) -> bool:
        """Whether training ends here."""
        self.learner.network.eval()
        loss = self.learner.loss_on(self.validation.texts, self.validation.labels)
        self.learner.network.train()
        if loss < self.loss:
            self.loss, self.waited, self.best = loss, 0, self._weights()
        else:
            self.waited += 1
        return self.waited >= self.validation.patience

    def _weights(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.learner.network.state_dict().items()}
