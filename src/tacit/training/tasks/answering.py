"""Extractive question answering: the span of the context that answers the question, or nothing.

A question without an answer has the first piece as its target (SQuAD 2; Rajpurkar et al. 2018). A model for such
questions answers nothing where the first piece scores higher than every span. Whether there may be such questions is
said beforehand and never read off the rows: that a single private row has no answer would show in the saved settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from tacit.errors import BadInputError
from tacit.training.gradients import Batch
from tacit.training.tasks.base import Encoded, Row, Task, model_inputs, random_inputs

LONGEST_ANSWER = 30


@dataclass
class Answering(Task):
    """unanswerable: whether a question may have no answer (public)."""

    length: int = 256
    unanswerable: bool = True

    name: ClassVar[str] = "answer"
    help: ClassVar[str] = "find the part of a context that answers a question"
    roles: ClassVar[tuple[str, ...]] = ("question", "context", "answer")
    model_class: ClassVar[str] = "AutoModelForQuestionAnswering"
    target: ClassVar[str] = "answer"
    places: ClassVar[tuple[str, ...]] = ("start", "end")

    def learn(self, rows: Sequence[Row]) -> None:
        self.check_rows(rows)
        for number, row in enumerate(rows, 1):
            if row["answer"] and row["answer"] not in row["context"]:
                raise BadInputError(f"the answer of row {number} does not stand in its context, word for word")
            if not row["answer"] and not self.unanswerable:
                raise BadInputError(f"row {number} has no answer: leave out --always-answered")

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "unanswerable": self.unanswerable}

    def encode(self, row: Row, tokenizer: Any, *, train: bool) -> Encoded:
        found = tokenizer(
            row["question"], row["context"], truncation="only_second", max_length=self.length,
            return_offsets_mapping=True,
        )  # fmt: skip
        encoded: Encoded = {"input_ids": list(found["input_ids"]), "attention_mask": list(found["attention_mask"])}
        if "token_type_ids" in found:
            encoded["token_type_ids"] = list(found["token_type_ids"])
        inside = [place == 1 for place in found.sequence_ids()]
        encoded["inside"] = [int(i) for i in inside]
        offsets = found["offset_mapping"]
        encoded["begins"] = [begin for begin, _ in offsets]
        encoded["ends"] = [end for _, end in offsets]
        if train:
            first = row["context"].find(row["answer"]) if row["answer"] else -1
            last = first + len(row["answer"])
            pieces = [i for i, (b, e) in enumerate(offsets) if inside[i] and b < last and e > first >= 0]
            # No answer, or one beyond what is read: the first piece, as in SQuAD 2.
            encoded["start"], encoded["end"] = (pieces[0], pieces[-1]) if pieces else (0, 0)
        return encoded

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        output = model(**model_inputs(batch))
        hidden = (batch["attention_mask"] == 0) * -1e4
        start = nn.functional.cross_entropy(output.start_logits + hidden, batch["start"], reduction="none")
        end = nn.functional.cross_entropy(output.end_logits + hidden, batch["end"], reduction="none")
        return (start + end) / 2.0

    @torch.no_grad()
    def predict(self, model: nn.Module, batch: Batch, tokenizer: Any, rows: Sequence[Row]) -> list[str]:
        output = model(**model_inputs(batch))
        outside = (batch["inside"] == 0) * -1e4
        scores = (output.start_logits + outside)[:, :, None] + (output.end_logits + outside)[:, None, :]
        size = scores.shape[1]
        allowed = torch.ones(size, size).triu() - torch.ones(size, size).triu(LONGEST_ANSWER)
        best = scores.masked_fill(allowed == 0, -1e9).flatten(1).max(1)
        # The first piece, wherever the filling is.
        first = batch["attention_mask"].argmax(1, keepdim=True)
        none = (output.start_logits.gather(1, first) + output.end_logits.gather(1, first))[:, 0]
        answers = []
        for i, (place, row) in enumerate(zip(best.indices.tolist(), rows, strict=True)):
            start, end = divmod(place, size)
            begin, stop = int(batch["begins"][i, start]), int(batch["ends"][i, end])
            nothing = self.unanswerable and bool(none[i] > best.values[i])
            answers.append(row["context"][begin:stop] if int(batch["inside"][i, start]) and not nothing else "")
        return answers

    def probe(self, generator: np.random.Generator, tokenizer: Any) -> Encoded:
        encoded = random_inputs(generator, tokenizer, self.length)
        size = len(encoded["input_ids"])
        start = int(generator.integers(size))
        more = {"inside": [1] * size, "begins": list(range(size)), "ends": list(range(1, size + 1))}
        return {**encoded, **more, "start": start, "end": int(generator.integers(start, size))}
