"""Texts written from batches of private records, one token at a time, for many batches side by side.

Every batch draws the same public number of tokens in all. A text ends at an end token or at its longest length; then
the batch begins another one at once, from the sums after its prompts, which it has already. So no batch waits for
another, and all are finished at about the same time. Where texts end is a function of released tokens: post-processing.

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
from tacit.training.prompting.batches import PrivateRecord
from tacit.training.prompting.law import AveragedLaw
from tacit.training.prompting.reading import PromptReader, PromptReading

WAVE_ROWS: Final = 236
"""About so many prompts are held in memory at a time, with their attention caches."""
MOST_PUBLIC: Final = 16
"""Rows of the prompts without records, one for each batch at work."""


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
    """A batch at work: the rows of its records in each reading, and what it has written."""

    source: Source
    rows: list[tuple[int, slice]]
    start: _Moment | None = None
    texts: list[list[int]] = field(default_factory=list)
    current: list[int] = field(default_factory=list)
    drawn: int = 0


def waves(batches: int, planned: int) -> list[range]:
    """Batches that are written side by side: as many as are planned to have about `WAVE_ROWS` records together.

    By public numbers alone, because writing stops after a wave when there are texts enough.
    """
    size = min(MOST_PUBLIC, max(1, WAVE_ROWS // planned))
    return [range(start, min(start + size, batches)) for start in range(0, batches, size)]


def write_wave(
    batches: Sequence[Sequence[PrivateRecord]],
    sources: Sequence[Source],
    reader: PromptReader,
    writing: Writing,
    step: Callable[[], None] = lambda: None,
) -> list[list[list[int]]]:
    """The finished texts of each batch, as tokens; a last text that the tokens did not suffice for is left out."""
    readings, layout = _read(batches, reader)
    public = reader.read_public(MOST_PUBLIC)
    working = [_Batch(source, rows) for source, rows in zip(sources, layout, strict=True)]
    for number, batch in enumerate(working):
        batch.start = _moment(batch, readings, public.logits[number], writing)
    moments = [batch.start for batch in working]
    while True:
        anew = np.zeros(MOST_PUBLIC, dtype=bool)
        tokens = np.full(MOST_PUBLIC, writing.support[0], dtype=np.int64)
        for number, batch in enumerate(working):
            if batch.drawn < writing.tokens:
                moment = moments[number]
                assert moment is not None
                tokens[number], anew[number] = _draw(batch, moment, writing)
        step()
        if all(batch.drawn >= writing.tokens for batch in working):
            return [batch.texts for batch in working]
        _extend(working, readings, public, tokens, anew)
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
    batches: Sequence[Sequence[PrivateRecord]], reader: PromptReader
) -> tuple[list[PromptReading], list[list[tuple[int, slice]]]]:
    """All records in readings of constant shape, and where those of each batch are.

    A batch has readings of its own: a record more in one batch leaves the rows of every other batch where they are.
    """
    size = reader.rows
    readings: list[PromptReading] = []
    layout = []
    for batch in batches:
        texts = [record.text for record in batch]
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        layout.append([(len(readings) + number, slice(0, len(part))) for number, part in enumerate(parts)])
        readings += [reader.read(part) for part in parts]
    return readings, layout


def _moment(batch: _Batch, readings: Sequence[PromptReading], public: Floats32, writing: Writing) -> _Moment:
    """The exact sums of the bounded numbers of all records of a batch, over the public candidates."""
    places = writing.candidates_after(public, len(batch.current))
    outputs = writing.support[places]
    reference = public[outputs]
    sums = np.zeros(len(places), dtype=np.int64)
    for number, rows in batch.rows:
        sums += writing.law.bounded(readings[number].logits[rows][:, outputs], reference).sum(axis=0)
    return _Moment(places, sums, reference)


def _extend(
    working: Sequence[_Batch], readings: Sequence[PromptReading], public: PromptReading, tokens: Ids, anew: Mask
) -> None:
    """Give every row the token of its batch."""
    public.extend(tokens, anew)
    for number, reading in enumerate(readings):
        rows = len(reading.logits)
        row_tokens, row_anew = np.full(rows, tokens[0]), np.zeros(rows, dtype=bool)
        for place, batch in enumerate(working):
            for where, slots in batch.rows:
                if where == number:
                    row_tokens[slots], row_anew[slots] = tokens[place], anew[place]
        reading.extend(row_tokens, row_anew)
