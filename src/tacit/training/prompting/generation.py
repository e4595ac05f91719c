"""Texts written from batches of private records, one token at a time, for many batches side by side.

Every batch draws the same public number of tokens in all. A text ends at an end token or at its longest length; then
the batch begins another one at once, from the sums after its prompts, which it has already. So no batch waits for
another, and all are finished at about the same time. Where texts end is a function of released tokens: post-processing.

All records of a wave share readings of a constant shape. A record is in the row that its seat names, in the first
reading where that row is free: a record more may move others to a later reading, never to another row, and their
numbers stay bit by bit (`tacit.training.prompting.law`). The number of readings is that of the fullest row.

The tokens of a batch are drawn from one stream of its own, made of the key of the run and of the name of the batch: a
batch that is written again after a crash gets the noise that it had.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tacit.arrays import Floats32, Ids, Integers, Mask
from tacit.noise.source import Source
from tacit.training.prompting.batches import SeatedText
from tacit.training.prompting.law import AveragedLaw
from tacit.training.prompting.reading import PromptReader, PromptReading

MOST_BATCHES: Final = 64
"""Batches at work side by side: each has a row of the prompt without records."""
NOBODY: Final = -1
"""The batch of a row that is blank."""


@dataclass(frozen=True)
class Writing:
    """The public rules of texts.

    support     tokens that may come out
    stops       which of them end a text
    tokens      drawn from each batch in all
    length      of the longest text
    shortest    tokens before which no text ends
    candidates  so many tokens that the prompt without records likes best are drawn among
    """

    law: AveragedLaw
    support: Ids
    stops: Mask
    tokens: int
    length: int
    shortest: int
    candidates: int

    def __post_init__(self) -> None:
        places = np.arange(len(self.support))
        object.__setattr__(self, "_all", places)
        object.__setattr__(self, "_open", places[~self.stops])

    def candidates_after(self, public: Floats32, written: int) -> Ids:
        """Places in the support that a token may take, by public numbers alone; ordered by place."""
        allowed: Ids = self._open if written < self.shortest else self._all  # type: ignore[attr-defined]
        if self.candidates >= len(allowed):
            return allowed
        scores = np.nan_to_num(public[self.support[allowed]], nan=-np.inf)
        best = np.argpartition(-scores, self.candidates - 1)[: self.candidates]
        return np.sort(allowed[best])


@dataclass
class _Moment:
    """The sums of a batch before its next token, with the candidates and the public logits that they are for."""

    places: Ids
    sums: Integers
    reference: Floats32


@dataclass
class _Batch:
    """A batch at work: where the rows of its records are (reading, row), and what it has written."""

    source: Source
    cells: list[tuple[int, int]] = field(default_factory=list)
    start: _Moment | None = None
    texts: list[list[int]] = field(default_factory=list)
    current: list[int] = field(default_factory=list)
    drawn: int = 0


def next_wave(start: int, batches: int, planned: int, *, most_rows: int, usual: int) -> range:
    """The batches that are written side by side from batch `start` on.

    As many as are planned to have `most_rows` records together, and no more than usually suffice. By public numbers and
    released texts alone, because writing stops after a wave when there are texts enough.
    """
    size = max(1, min(MOST_BATCHES, most_rows // planned, usual))
    return range(start, min(start + size, batches))


def write_wave(
    batches: Sequence[Sequence[SeatedText]],
    sources: Sequence[Source],
    reader: PromptReader,
    writing: Writing,
    step: Callable[[], None] = lambda: None,
    read_prompts: Callable[[int, int], None] = lambda done, total: None,
) -> list[list[list[int]]]:
    """The finished texts of each batch, as tokens; a last text that the tokens did not suffice for is left out.

    step          called after every token
    read_prompts  called after every reading, with their number so far and in all
    """
    working = [_Batch(source) for source in sources]
    readings, owners = _read(batches, reader, read_prompts)
    for number, row in np.argwhere(owners != NOBODY).tolist():
        working[owners[number, row]].cells.append((number, row))
    public = reader.read_public(len(batches))
    for number, batch in enumerate(working):
        batch.start = _moment(batch, readings, public.logits[number], writing)
    moments = [batch.start for batch in working]
    while True:
        anew = np.zeros(len(working), dtype=bool)
        tokens = np.full(len(working), writing.support[0], dtype=np.int64)
        for number, batch in enumerate(working):
            if batch.drawn < writing.tokens:
                moment = moments[number]
                assert moment is not None
                tokens[number], anew[number] = _draw(batch, moment, writing)
        step()
        if all(batch.drawn >= writing.tokens for batch in working):
            return [batch.texts for batch in working]
        _extend(readings, owners, public, tokens, anew)
        moments = [
            _moment(batch, readings, public.logits[number], writing) if batch.drawn < writing.tokens else None
            for number, batch in enumerate(working)
        ]


def _draw(batch: _Batch, moment: _Moment, writing: Writing) -> tuple[int, bool]:
    """The next token that stays in a text, and whether it is the first of a new one."""
    anew = False
    while True:
        place = int(moment.places[writing.law.draw(moment.sums, moment.reference, batch.source)])
        batch.drawn += 1
        batch.current.append(int(writing.support[place]))  # one that ends a text may hold its last characters
        if writing.stops[place] or len(batch.current) >= writing.length:
            batch.texts.append(batch.current)
            batch.current, anew = [], True
            if batch.drawn >= writing.tokens:
                return int(writing.support[0]), anew
            assert batch.start is not None
            moment = batch.start
            continue
        return batch.current[-1], anew


def _read(
    batches: Sequence[Sequence[SeatedText]], reader: PromptReader, read_prompts: Callable[[int, int], None]
) -> tuple[list[PromptReading], Ids]:
    """All records in readings of constant shape, and whose each row is: (readings, rows), numbers of batches."""
    stacks: list[list[tuple[int, str]]] = [[] for _ in range(reader.rows)]
    for number, batch in enumerate(batches):
        for record in batch:
            stacks[record.seat % reader.rows].append((number, record.text))
    depth = max(map(len, stacks))
    owners: Ids = np.full((depth, reader.rows), NOBODY, dtype=np.int64)
    texts = [[""] * reader.rows for _ in range(depth)]
    for row, stack in enumerate(stacks):
        for level, (number, text) in enumerate(stack):
            owners[level, row], texts[level][row] = number, text
    readings = []
    for level, of_level in enumerate(texts, start=1):
        readings.append(reader.read(of_level))
        read_prompts(level, depth)
    return readings, owners


def _moment(batch: _Batch, readings: Sequence[PromptReading], public: Floats32, writing: Writing) -> _Moment:
    """The exact sums of the bounded numbers of all records of a batch, over the public candidates."""
    places = writing.candidates_after(public, len(batch.current))
    outputs = writing.support[places]
    reference = public[outputs]
    logits = np.empty((len(batch.cells), len(places)), dtype=np.float32)
    for record, (number, row) in enumerate(batch.cells):
        logits[record] = readings[number].logits[row, outputs]
    sums: Integers = writing.law.bounded(logits, reference).sum(axis=0)
    return _Moment(places, sums, reference)


def _extend(readings: Sequence[PromptReading], owners: Ids, public: PromptReading, tokens: Ids, anew: Mask) -> None:
    """Give every row the token of its batch; blank rows get that of the last one, which does not matter."""
    public.extend(tokens, anew)
    for reading, batches in zip(readings, owners, strict=True):
        reading.extend(tokens[batches], anew[batches])
