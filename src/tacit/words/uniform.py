"""Uniform random words: the floor that every other mechanism is measured against. epsilon = 0, pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.checks import EVERY_WORD, WordLaw
from tacit.guarantee import Guarantee, Notion
from tacit.noise.source import Source
from tacit.words.base import (
    WordMechanism,
)


@dataclass(kw_only=True, eq=False)
class UniformWords(WordMechanism):
    """Every word becomes a uniformly random vocabulary word: perfect privacy of the words, no meaning left.

    The output does not depend on the words at all, so epsilon is 0 whatever is asked for.
    """

    epsilon: float = 1.0

    name: ClassVar[str] = "random"
    title: ClassVar[str] = "Uniform random words"
    paper: ClassVar[str] = "baseline"
    notion: ClassVar[str] = Notion.PURE.value

    @property
    def law_check(self) -> WordLaw:
        return WordLaw(words=EVERY_WORD)

    def draw(self, ids: Ids, source: Source) -> Ids:
        return source.generator.integers(0, len(self.table), size=len(ids))

    def laws_of_draw(self, ids: Ids) -> Floats:
        return np.full((len(ids), len(self.table)), 1.0 / len(self.table))

    def promise(self) -> Guarantee:
        return self._promise(Notion.PURE, 0.0)
