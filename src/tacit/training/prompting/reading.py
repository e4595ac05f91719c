"""A language model that reads prompts side by side, as the writing needs it, and the check of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np

from tacit.arrays import Floats32, Ids, Mask
from tacit.errors import NoGuaranteeError
from tacit.training.prompting.law import STEPS

CHECK_ROWS: Final = 3
"""How many places of a shape the check compares."""


ALLOWED: Final = 0.125
"""The largest difference between rows, in steps of the grid."""


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
        """The prompts of these texts, at most `rows`; the rest of the rows is blank."""
        ...

    def read_public(self, copies: int) -> PromptReading:
        """The prompt without any text, so many times; computed apart from all private prompts."""
        ...


def check_rows(reader: PromptReader, texts: Sequence[str]) -> float:
    """The largest difference between the logits of one public text in several rows, among other neighbors.

    Refused if it reaches an eighth of a step of the grid: after the sum of exponentials and the gain of the law this is
    half a step, and the price pays for less than one.
    """
    probe, *others = texts
    filler = [others[place % len(others)] for place in range(reader.rows - 1)]
    places = sorted({0, reader.rows // 2, reader.rows - 1})[:CHECK_ROWS]
    seen = []
    for place in places:
        turned = filler[place:] + filler[:place]
        reading = reader.read([*turned[:place], probe, *turned[place:]])
        first = reading.logits[place].copy()
        tokens = np.full(reader.rows, int(np.argmax(first)), dtype=np.int64)
        reading.extend(tokens, np.zeros(reader.rows, dtype=bool))
        seen.append(np.stack([first, reading.logits[place]]))
    difference = max(float(np.abs(other - seen[0]).max()) for other in seen)
    if not difference < ALLOWED / STEPS:
        raise NoGuaranteeError(
            "rows-differ",
            "this model gives one text other numbers in another row of the same computation (they differ by "
            "{difference:g}), so records are not computed apart from each other here: use another model or machine",
            difference=difference,
        )
    return difference
