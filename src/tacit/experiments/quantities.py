"""Which scores a table, a figure or a finding looks at.

    score("task.macro-F1", mechanism="santext", epsilon=(1, 2))     the mean over these cells
    score("task.macro-F1", epsilon=SMALLEST)                        at the smallest epsilon of the group
    share(score("task.score"))                                      between its floor and its ceiling
    score("task.change") + score("attacker.privacy gain") - 0.5     sums, also with numbers

Every axis that is neither chosen nor grouped by is averaged, always the seeds. Experiment files write the same as data:
`value = "task.score"`, or a list of tables such as `{ score = "task.score", where = { data = "sst2" }, times = -1 }`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pydantic import Field

from tacit.experiments.declared import Strict, Value, allowed, shown

SMALLEST: Final = "min"
LARGEST: Final = "max"
"""In place of a value of a numeric axis: its ends among the cells of a group."""


class ScoreTerm(Strict):
    """One score of the cells of one step.

    score   STEP.MEASURE
    where   the axis values to look at
    share   where it stands between its floor and its ceiling
    times   what it is multiplied by in a sum
    """

    score: str = Field(pattern=r"^[^.]+\..+$")
    where: dict[str, Value | list[Value]] = Field(default={})
    share: bool = False
    times: float = 1.0

    @property
    def step(self) -> str:
        return self.score.partition(".")[0]

    @property
    def measure(self) -> str:
        return self.score.partition(".")[2]

    def varies(self, axis: str) -> bool:
        """Whether groups may run over an axis: one at which a single value is chosen stays there."""
        return axis not in self.where or len(allowed(self.where[axis])) != 1

    def __str__(self) -> str:
        chosen = ", ".join(f"{axis}={'|'.join(map(shown, allowed(values)))}" for axis, values in self.where.items())
        text = f"{self.score}[{chosen}]" if chosen else self.score
        return f"share({text})" if self.share else text


Amount = str | list[ScoreTerm]
"""A quantity in a file: STEP.MEASURE, or a sum of scores."""


@dataclass(frozen=True)
class Quantity:
    """A sum of scores and a number."""

    scores: tuple[ScoreTerm, ...] = ()
    added: float = 0.0

    def __add__(self, other: Quantity | float) -> Quantity:
        more = quantity_of(other)
        return Quantity((*self.scores, *more.scores), self.added + more.added)

    def __neg__(self) -> Quantity:
        return Quantity(tuple(score.model_copy(update={"times": -score.times}) for score in self.scores), -self.added)

    def __mul__(self, factor: float) -> Quantity:
        scaled = tuple(score.model_copy(update={"times": factor * score.times}) for score in self.scores)
        return Quantity(scaled, factor * self.added)

    def __sub__(self, other: Quantity | float) -> Quantity:
        return self + (-quantity_of(other))

    def __str__(self) -> str:
        if not self.scores:
            return f"{self.added:g}"
        parts = [(score.times, _scaled(score)) for score in self.scores]
        parts += [(self.added, f"{abs(self.added):g}")] if self.added else []
        first = f"{'-' if parts[0][0] < 0 else ''}{parts[0][1]}"
        return " ".join([first, *(f"{'-' if sign < 0 else '+'} {text}" for sign, text in parts[1:])])


def _scaled(score: ScoreTerm) -> str:
    size = abs(score.times)
    return str(score) if size == 1 else f"{size:g} {score}"


def score(name: str, /, **where: Value | tuple[Value, ...]) -> Quantity:
    """The score STEP.MEASURE of the cells at these axis values; a tuple allows each of its values."""
    chosen = {axis: list(values) if isinstance(values, tuple) else values for axis, values in where.items()}
    return Quantity((ScoreTerm(score=name, where=chosen),))


def share(quantity: Quantity) -> Quantity:
    """(value - floor) / (ceiling - floor) of each score."""
    return replace(quantity, scores=tuple(term.model_copy(update={"share": True}) for term in quantity.scores))


def quantity_of(amount: Amount | Quantity | float) -> Quantity:
    """A quantity from what stands for it in a file, or from a number."""
    if isinstance(amount, Quantity):
        return amount
    if isinstance(amount, str):
        return score(amount)
    return Quantity(tuple(amount)) if isinstance(amount, list) else Quantity(added=float(amount))
