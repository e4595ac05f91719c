"""The answers to a question, best first, of all windows of its context.

The score of a span is the sum of what the model gives its first and its last piece, and that of no answer the sum for
the first piece, as in BERT (Devlin et al. 2019). These numbers are not divided by anything that depends on the window,
so they are comparable between the windows of a record: a span counts by its best window, no answer by its worst, since
a window that does not show the answer says rightly that it has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from tacit.training.gradients import Batch
from tacit.training.tasks.base import model_inputs

LONGEST_ANSWER = 30
"""Pieces of an answer."""
CANDIDATES = 20
"""Spans of a window, and of a record, that are ranked."""


@dataclass(frozen=True)
class AnswerSpan:
    """A part of the context, in characters."""

    score: float
    begin: int
    stop: int


@dataclass(frozen=True)
class RankedAnswer:
    """An answer with its score, and its share among all that were ranked (a softmax of their scores)."""

    answer: str
    score: float
    probability: float


@dataclass(frozen=True)
class WindowSpans:
    """The best spans of one window, and the score of answering nothing."""

    spans: list[AnswerSpan]
    nothing: float


@dataclass(frozen=True)
class Ranking:
    """The best answers to one question, as texts with their scores, none twice; the score of answering nothing; whether
    the question was too long to be read whole."""

    answers: list[tuple[str, float]]
    nothing: float
    question_cut: bool = False

    @classmethod
    def of_windows(cls, context: str, windows: Sequence[WindowSpans], *, question_cut: bool = False) -> Ranking:
        """Of all windows of a context."""
        scores: dict[str, float] = {}
        for span in (span for window in windows for span in window.spans):
            text = context[span.begin : span.stop]
            scores[text] = max(span.score, scores.get(text, -math.inf))
        best = sorted(scores.items(), key=lambda item: -item[1])[:CANDIDATES]
        return cls(best, min(window.nothing for window in windows), question_cut)

    @property
    def text(self) -> str:
        """The best answer, whether or not nothing is better."""
        return self.answers[0][0] if self.answers else ""

    @property
    def difference(self) -> float:
        """How far the score of answering nothing is above that of the best answer."""
        return self.nothing - self.answers[0][1] if self.answers else math.inf

    def predicted(self, threshold: float | None) -> str:
        """The best answer, or "" where nothing is more than `threshold` better; None: it never is."""
        return "" if threshold is not None and self.difference > threshold else self.text

    def best(self, number: int, threshold: float | None) -> list[RankedAnswer]:
        """The predicted answer, then the best others by their scores. Nothing is one of them, with a threshold."""
        nothing = [] if threshold is None else [("", self.nothing)]
        predicted = self.predicted(threshold)
        ranked = sorted([*self.answers, *nothing], key=lambda item: (item[0] != predicted, -item[1]))
        top = max((score for _, score in ranked), default=0.0)
        weights = [math.exp(score - top) if math.isfinite(top) else 0.0 for _, score in ranked]
        total = sum(weights) or 1.0
        shares = [weight / total for weight in weights]
        return [RankedAnswer(*item, share) for item, share in zip(ranked, shares, strict=True)][:number]


def spans_of_windows(model: nn.Module, batch: Batch) -> list[WindowSpans]:
    """The best spans of each window of a batch."""
    output = model(**model_inputs(batch))
    inside = batch["inside"] == 1
    start = output.start_logits.masked_fill(~inside, -torch.inf)
    end = output.end_logits.masked_fill(~inside, -torch.inf)
    scores = start[:, :, None] + end[:, None, :]
    size = scores.shape[1]
    everywhere = torch.ones(size, size, dtype=torch.bool, device=scores.device)
    allowed = everywhere.triu() & ~everywhere.triu(LONGEST_ANSWER)
    flat = scores.masked_fill(~allowed, -torch.inf).flatten(1)
    best = flat.topk(min(CANDIDATES, flat.shape[1]), 1)
    # The first piece, wherever the filling is.
    first = batch["attention_mask"].argmax(1, keepdim=True)
    nothing = (output.start_logits.gather(1, first) + output.end_logits.gather(1, first))[:, 0].tolist()
    begins, ends = batch["begins"].tolist(), batch["ends"].tolist()
    windows = []
    for i, (values, places) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):
        spans = []
        for score, place in zip(values, places, strict=True):
            begin, stop = begins[i][place // size], ends[i][place % size]
            if math.isfinite(score) and begin < stop:
                spans.append(AnswerSpan(score, begin, stop))
        windows.append(WindowSpans(spans, nothing[i]))
    return windows
