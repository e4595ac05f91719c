"""Labels that a causal model names after sets of examples: all sets side by side, one row each, in a constant shape.

    public instruction | padding | examples of the set | question | label

A set always stands in its own row and all rows are equally wide, one column wider than the longest set, so the numbers
of a set are a function of its own examples and of the question. (In another row of the same shape they may differ in
their last digits, and a vote could change; so sets that have no row of their own, because they come and go, are read
one at a time: `rows=1`.) The examples are read once; then every question and every label is read after them.

Small models name one label far more often than others, whatever they are asked. So the score of a label is its
log-probability after the question less the one after an empty question, with the same examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tacit.arrays import Floats
from tacit.documents.language_models.generators import CausalModel
from tacit.documents.language_models.models import Continuation
from tacit.errors import BadParameterError

Example = tuple[str, str]
"""A text and the name of its label."""

NO_QUESTION = "..."


class SetReader:
    """Sets of examples that a model has read.

    sets          examples of each set, those of an empty one too
    most          examples of a set that are read
    input_tokens  tokens of a text that are read
    """

    def __init__(
        self,
        model: CausalModel,
        sets: Sequence[Sequence[Example]],
        labels: Sequence[str],
        *,
        most: int,
        input_tokens: int,
        rows: int,
    ) -> None:
        self.model = model
        self._text, self._label = model.plain("Text: "), model.plain("\nLabel:")
        self._names = [model.plain(f" {label}") for label in labels]
        self._input_tokens = input_tokens
        self._before = model.special_frame().before + model.plain("Every text has a label.\n\n")
        longest = max(map(len, self._names))
        example = len(self._text) + input_tokens + len(self._label) + longest + 2
        model.check_room(len(self._before) + most * example + example, "a set of examples with a question")
        if not all(self._names):
            raise BadParameterError("empty-label", "a label has no tokens: name every label with letters")
        self._width = most * example + 1  # one column is blank in all rows: see `CausalModel.begin_logits`
        shown = [self._tokens_of(examples[:most]) for examples in sets]
        self._readings = [self._read(shown[start : start + rows], rows) for start in range(0, max(1, len(shown)), rows)]
        self._count = len(sets)
        self._usual = self._scores(NO_QUESTION)

    def scores(self, question: str) -> Floats:
        """How well each label (columns) fits a question, by each set (rows)."""
        scored: Floats = self._scores(question) - self._usual
        return scored

    def _tokens_of(self, examples: Sequence[Example]) -> list[int]:
        tokens: list[int] = []
        for text, label in examples:
            tokens += [*self._text, *self.model.tokens(text, self._input_tokens), *self._label]
            tokens += [*self.model.plain(f" {label}"), *self.model.plain("\n\n")]
        return tokens[: self._width - 1]

    def _read(self, sets: Sequence[Sequence[int]], rows: int) -> Continuation:
        """So many rows, blank ones where sets are missing, with the cache behind their examples."""
        model, torch = self.model, self.model.torch
        filled = [*sets, *[()] * (rows - len(sets))]
        ids = [[*self._before, *[model.pad] * (self._width - len(row)), *row] for row in filled]
        masks = [[1] * len(self._before) + [0] * (self._width - len(row)) + [1] * len(row) for row in filled]
        mask = model._tensor(masks)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        with torch.inference_mode():
            output = model._forward(model._tensor(ids), mask, positions, None)
        return Continuation(output.past_key_values, mask, positions[:, -1:])

    def _scores(self, question: str) -> Floats:
        question_tokens = [*self._text, *self.model.tokens(question, self._input_tokens), *self._label]
        return np.concatenate([self._scores_of(reading, question_tokens) for reading in self._readings])[: self._count]

    def _scores_of(self, reading: Continuation, question: Sequence[int]) -> Floats:
        """Log-probabilities of all labels after the question, for the rows of a reading; its cache stays."""
        after_question = Continuation(reading.past, reading.mask, reading.position)
        first = self._after(after_question, question)
        columns = []
        for name in self._names:
            named = Continuation(after_question.past, after_question.mask, after_question.position)
            total = first[:, name[0]].copy()
            for before, token in pairwise(name):
                total += self._after(named, [before])[:, token]
            if len(name) > 1:
                after_question.past.crop(1 - len(name))
            columns.append(total)
        reading.past.crop(-len(question))
        return np.stack(columns, axis=1)

    def _after(self, running: Continuation, tokens: Sequence[int]) -> Floats:
        """Log-probabilities of the next token (rows, outputs) after these tokens, which stay in the cache."""
        model, torch = self.model, self.model.torch
        assert running.position is not None
        ids = model._tensor([list(tokens)] * int(running.mask.shape[0]))
        running.mask = torch.cat([running.mask, torch.ones_like(ids)], dim=1)
        positions = running.position + 1 + torch.arange(len(tokens), device=ids.device)[None]
        running.position = positions[:, -1:]
        with torch.inference_mode():
            output = model._forward(ids, running.mask, positions, running.past)
            law: Floats = output.logits[:, -1].cpu().double().log_softmax(dim=1).numpy()
        return law
