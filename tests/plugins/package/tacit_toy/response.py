"""Randomized response over the whole vocabulary.

Guarantee: pure epsilon differential privacy for any two words, because the truth has at most e^epsilon times the
probability of any other word (`tacit.noise.response`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.arrays import Floats, Ids
from tacit.checks import EVERY_WORD, WordLaw
from tacit.guarantee import Guarantee, Notion
from tacit.noise.response import respond, response_matrix
from tacit.noise.source import Source
from tacit.parameters import EpsilonRange, parameter
from tacit.words.base import (
    WordMechanism,
)


@dataclass(kw_only=True, eq=False)
class ToyResponse(WordMechanism):
    """A word stays, or becomes any other word of the vocabulary.

    mood   changes nothing
    """

    mood: str = parameter("calm", choices=("calm", "wild"))

    name: ClassVar[str] = "toy-response"
    title: ClassVar[str] = "Toy response"
    paper: ClassVar[str] = "a test"
    notion: ClassVar[str] = Notion.PURE.value
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(7.0, 0.25, 13.0)

    @property
    def law_check(self) -> WordLaw:
        return WordLaw(words=EVERY_WORD)

    def draw(self, ids: Ids, source: Source) -> Ids:
        return respond(ids, len(self.table), self.epsilon, source)

    def laws_of_draw(self, ids: Ids) -> Floats:
        return response_matrix(self.epsilon, len(self.table))[ids]

    def promise(self) -> Guarantee:
        return self._promise(Notion.PURE, self.epsilon)
