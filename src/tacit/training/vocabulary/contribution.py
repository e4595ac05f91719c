"""The contribution of one unit to the counts of words, bounded whatever the unit holds.

Which of more words count is a function of the unit alone: a choice from one stream of random numbers for all units
would move with every unit that is added, and no sensitivity would hold.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.errors import BadParameterError, check_choice
from tacit.guarantee import Adjacency
from tacit.noise.source import public_generator

WEIGHTINGS = ("one", "shared")
DEFAULT_WORDS = 100


@dataclass(frozen=True)
class Contribution:
    """words: the most different words that one unit adds to; weighting: how much to each of them."""

    words: int = DEFAULT_WORDS
    weighting: str = "shared"

    def __post_init__(self) -> None:
        if self.words < 1:
            raise BadParameterError(
                "impossible-count", "a unit must be allowed at least 1 word, not {count}", count=self.words
            )
        check_choice(self.weighting, WEIGHTINGS, code="unknown-weighting", what="weighting")

    def weight(self, held: int) -> float:
        """The weight of each of `held` words of a unit."""
        return 1.0 if self.weighting == "one" else held**-0.5

    def l2_sensitivity(self, adjacency: Adjacency) -> float:
        entries = self.words if self.weighting == "one" else 1.0
        return math.sqrt(_reach(adjacency) * entries)

    def l1_sensitivity(self, adjacency: Adjacency) -> int:
        if self.weighting != "one":
            raise BadParameterError(
                "noise-does-not-fit-weighting",
                "Laplace noise goes with the weighting 'one', normal noise with both: change either",
            )
        return _reach(adjacency) * self.words

    def chosen(self, words: Sequence[str]) -> list[str]:
        """The different words of a unit, at most so many of them, chosen by the unit's own words and nothing else."""
        different = list(dict.fromkeys(words))
        if len(different) <= self.words:
            return different
        digest = hashlib.blake2b("\n".join(different).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        order = public_generator(int.from_bytes(digest, "little"))
        return [different[i] for i in np.sort(order.permutation(len(different))[: self.words])]


def _reach(adjacency: Adjacency) -> int:
    """How many units' worth of counts two neighbors differ by."""
    if adjacency not in (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE):
        raise BadParameterError(
            "adjacency-not-accounted",
            "a histogram promises something for adding or removing one unit, or for replacing one",
        )
    return 2 if adjacency is Adjacency.REPLACE_ONE else 1
