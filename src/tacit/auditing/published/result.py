"""The numbers of a published form: what it promises and what it spends, or a cost that its paper does not print."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from tacit.rounding import rounded_down, rounded_up

INFINITE: Final = "infinitely much"
DIGITS: Final = 3


def shown_above(value: float) -> str:
    """A lower bound for readers."""
    return INFINITE if math.isinf(value) else rounded_down(value, DIGITS)


@dataclass(frozen=True)
class Refutation:
    """A promise and what is spent at least, at the same delta and between the same neighbors.

    form       the published form and its settings, in words
    claimed    the promised epsilon
    spent      a lower bound on the epsilon that really holds
    because    the reason, in one sentence
    """

    form: str
    claimed: float
    spent: float
    because: str
    delta: float = 0.0

    @property
    def refutes(self) -> bool:
        return self.spent > self.claimed

    def __str__(self) -> str:
        at = f" at delta {rounded_up(self.delta, DIGITS)}" if self.delta else ""
        return (
            f"{self.form} claims epsilon {rounded_up(self.claimed, DIGITS)} and spends {shown_above(self.spent)}{at}: "
            f"{self.because}"
        )


@dataclass(frozen=True)
class PublishedCost:
    """A number that decides about a method and is not a broken promise.

    sentence   what the number means, with `{value}` at its place
    """

    sentence: str
    value: float

    def __str__(self) -> str:
        return self.sentence.format(value=f"{self.value:,.4g}")
