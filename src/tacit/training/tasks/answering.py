"""Extractive question answering: the span of the context that answers the question, or nothing.

A question without an answer has the first piece as its target (SQuAD 2; Rajpurkar et al. 2018). A model for such
questions answers nothing where the first piece scores higher than every span. Whether there may be such questions is
said beforehand and never read off the rows: that a single private row has no answer would show in the saved settings.

A context that is longer than `length` is cut into windows that overlap by a quarter of it. One window of a record is
learned from, so that a record stays one example: the one with the whole answer, as far from its ends as can be, and for
a question without an answer one that depends on nothing but its text. Answers are looked for in all windows.
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
from tacit.errors import BadInputError, BadParameterError
from tacit.training.gradients import Batch
from tacit.training.tasks.base import Encoded, Row, Task, model_inputs, random_inputs

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

LONGEST_ANSWER = 30
OVERLAP = 4
"""Neighboring windows share one in so many pieces of the length."""


@dataclass
class Answering(Task):
    """unanswerable: whether a question may have no answer (public)."""

    length: int = 384
    unanswerable: bool = True

    name: ClassVar[str] = "answer"
    scored_as: ClassVar[str] = "answer"
    help: ClassVar[str] = "find the part of a context that answers a question"
    roles: ClassVar[tuple[str, ...]] = ("question", "context", "answer")
    model_class: ClassVar[str] = "AutoModelForQuestionAnswering"
    target: ClassVar[str] = "answer"
    places: ClassVar[tuple[str, ...]] = ("start", "end")
    read_once: ClassVar[bool] = False

    def learn(self, rows: Sequence[Row]) -> None:
        self.check_rows(rows)
        for number, row in enumerate(rows, 1):
            if row["answer"] and row["answer"] not in row["context"]:
                raise BadInputError(
                    "answer-not-in-context",
                    "the answer of row {row} does not stand in its context, word for word",
                    row=number,
                )
            if not row["answer"] and not self.unanswerable:
                raise BadInputError(
                    "row-without-answer",
                    "row {row} has no answer: say that there are such rows, with {option.unanswerable}",
                    row=number,
                )

    def settings(self) -> dict[str, object]:
        return {**super().settings(), "unanswerable": self.unanswerable}

    def windows(self, row: Row, tokenizer: PreTrainedTokenizerBase) -> list[Encoded]:
        """The record as it is read: its context at once, or in windows. A question takes half of the length at most."""
        question = row["question"]
        marks = tokenizer.num_special_tokens_to_add(pair=True)
        most = min(self.length // 2, self.length - marks - 1)
        if most < 1:
            raise BadParameterError(
                "length-too-short",
                "a length of {length} leaves no room for a question and its context: give at least {least}",
                length=self.length,
                least=marks + 2,
            )
        pieces = tokenizer(question, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        if len(pieces) > most:
            question = question[: pieces[most - 1][1]]
        room = self.length - marks - min(len(pieces), most)
        encoding = tokenizer(
            question, row["context"], truncation="only_second", max_length=self.length,
            stride=min(self.length // OVERLAP, max(0, room // 2)), return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )  # fmt: skip
        windows = []
        for number, offsets in enumerate(encoding["offset_mapping"]):
            encoded: Encoded = {name: list(encoding[name][number]) for name in ("input_ids", "attention_mask")}
            if "token_type_ids" in encoding:
                encoded["token_type_ids"] = list(encoding["token_type_ids"][number])
            encoded["inside"] = [int(place == 1) for place in encoding.sequence_ids(number)]
            encoded["begins"] = [begin for begin, _ in offsets]
            encoded["ends"] = [end for _, end in offsets]
            windows.append(encoded)
        return windows

    def encode(self, row: Row, tokenizer: PreTrainedTokenizerBase, *, train: bool) -> Encoded:
        windows = self.windows(row, tokenizer)
        if not train:
            return windows[0]
        first = row["context"].find(row["answer"]) if row["answer"] else -1
        if first < 0:
            text = json.dumps([row["question"], row["context"]]).encode()
            number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") % len(windows)
            return {**windows[number], "start": 0, "end": 0}
        targets = [_pieces_of(window, first, first + len(row["answer"])) for window in windows]
        chosen = max(range(len(windows)), key=lambda number: _shown(windows[number], targets[number]))
        # An answer without a letter in any window: the first piece, as in SQuAD 2.
        start, end = targets[chosen] or (0, 0)
        return {**windows[chosen], "start": start, "end": end}

    def remarks(self, rows: Sequence[Row], encoded: Sequence[Encoded]) -> list[str]:
        answered = [(row, record) for row, record in zip(rows, encoded, strict=True) if row["answer"]]
        cut = sum(not _is_whole(row, record) for row, record in answered)
        if not cut:
            return []
        return [
            f"{cut:,} of {len(answered):,} answers do not fit whole into {self.length} word pieces beside their "
            "question: give a larger length (this number is private)"
        ]

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        output = model(**model_inputs(batch))
        hidden = (batch["attention_mask"] == 0) * -1e4
        start = nn.functional.cross_entropy(output.start_logits + hidden, batch["start"], reduction="none")
        end = nn.functional.cross_entropy(output.end_logits + hidden, batch["end"], reduction="none")
        return (start + end) / 2.0

    @torch.no_grad()
    def predict(
        self, model: nn.Module, batch: Batch, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Row]
    ) -> list[str]:
        """The best span of all windows of a context. Nothing is answered only where nothing scores higher than the best
        span in every window."""
        candidates: list[list[_Candidate]] = [[candidate] for candidate in _candidates(model, batch)]
        # A first window that is not full is the only one.
        full = (batch["attention_mask"].sum(1) >= self.length).nonzero().flatten().tolist()
        later = [(i, window) for i in full for window in self.windows(rows[i], tokenizer)[1:]]
        for begin in range(0, len(later), len(rows)):
            part = later[begin : begin + len(rows)]
            numbers = moved(self.collate([window for _, window in part], tokenizer), device_of(model))
            for (i, _), candidate in zip(part, _candidates(model, numbers), strict=True):
                candidates[i].append(candidate)
        answers = []
        for row, found_here in zip(rows, candidates, strict=True):
            best = max(found_here, key=lambda candidate: candidate.score)
            nothing = self.unanswerable and min(candidate.nothing for candidate in found_here) > best.score
            answers.append("" if nothing or not best.inside else row["context"][best.begin : best.stop])
        return answers

    def probe(self, generator: np.random.Generator, tokenizer: PreTrainedTokenizerBase) -> Encoded:
        encoded = random_inputs(generator, tokenizer, self.length)
        size = len(encoded["input_ids"])
        start = int(generator.integers(size))
        more = {"inside": [1] * size, "begins": list(range(size)), "ends": list(range(1, size + 1))}
        return {**encoded, **more, "start": start, "end": int(generator.integers(start, size))}


@dataclass(frozen=True)
class _Candidate:
    """The best span of one window, in characters of the context; nothing: the score of its first piece."""

    score: float
    begin: int
    stop: int
    inside: bool
    nothing: float


def _candidates(model: nn.Module, batch: Batch) -> list[_Candidate]:
    output = model(**model_inputs(batch))
    outside = (batch["inside"] == 0) * -1e4
    scores = (output.start_logits + outside)[:, :, None] + (output.end_logits + outside)[:, None, :]
    size = scores.shape[1]
    everywhere = scores.new_ones(size, size)
    allowed = everywhere.triu() - everywhere.triu(LONGEST_ANSWER)
    best = scores.masked_fill(allowed == 0, -1e9).flatten(1).max(1)
    # The first piece, wherever the filling is.
    first = batch["attention_mask"].argmax(1, keepdim=True)
    nothing = (output.start_logits.gather(1, first) + output.end_logits.gather(1, first))[:, 0]
    candidates = []
    for i, place in enumerate(best.indices.tolist()):
        start, end = divmod(place, size)
        begin, stop = int(batch["begins"][i, start]), int(batch["ends"][i, end])
        inside = bool(batch["inside"][i, start])
        candidates.append(_Candidate(float(best.values[i]), begin, stop, inside, float(nothing[i])))
    return candidates


def _pieces_of(window: Encoded, first: int, last: int) -> tuple[int, int] | None:
    """The first and last piece of the window that hold some of these characters of the context."""
    marks = enumerate(zip(window["inside"], window["begins"], window["ends"], strict=True))
    pieces = [i for i, (inside, begin, end) in marks if inside and begin < last and end > first]
    return (pieces[0], pieces[-1]) if pieces else None


def _shown(window: Encoded, target: tuple[int, int] | None) -> tuple[int, int]:
    """How well a window shows an answer: how much of it, then how far from the ends of the context it stands."""
    if target is None:
        return 0, 0
    start, end = target
    context = [i for i, inside in enumerate(window["inside"]) if inside]
    return end - start + 1, min(start - context[0], context[-1] - end)


def _is_whole(row: Row, record: Encoded) -> bool:
    first = row["context"].find(row["answer"])
    start, end = record["start"], record["end"]
    covered = record["begins"][start] <= first and record["ends"][end] >= first + len(row["answer"].rstrip())
    return bool(record["inside"][start]) and covered
