"""One label for a text or a pair of texts (sentiment, intent, inference)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from tacit.errors import BadInputError
from tacit.training.gradients import Batch
from tacit.training.tasks.base import Encoded, Row, Task, encode_text, label_options, model_inputs, random_inputs

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass
class Labeling(Task):
    """The base of tasks with a label or number for a text: a text, or a pair, as word pieces.

    ending: the end mark, for models that read a text by the state there (the classifiers of BART and T5). Every record
    then has as many of them as any other: those that the tokenizer puts into a text, or one at its end. What looks like
    an end mark inside of a text is left out, so that no text can break the batch that it is in.
    """

    ending: int | None = field(default=None, kw_only=True)

    target_is_label: ClassVar[bool] = True
    optional_roles: ClassVar[tuple[str, ...]] = ("pair",)

    def pieces(self, row: Row, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        text, pair = row["text"], row.get("pair")
        if self.ending is None:
            return encode_text(tokenizer, self.length, text, pair)
        usual = encode_text(tokenizer, self.length, "a", None if pair is None else "a")["input_ids"].count(self.ending)
        encoded = encode_text(tokenizer, self.length, text, pair)
        ends = [place for place, piece in enumerate(encoded["input_ids"]) if piece == self.ending]
        surplus = set(ends[: max(0, len(ends) - usual)])
        kept = [place for place in range(len(encoded["input_ids"])) if place not in surplus]
        encoded = {name: [values[place] for place in kept] for name, values in encoded.items()}
        return encoded if usual else self._ended(encoded)

    def random_pieces(self, generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        encoded = random_inputs(generator, tokenizer, self.length)
        if self.ending is None:
            return encoded
        other = 1 if self.ending == 0 else 0
        encoded["input_ids"] = [other if piece == self.ending else piece for piece in encoded["input_ids"]]
        return self._ended(encoded)

    def _ended(self, encoded: Encoded) -> Encoded:
        """With an end mark as the last piece, in place of a last piece that would be one too many."""
        assert self.ending is not None
        last = {"input_ids": self.ending, "attention_mask": 1}
        return {name: [*values[: self.length - 1], last.get(name, 0)] for name, values in encoded.items()}

    def settings(self) -> dict[str, object]:
        return {**super().settings(), "ending": self.ending}


@dataclass
class Classification(Labeling):
    """smoothing: the share of a label that is spread over all labels (Szegedy et al. 2016). Under clipping it does more
    than usual: without it the many examples that are right go on pushing while the push of those that are wrong is
    cut, and the model gets ever surer of its mistakes."""

    smoothing: float = 0.0

    name: ClassVar[str] = "classify"
    scored_as: ClassVar[str] = "classify"
    help: ClassVar[str] = "one label for each text, or pair of texts"
    roles: ClassVar[tuple[str, ...]] = ("text", "pair", "label")
    model_class: ClassVar[str] = "AutoModelForSequenceClassification"
    target: ClassVar[str] = "label"

    def __post_init__(self) -> None:
        if not 0.0 <= self.smoothing < 1.0:
            raise BadInputError(
                "impossible-share", "label smoothing lies between 0 and 1, not at {share:g}", share=self.smoothing
            )

    def settings(self) -> dict[str, object]:
        return {**super().settings(), "smoothing": self.smoothing}

    def learn(self, rows: Sequence[Row]) -> None:
        self.check_rows(rows)
        for number, row in enumerate(rows, 1):
            if not row["label"].strip():
                raise BadInputError(
                    "label-missing", "row {row:,} has no label: fill it in, or leave such rows out", row=number
                )
        observed = sorted({row["label"] for row in rows})
        if not self.labels:
            self.labels = observed
        unknown = [label for label in observed if label not in set(self.labels)]
        if unknown:
            raise BadInputError(
                "label-not-listed",
                "the training rows have labels that are not in the given list: {unknown} of them; list all that exist "
                "with {option.labels}, or leave it out",
                unknown=len(unknown),
            )
        if len(self.labels) < 2:
            raise BadInputError("too-few-classes", "all training rows have the same label: there is nothing to learn")

    def model_options(self) -> dict[str, Any]:
        return label_options(self.labels)

    def encode(self, row: Row, tokenizer: PreTrainedTokenizerBase, *, train: bool) -> Encoded:
        encoded = self.pieces(row, tokenizer)
        if train:
            encoded["label"] = self.labels.index(row["label"])
        return encoded

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        logits = model(**model_inputs(batch)).logits
        return nn.functional.cross_entropy(logits, batch["label"], reduction="none", label_smoothing=self.smoothing)

    @torch.no_grad()
    def predict(
        self, model: nn.Module, batch: Batch, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Row]
    ) -> list[str]:
        return [self.labels[i] for i in model(**model_inputs(batch)).logits.argmax(-1).tolist()]

    def probe(self, generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        return {
            **self.random_pieces(generator, tokenizer),
            "label": int(generator.integers(len(self.labels))),
        }


@dataclass
class Regression(Labeling):
    """A number for a text or a pair of texts (similarity, rating).

    The model learns (label - mean) / scale. Both come from what is known about the labels, never from the labels. With
    `bounded` the labels lie between mean - scale and mean + scale, and one that does not counts as the nearer end: no
    single label can be so large that its record is lost.
    """

    mean: float = 0.0
    scale: float = 1.0
    bounded: bool = False

    name: ClassVar[str] = "regress"
    scored_as: ClassVar[str] = "regress"
    help: ClassVar[str] = "a number for each text, or pair of texts"
    roles: ClassVar[tuple[str, ...]] = ("text", "pair", "label")
    model_class: ClassVar[str] = "AutoModelForSequenceClassification"
    target: ClassVar[str] = "label"

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise BadInputError(
                "impossible-label-range",
                "the largest label must be above the smallest, and {width:g} is not a width",
                width=self.scale,
            )

    def learn(self, rows: Sequence[Row]) -> None:
        self.check_rows(rows)
        for number, row in enumerate(rows, 1):
            _number(row["label"], number)

    def model_options(self) -> dict[str, Any]:
        return {"num_labels": 1, "problem_type": "regression"}

    def settings(self) -> dict[str, object]:
        return {**super().settings(), "mean": self.mean, "scale": self.scale, "bounded": self.bounded}

    def encode(self, row: Row, tokenizer: PreTrainedTokenizerBase, *, train: bool) -> Encoded:
        encoded = self.pieces(row, tokenizer)
        if train:
            label = (_number(row["label"], None) - self.mean) / self.scale
            encoded["label"] = min(max(label, -1.0), 1.0) if self.bounded else label
        return encoded

    def remarks(self, rows: Sequence[Row], encoded: Sequence[Encoded]) -> list[str]:
        low, high = self.mean - self.scale, self.mean + self.scale
        outside = sum(not low <= _number(row["label"], None) <= high for row in rows) if self.bounded else 0
        if not outside:
            return []
        return [
            f"{outside:,} of {len(rows):,} labels lie outside of {low:g} to {high:g} and count as the nearer end: give "
            "the range of all possible labels if this is not it (this number is private)"
        ]

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        guesses: Tensor = model(**model_inputs(batch)).logits[:, 0]
        return (guesses - batch["label"]).square()

    @torch.no_grad()
    def predict(
        self, model: nn.Module, batch: Batch, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Row]
    ) -> list[str]:
        values = model(**model_inputs(batch)).logits[:, 0] * self.scale + self.mean
        return [f"{value:.6g}" for value in values.tolist()]

    def probe(self, generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        return {**self.random_pieces(generator, tokenizer), "label": float(generator.normal())}


def _number(cell: str, row: int | None) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if value - value != 0.0:
        where = "" if row is None else f" in row {row}"
        raise BadInputError(
            "not-a-number",
            "the label{where} is not a finite number: regression needs numbers in the label column",
            where=where,
        )
    return value
