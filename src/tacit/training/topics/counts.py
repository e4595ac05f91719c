"""Exact counts of cells and of words within cells: private, and only ever used to be released with noise.

Everything is in whole numbers of `STEPS` to a count, so the bounds below hold exactly.

    cells   a record adds STEPS to one cell, or nothing. A user whose r texts have n_c in cell c adds
            floor(STEPS n_c / r) to each: together at most STEPS, whatever they wrote.
    words   a unit adds isqrt(STEPS^2 / k) to each of its k words, k at most `most_words`: the squares add up to at
            most STEPS^2, so the length of what it adds is at most 1. A record's words are in its cell. Each *different*
            word of a user is counted in one cell only, that of the text where it stands first: so the words of a user
            stay k different entries when cells are joined to topics, and the length stays at most 1.

Which words count is a function of the unit alone (`Contribution.chosen`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.arrays import Ids, Integers
from tacit.errors import BadInputError
from tacit.text.identity import user_name
from tacit.training.vocabulary.contribution import Contribution

STEPS = 1 << 20
"""Steps of one count."""


@dataclass(frozen=True)
class _UserTexts:
    """The texts of a user: how many are in each cell, and the cell of each word where it stands first."""

    cells: dict[int, int] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)


class UnitCounts:
    """Counts of all cells, and of all words in each, as records are added. Private.

    cells        the number of cells
    most_words   the most different words of one unit that count
    by_user      whether a unit is a user; then rows are named when they are added
    """

    def __init__(self, cells: int, most_words: int, *, by_user: bool = False) -> None:
        self._contribution = Contribution(most_words)
        self._cells: Integers = np.zeros(cells, dtype=np.int64)
        self._words: dict[tuple[int, str], int] = {}
        self._users: dict[str, _UserTexts] | None = {} if by_user else None
        self._records = 0

    def add(self, cells: Ids, words: Sequence[Sequence[str]], users: Sequence[str] = ()) -> None:
        """Add texts: the cell of each (below 0: none, and the text adds nothing), its words, and who wrote it."""
        for place, cell in enumerate(cells.tolist()):
            self._records += 1
            if self._users is not None:
                self._add_to_user(users[place], cell, words[place])
            elif cell >= 0:
                self._cells[cell] += STEPS
                self._add_words(dict.fromkeys(self._contribution.chosen(words[place]), cell))

    def _add_to_user(self, user: str, cell: int, words: Sequence[str]) -> None:
        assert self._users is not None
        name = user_name(user)
        if not name:
            raise BadInputError("no-user", "row {row:,} has no user: every row must belong to one", row=self._records)
        texts = self._users.setdefault(name, _UserTexts())
        if cell >= 0:
            texts.cells[cell] = texts.cells.get(cell, 0) + 1
            for word in words:
                texts.words.setdefault(word, cell)

    def _add_words(self, cell_of: dict[str, int]) -> None:
        if not cell_of:
            return
        weight = math.isqrt(STEPS * STEPS // len(cell_of))
        for word, cell in cell_of.items():
            self._words[cell, word] = self._words.get((cell, word), 0) + weight

    def finish(self) -> ExactCounts:
        """The counts of all that was added."""
        units = self._records if self._users is None else len(self._users)
        for texts in (self._users or {}).values():
            written = sum(texts.cells.values())
            for cell, count in texts.cells.items():
                self._cells[cell] += STEPS * count // written
            self._add_words({word: texts.words[word] for word in self._contribution.chosen(list(texts.words))})
        if not self._records:
            raise BadInputError("no-rows", "{name} has no rows", name="the data")
        return ExactCounts(self._cells, self._words, units)


@dataclass(frozen=True)
class ExactCounts:
    """Counts in steps: of each cell, and of each word in a cell. Private.

    units   how many records or users were read
    """

    cells: Integers = field(repr=False)
    words: dict[tuple[int, str], int] = field(repr=False)
    units: int = field(repr=False)
