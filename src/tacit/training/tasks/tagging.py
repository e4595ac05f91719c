"""A tag for each word (named entities, parts of speech). Words and tags are separated by spaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from tacit.errors import BadInputError
from tacit.training.gradients import Batch
from tacit.training.tasks.base import (
    IGNORED,
    Encoded,
    Row,
    Task,
    cross_entropy_per_token,
    label_options,
    model_inputs,
    random_inputs,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass
class Tagging(Task):
    name: ClassVar[str] = "tag"
    scored_as: ClassVar[str] = "tag"
    target_is_label: ClassVar[bool] = True
    help: ClassVar[str] = "a tag for each word; words and tags separated by spaces"
    roles: ClassVar[tuple[str, ...]] = ("text", "tags")
    model_class: ClassVar[str] = "AutoModelForTokenClassification"
    target: ClassVar[str] = "tags"

    def learn(self, rows: Sequence[Row]) -> None:
        self.check_rows(rows)
        for number, row in enumerate(rows, 1):
            words, tags = len(row["text"].split()), len(row["tags"].split())
            if words != tags:
                raise BadInputError(
                    "wrong-number-of-tags",
                    "row {row} has {words} words and {tags} tags: each word needs one tag",
                    row=number,
                    words=words,
                    tags=tags,
                )
        observed = sorted({tag for row in rows for tag in row["tags"].split()})
        self.labels = self.labels or observed
        unknown = [tag for tag in observed if tag not in set(self.labels)]
        if unknown:
            raise BadInputError(
                "tags-not-listed",
                "the training rows have tags that are not in the given list: {unknown} of them; list all that exist "
                "with {option.labels}, or leave it out",
                unknown=len(unknown),
            )
        if len(self.labels) < 2:
            raise BadInputError("too-few-classes", "all words have the same tag: there is nothing to learn")

    def model_options(self) -> dict[str, Any]:
        return label_options(self.labels)

    def encode(self, row: Row, tokenizer: PreTrainedTokenizerBase, *, train: bool) -> Encoded:
        words = row["text"].split() or [""]
        encoding = tokenizer(words, is_split_into_words=True, truncation=True, max_length=self.length)
        encoded: Encoded = {
            "input_ids": list(encoding["input_ids"]),
            "attention_mask": list(encoding["attention_mask"]),
        }
        places = encoding.word_ids()
        # The first piece of a word stands for it.
        firsts = [place is not None and place not in places[:i] for i, place in enumerate(places)]
        encoded["first"] = [int(first) for first in firsts]
        if train:
            tags = row["tags"].split()
            ids = {label: i for i, label in enumerate(self.labels)}
            encoded["labels"] = [
                ids.get(tags[place], IGNORED) if first and place is not None and place < len(tags) else IGNORED
                for place, first in zip(places, firsts, strict=True)
            ]
        return encoded

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return cross_entropy_per_token(model(**model_inputs(batch)).logits, batch["labels"])

    @torch.no_grad()
    def predict(
        self, model: nn.Module, batch: Batch, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Row]
    ) -> list[str]:
        best = model(**model_inputs(batch)).logits.argmax(-1)
        lines = []
        fallback = "O" if "O" in self.labels else self.labels[0]
        for tags, first, row in zip(best.tolist(), batch["first"].tolist(), rows, strict=True):
            predicted = [self.labels[tag] for tag, counts in zip(tags, first, strict=True) if counts]
            # Words beyond the length that is read get the outside tag.
            words = len(row["text"].split())
            lines.append(" ".join((predicted + [fallback] * words)[:words]))
        return lines

    def probe(self, generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        encoded = random_inputs(generator, tokenizer, self.length)
        encoded.pop("token_type_ids", None)
        size = len(encoded["input_ids"])
        labels = [int(i) for i in generator.integers(len(self.labels), size=size)]
        return {**encoded, "first": [1] * size, "labels": labels}
