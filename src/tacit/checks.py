"""How the claim of a mechanism can be checked, as `Mechanism.checks` says it and `tacit audit mechanism` does it.

Exact checks compare probabilities that the mechanism computes for itself (`WordLaw`, `TextLaw`, `TokenLaw`). Checks by
samples (`WordSamples`, `VectorSamples`) are made where there is no exact one, or when samples are wanted as well.
`MadeUpWords` and `LatentSamples` are always made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tacit.arrays import Floats

EVERY_WORD: Final = "all"
CLOSEST_PAIRS: Final = "closest:100"


@dataclass(frozen=True)
class WordLaw:
    """Exact: the law of every word, `WordMechanism.laws`.

    words    the inputs that are looked at when the user names none: "all", a number of them, or "closest:K" pairs
    radial   the law is exp(-min(scale(x) d(x, y), cap)) up to rounding, so that all pairs of a large vocabulary can be
             bounded (`tacit.auditing.claims.radial`, which measures whether it is)
    """

    words: str = CLOSEST_PAIRS
    radial: bool = False


@dataclass(frozen=True)
class WordSamples:
    """By samples: words as the pipeline releases them, `WordMechanism.released_ids`."""


@dataclass(frozen=True)
class VectorSamples:
    """By samples: the noisy vectors behind the words, `NoisyWords.release_vectors`."""


@dataclass(frozen=True)
class MadeUpWords:
    """By samples: words that are in no vocabulary must come out as anything else would. `sets` is the number of public
    sets that an unknown word can fall into."""

    sets: int = 1


@dataclass(frozen=True)
class TextLaw:
    """Exact: the probabilities of everything that one draw for a document can release.

    epsilon, delta, slack   what is claimed for the draw between any two documents
    law        the probabilities of `outputs` for a text
    outputs    what can be released
    texts      so many public texts to try
    matrix     the laws of all inputs that there are, one row each and named like the outputs, where these are few
    """

    epsilon: float
    law: Callable[[str], Floats]
    outputs: Sequence[str]
    texts: Callable[[int], Sequence[str]]
    delta: float = 0.0
    slack: float = 0.0
    matrix: Callable[[], Floats] | None = None


@dataclass(frozen=True)
class TokenLaw:
    """Exact: the law of the next token of a document after the same released tokens.

    epsilon, slack   the share of one token
    law       the probabilities of the tokens in `support` (and of "nothing") for a text and released tokens
    support   the tokens that can come out
    """

    epsilon: float
    law: Callable[[str, list[int]], Floats]
    support: NDArray[np.int64]
    slack: float = 0.0


@dataclass(frozen=True)
class LatentSamples:
    """By samples: the noisy latents of the two inputs that a bound leaves farthest apart, and the size of the noise.

    family   of the noise: "normal" or "laplace"; None: there is none
    """

    epsilon: float
    family: str | None
    delta: float = 0.0
    slack: float = 0.0


Check = WordLaw | WordSamples | VectorSamples | MadeUpWords | TextLaw | TokenLaw | LatentSamples
EXACT: Final = (WordLaw, TextLaw, TokenLaw)
ONLY_WITHOUT_EXACT: Final = (WordSamples, VectorSamples)
