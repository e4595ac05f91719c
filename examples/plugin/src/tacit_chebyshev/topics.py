"""A task: all topics of a text, any number of them, separated by "|" in their column."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from torch import Tensor, nn, no_grad

from tacit.errors import BadInputError
from tacit.parameters import parameter
from tacit.training.gradients import Batch
from tacit.training.tasks import Encoded, Row, Task
from tacit.training.tasks.base import encode_text, label_options, model_inputs, random_inputs

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass
class Topics(Task):
    """All topics of each text. The fields below are options of `tacit train topics`, and are saved with a model.

    threshold   how probable a topic must be to be predicted
    """

    threshold: float = parameter(0.5, low=0.0, high=1.0)

    name: ClassVar[str] = "topics"
    help: ClassVar[str] = "all topics of each text, separated by |"
    roles: ClassVar[tuple[str, ...]] = ("text", "topics")
    target: ClassVar[str] = "topics"
    target_is_label: ClassVar[bool] = True
    model_class: ClassVar[str] = "AutoModelForSequenceClassification"

    def learn(self, rows: Sequence[Row]) -> None:
        """Take the names of the topics from the rows, unless they were given. Nothing else may be learned here: this
        has no noise, and the card says of labels alone that their names are not covered."""
        self.check_rows(rows)
        observed = {topic for row in rows for topic in _topics(row["topics"])}
        self.labels = self.labels or sorted(observed)
        if not observed <= set(self.labels) or not self.labels:
            raise BadInputError("topics-not-listed", "there are topics in the rows that are not in the given list")

    def model_options(self) -> dict[str, Any]:
        return {**label_options(self.labels), "problem_type": "multi_label_classification"}

    def encode(self, row: Row, tokenizer: "PreTrainedTokenizerBase", *, train: bool) -> Encoded:
        encoded = encode_text(tokenizer, self.length, row["text"])
        if train:
            given = set(_topics(row["topics"]))
            encoded |= {f"topic_{i}": float(label in given) for i, label in enumerate(self.labels)}
        return encoded

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """One loss for each record, from this record alone."""
        logits = model(**model_inputs(batch)).logits
        given = [batch[f"topic_{i}"] for i in range(len(self.labels))]
        losses = [
            nn.functional.binary_cross_entropy_with_logits(logits[:, i], topic, reduction="none")
            for i, topic in enumerate(given)
        ]
        return sum(losses[1:], losses[0]) / len(losses)

    @no_grad()
    def predict(
        self, model: nn.Module, batch: Batch, tokenizer: "PreTrainedTokenizerBase", rows: Sequence[Row]
    ) -> list[str]:
        probable = model(**model_inputs(batch)).logits.sigmoid() >= self.threshold
        return [
            "|".join(label for label, yes in zip(self.labels, row, strict=True) if yes) for row in probable.tolist()
        ]

    def scores(self, truth: Sequence[str], predicted: Sequence[str]) -> dict[str, float]:
        pairs = [(set(_topics(a)), set(_topics(b))) for a, b in zip(truth, predicted, strict=True)]
        both = sum(len(a & b) for a, b in pairs)
        return {"micro-F1": 2 * both / max(1, sum(len(a) + len(b) for a, b in pairs))}

    def probe(self, generator: np.random.Generator, tokenizer: "PreTrainedTokenizerBase") -> Encoded:
        """A made-up record, with which gradients are compared before the private ones are read."""
        made = random_inputs(generator, tokenizer, self.length)
        return {**made, **{f"topic_{i}": float(generator.integers(2)) for i in range(len(self.labels))}}


def _topics(cell: str) -> list[str]:
    return [topic.strip() for topic in cell.split("|") if topic.strip()]
