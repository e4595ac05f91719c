"""A task of its own, from nothing but the base class: the mood of a line, among moods that are public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from torch import Tensor, nn, no_grad

from tacit.parameters import parameter
from tacit.training.tasks import Encoded, Row, Task
from tacit.training.tasks.base import encode_text, label_options, model_inputs, random_inputs

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass
class Lines(Task):
    """The mood of a line.

    order    forward, or the words of a line backward
    weight   how much a loss counts
    """

    order: str = parameter("forward", choices=("forward", "backward"))
    weight: float = parameter(1.0, low=0.5, high=2.0)

    name: ClassVar[str] = "toy-lines"
    help: ClassVar[str] = "the mood of each line"
    roles: ClassVar[tuple[str, ...]] = ("line", "mood")
    model_class: ClassVar[str] = "AutoModelForSequenceClassification"
    target: ClassVar[str] = "mood"
    target_is_label: ClassVar[bool] = True

    def learn(self, rows: Sequence[Row]) -> None:
        self.check_rows(rows)
        self.labels = self.labels or ["gay", "sad"]

    def model_options(self) -> dict[str, object]:
        return label_options(self.labels)

    def encode(self, row: Row, tokenizer: PreTrainedTokenizerBase, *, train: bool) -> Encoded:
        words = row["line"].split()
        encoded = encode_text(tokenizer, self.length, " ".join(words if self.order == "forward" else words[::-1]))
        return {**encoded, "mood": self.labels.index(row["mood"])} if train else encoded

    def loss(self, model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
        logits = model(**model_inputs(batch)).logits
        return self.weight * nn.functional.cross_entropy(logits, batch["mood"], reduction="none")

    @no_grad()
    def predict(
        self, model: nn.Module, batch: Mapping[str, Tensor], tokenizer: PreTrainedTokenizerBase, rows: Sequence[Row]
    ) -> list[str]:
        return [self.labels[i] for i in model(**model_inputs(batch)).logits.argmax(-1).tolist()]

    def scores(self, truth: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
        return {"share of right moods": float(np.mean([a == b for a, b in zip(truth, predicted, strict=True)]))}

    def probe(self, generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        return {**random_inputs(generator, tokenizer, self.length), "mood": int(generator.integers(len(self.labels)))}
