"""A language model that reads prompts side by side, as the writing needs it, and the check of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import numpy as np

from tacit.arrays import Floats, Floats32, Ids, Mask
from tacit.errors import NoGuaranteeError

CHECK_STEPS: Final = 2
"""Tokens after which the check looks again."""


class PromptReading(Protocol):
    """Prompts side by side, with the tokens that were written after them.

    `logits` are those of the next token, (rows, outputs of the model), float32.
    """

    logits: Floats32

    def extend(self, tokens: Ids, anew: Mask) -> None:
        """Append a token to each row; rows marked `anew` first forget all tokens behind their prompt."""


class PromptReader(Protocol):
    """A model behind a public prompt.

    rows    how many prompts are read at a time, always exactly so many
    """

    @property
    def rows(self) -> int: ...

    def read(self, texts: Sequence[str]) -> PromptReading:
        """The prompts of exactly `rows` texts, each in its own row; empty ones where no record is."""
        ...

    def read_public(self, copies: int) -> PromptReading:
        """The prompt without any text, so many times; computed apart from all private prompts."""
        ...


def check_rows(reader: PromptReader, texts: Sequence[str]) -> None:
    """Refuse a model whose numbers for a row hang on what the other rows of the same shape hold.

    One public text is read in the first, a middle and the last row, among other texts, among empty ones and among
    copies of a long one, which need no padding; then tokens follow, others in the other rows, which also begin anew.
    Each of the three rows must have the same logits bit by bit in all cases.
    """
    probe, *others = texts
    places = sorted({0, reader.rows // 2, reader.rows - 1})
    long = " ".join(texts)
    fillings = [[others[row % len(others)] for row in range(reader.rows)], [""] * reader.rows, [long] * reader.rows]
    seen = []
    for turn, filling in enumerate(fillings):
        for place in places:
            filling[place] = probe
        reading = reader.read(filling)
        logits = [reading.logits[places].copy()]
        first = int(np.argmax(logits[0][0]))
        for step in range(CHECK_STEPS):
            tokens = np.full(reader.rows, first + turn * step, dtype=np.int64)
            anew = np.full(reader.rows, turn == 1 and step == 1)
            tokens[places], anew[places] = first, False
            reading.extend(tokens, anew)
            logits.append(reading.logits[places].copy())
        seen.append(np.stack(logits))
    _refuse_differences(seen)


def check_sets(scores_of: Callable[[Sequence[Sequence[str]]], Floats], rows: int, texts: Sequence[str]) -> None:
    """Refuse a model whose scores for a set of examples hang on what the sets in the other rows hold.

    A set of public texts stands in the first, a middle and the last row, once among sets that are full and once among
    empty ones; its scores must be the same bit by bit. With one row there is nothing beside a set.

    scores_of   the scores of so many sets of texts, each in its own row: (rows, labels)
    """
    if rows == 1:
        return
    probe, *others = texts
    places = sorted({0, rows // 2, rows - 1})
    full = [[others[(row + turn) % len(others)] for turn in range(len(texts))] for row in range(rows)]
    empty: list[list[str]] = [[] for _ in range(rows)]
    seen = []
    for filling in (full, empty):
        for place in places:
            filling[place] = [probe]
        seen.append(scores_of(filling)[places])
    _refuse_differences(seen)


def _refuse_differences(seen: Sequence[Floats | Floats32]) -> None:
    """Refuse a model that has given the same row other numbers."""
    if not all(np.array_equal(other, seen[0], equal_nan=True) for other in seen):
        raise NoGuaranteeError(
            "rows-differ",
            "this model gives one text other numbers beside other texts (they differ by {difference:g}), so records "
            "are not computed apart from each other here: use another model or machine",
            difference=max(float(np.nanmax(np.abs(other - seen[0]))) for other in seen),
        )
