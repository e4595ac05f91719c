"""Public rules for what a model should write next: not nothing, and not the examples of its prompt.

A small model that is given a few examples likes to repeat them, or to end at once, most of all where the document may
say little. A rule looks at the public prompt and at tokens that are already released, never at the document, and lowers
the scores of unwanted tokens as if the model itself found them hopeless, with and without the document alike. So a law
that is private for every pair of scores stays so; and as no score can exclude a token, nothing becomes impossible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats, Ids
from tacit.documents.language_models.models import (
    Frame,
)

HOPELESS = -1e30
REPEATED = 3
"""So many tokens of the prompt in a row are a copy; the last of them is unwanted."""


@dataclass(frozen=True, eq=False)
class Guide:
    """The tokens of the support that are unwanted, by the released ones before them.

    stops      tokens of the support that end an output
    shortest   how many tokens are written before one of these is wanted
    follows    by REPEATED - 1 tokens of the prompt, the places in the support of what follows them there
    """

    stops: NDArray[np.bool_]
    shortest: int
    follows: dict[tuple[int, ...], Ids] = field(default_factory=dict)

    @classmethod
    def of_prompt(cls, frame: Frame, support: Ids, stops: NDArray[np.bool_], shortest: int) -> Guide:
        place = {int(token): position for position, token in enumerate(support)}
        places_after: dict[tuple[int, ...], set[int]] = defaultdict(set)
        for part in (frame.before, frame.after):
            for start in range(len(part) - REPEATED + 1):
                *context, last = part[start : start + REPEATED]
                # An end is wanted wherever the model wants it.
                if last in place and not stops[place[last]]:
                    places_after[tuple(context)].add(place[last])
        return cls(stops, shortest, {context: np.array(sorted(places)) for context, places in places_after.items()})

    def apply(self, scores: Floats, released: Sequence[Sequence[int]]) -> Floats:
        """Scores of the next token (rows, support), lowered where it is unwanted after these released tokens."""
        guided = scores.copy()
        for row, tokens in enumerate(released):
            if len(tokens) < self.shortest:
                guided[row, self.stops] = HOPELESS
            unwanted = self.follows.get(tuple(tokens[1 - REPEATED :]))
            if unwanted is not None:
                guided[row, unwanted] = HOPELESS
        return guided
