"""Extractive question answering: the span of the context that answers the question, or nothing.

A question without an answer has the first piece as its target (SQuAD 2; Rajpurkar et al. 2018). A model for such
questions answers nothing where the first piece scores higher than every span, by more than a threshold that was chosen
on public rows. Whether there may be such questions is said beforehand and never read off the rows: that a single
private row has no answer would show in the saved settings.

A context that is longer than `length` is cut into windows that share `stride` pieces. Answers are looked for in all of
them. What is learned from:

    best   one window: the one with the whole answer, as far from its ends as can be, and for a question without an
           answer one that depends on nothing but its text
    all    up to `most_windows` of them, that one first. A window without a piece of the answer has the first piece as
           its target, if questions may have no answer; one with a part of it is left out, since it is neither.

The loss of a record is the mean over its windows, whose gradients are added up before they are clipped
(`gradients.units`): a record is one unit, however long its context. Which windows are taken depends on nothing but the
record and public numbers.

An answer that is cut off never becomes "no answer". Where no window shows it whole, the part in the window that shows
most of it is the target there. Where the pieces show nothing of it (an answer of characters that the tokenizer leaves
out), the loss is multiplied by 0: the record is drawn, clipped and counted like every other and adds the gradient 0,
whose norm is within every bound, so the promise to every record is what it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from tacit.devices import device_of, moved
from tacit.errors import BadInputError, check_choice
from tacit.text.gold_answers import gold_answers
from tacit.training.gradients import Batch
from tacit.training.tasks.base import Encoded, Row, Task, model_inputs, random_inputs
from tacit.training.tasks.ranked_answers import Ranking, spans_of_windows
from tacit.training.tasks.windows import check_stride, is_whole, pieces_of, shown, windows_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

LEARNED_WINDOWS = ("all", "best")


@dataclass
class Answering(Task):
    """unanswerable: whether a question may have no answer (public); threshold: how far nothing may score above the best
    answer which is given all the same; learned: which windows of a record are learned from, and most_windows: how many;
    stride: the pieces that neighboring windows share, 0 for a quarter of the length."""

    length: int = 384
    unanswerable: bool = True
    threshold: float = 0.0
    learned: str = "best"
    most_windows: int = 4
    stride: int = 0

    name: ClassVar[str] = "answer"
    scored_as: ClassVar[str] = "answer"
    help: ClassVar[str] = "find the part of a context that answers a question"
    roles: ClassVar[tuple[str, ...]] = ("question", "context", "answer")
    model_class: ClassVar[str] = "AutoModelForQuestionAnswering"
    target: ClassVar[str] = "answer"
    places: ClassVar[tuple[str, ...]] = ("start", "end")
    read_once: ClassVar[bool] = False

    @property
    def most_rows(self) -> int:
        return max(1, self.most_windows) if self.learned == "all" else 1

    def learn(self, rows: Sequence[Row]) -> None:
        check_choice(self.learned, LEARNED_WINDOWS, code="unknown-windows", what="choice of windows")
        check_stride(self.length, self.stride)
        self.check_rows(rows)
        for number, row in enumerate(rows, 1):
            answers = gold_answers(row["answer"])
            if any(answer.text not in row["context"] for answer in answers[:1]):
                raise BadInputError(
                    "answer-not-in-context",
                    "the answer of row {row} does not stand in its context, word for word",
                    row=number,
                )
            if not answers and not self.unanswerable:
                raise BadInputError(
                    "row-without-answer",
                    "row {row} has no answer: say that there are such rows, with {option.unanswerable}",
                    row=number,
                )

    def settings(self) -> dict[str, object]:
        names = ("unanswerable", "threshold", "learned", "most_windows", "stride")
        return {**super().settings(), **{name: getattr(self, name) for name in names}}

    def windows(self, row: Row, tokenizer: PreTrainedTokenizerBase) -> list[Encoded]:
        """The record as it is read: its context at once, or in windows."""
        return windows_of(row["question"], row["context"], tokenizer, length=self.length, stride=self.stride)

    def encode(self, row: Row, tokenizer: PreTrainedTokenizerBase, *, train: bool) -> Encoded:
        windows = self.windows(row, tokenizer)
        return self._learned_from(row, windows, 1)[0] if train else windows[0]

    def encode_rows(self, row: Row, tokenizer: PreTrainedTokenizerBase) -> list[Encoded]:
        return self._learned_from(row, self.windows(row, tokenizer), self.most_rows)

    def _learned_from(self, row: Row, windows: list[Encoded], most: int) -> list[Encoded]:
        """The windows with their targets, at most so many, the one that shows most of the answer first."""
        order = _shuffled(row, len(windows))
        answer = next(iter(gold_answers(row["answer"])), None)
        if answer is None:
            return _weighted([(windows[number], (0, 0)) for number in order[:most]])
        first = answer.place_in(row["context"])
        targets = [pieces_of(window, first, first + len(answer.text)) for window in windows]
        best = max(range(len(windows)), key=lambda number: shown(windows[number], targets[number]))
        target = targets[best]
        if target is None:
            return [{**windows[best], "start": 0, "end": 0, "weight": 0.0}]
        chosen = [(windows[best], target)]
        for number in order:
            other = targets[number]
            if number != best and other is None and self.unanswerable:
                chosen.append((windows[number], (0, 0)))
            elif number != best and other is not None and is_whole(windows[number], other, first, answer.text):
                chosen.append((windows[number], other))
        return _weighted(chosen[:most])

    def remarks(self, rows: Sequence[Row], encoded: Sequence[Encoded]) -> list[str]:
        answered = [
            (answers[0], row, record)
            for row, record in zip(rows, encoded, strict=True)
            if (answers := gold_answers(row["answer"]))
        ]
        lost = sum(record["weight"] == 0.0 for _, _, record in answered)
        cut = sum(
            record["weight"] > 0.0
            and not is_whole(record, (record["start"], record["end"]), answer.place_in(row["context"]), answer.text)
            for answer, row, record in answered
        )
        questions = sum(record["question_cut"] for record in encoded)
        remarks = []
        if cut:
            remarks.append(
                f"{cut:,} of {len(answered):,} answers do not fit whole into {self.length} word pieces beside their "
                "question, and as much of them as one window shows is learned: give a larger length (this number is "
                "private)"
            )
        if lost:
            remarks.append(
                f"{lost:,} of {len(answered):,} answers have no word piece, and nothing is learned from them (this "
                "number is private)"
            )
        if questions:
            remarks.append(self.remark_on_questions(questions, len(rows)) + " (this number is private)")
        return remarks

    def remark_on_questions(self, cut: int, questions: int) -> str:
        """A sentence about questions that are not read whole."""
        return (
            f"{cut:,} of {questions:,} questions are longer than half of {self.length} word pieces, and only their "
            "beginning is read: give shorter questions, or train with a larger length"
        )

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        output = model(**model_inputs(batch))
        hidden = (batch["attention_mask"] == 0) * -1e4
        start = nn.functional.cross_entropy(output.start_logits + hidden, batch["start"], reduction="none")
        end = nn.functional.cross_entropy(output.end_logits + hidden, batch["end"], reduction="none")
        return batch["weight"] * (start + end) / 2.0

    @property
    def nothing_from(self) -> float | None:
        """From which difference on nothing is answered; None if every question has an answer."""
        return self.threshold if self.unanswerable else None

    def is_right(self, predicted: str, row: Row) -> bool:
        return predicted in ([answer.text for answer in gold_answers(row["answer"])] or [""])

    def predict(
        self, model: nn.Module, batch: Batch, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Row]
    ) -> list[str]:
        """The best span of all windows of a context, or "" where nothing scores higher in every window."""
        return [ranking.predicted(self.nothing_from) for ranking in self.ranked(model, batch, tokenizer, rows)]

    @torch.no_grad()
    def ranked(
        self, model: nn.Module, batch: Batch, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Row]
    ) -> list[Ranking]:
        """The best answers of each record, whose first windows are the batch."""
        windows = [[first] for first in spans_of_windows(model, batch)]
        # A first window that is not full is the only one.
        full = (batch["attention_mask"].sum(1) >= self.length).nonzero().flatten().tolist()
        later = [(i, window) for i in full for window in self.windows(rows[i], tokenizer)[1:]]
        for begin in range(0, len(later), len(rows)):
            part = later[begin : begin + len(rows)]
            numbers = moved(self.collate([window for _, window in part], tokenizer), device_of(model))
            for (i, _), spans in zip(part, spans_of_windows(model, numbers), strict=True):
                windows[i].append(spans)
        cut = batch["question_cut"].tolist()
        return [
            Ranking.of_windows(row["context"], own, question_cut=bool(is_cut))
            for row, own, is_cut in zip(rows, windows, cut, strict=True)
        ]

    def probe(self, generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        encoded = random_inputs(generator, tokenizer, self.length)
        size = len(encoded["input_ids"])
        start = int(generator.integers(size))
        more = {"inside": [1] * size, "begins": list(range(size)), "ends": list(range(1, size + 1)), "question_cut": 0}
        weight = float(generator.choice([1.0, 0.5]))
        return {**encoded, **more, "start": start, "end": int(generator.integers(start, size)), "weight": weight}


def _weighted(chosen: Sequence[tuple[Encoded, tuple[int, int]]]) -> list[Encoded]:
    """The windows with their targets; their losses add up to their mean."""
    weight = 1.0 / len(chosen)
    return [{**window, "start": start, "end": end, "weight": weight} for window, (start, end) in chosen]


def _shuffled(row: Row, windows: int) -> list[int]:
    """The windows of a record in an order that depends on nothing but its text."""
    text = json.dumps([row["question"], row["context"]]).encode()
    return sorted(range(windows), key=lambda number: hashlib.blake2b(text, salt=number.to_bytes(16, "big")).digest())
