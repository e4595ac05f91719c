"""Exponential mechanisms whose scale is calibrated: exactly over the public vocabulary, or by the textbook's half.

    exact      the largest s with min(s d, cap) + |ln Z_s(x) - ln Z_s(x')| <= epsilon d(x, x') for all pairs (`tight`)
    textbook   s = epsilon / 2, as the papers have it; reproductions of published numbers use this one

The promise is the same. Exact calibration spends all of epsilon where the textbook leaves a part of it unused, so more
words stay as they are and an attacker guesses more of them: the card says how many.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

from tacit.arrays import Floats, Ids
from tacit.checks import EVERY_WORD, WordLaw
from tacit.guarantee import Metric
from tacit.parameters import EpsilonRange, parameter
from tacit.rounding import rounded_up
from tacit.vectors.distance import VectorDistance
from tacit.vectors.distance_rows import DistanceRows
from tacit.vectors.hyperbolic import HyperbolicDistance, HyperbolicRows
from tacit.words.exponential import ExponentialWords
from tacit.words.scales import certified_scale
from tacit.words.tight import Certificate, WordSpace, slack_of

EXACT: Final = "exact"
TEXTBOOK: Final = "textbook"
SMALL = 2_000
"""So many words are checked pair by pair where a quicker way is not known."""


@dataclass(kw_only=True, eq=False)
class CalibratedWords(ExponentialWords):
    """Parameters of the exponential mechanisms.

    calibration   "exact": the largest scale that is proven for epsilon over this vocabulary, which keeps more words;
                  "textbook": half of epsilon, as in the papers
    metric        the distance of two words: "euclidean", or "hyperbolic" for vectors inside the unit ball (Poincaré)
    """

    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(1.5, 0.75, 10.0)
    """At the default the best attacker of SanText guesses one word in eighty, at 2 one in six; at 3 he reads most."""

    calibration: str = parameter(EXACT, choices=(EXACT, TEXTBOOK))
    metric: str = parameter("euclidean", choices=("euclidean", "hyperbolic"))

    @cached_property
    def distances(self) -> DistanceRows | HyperbolicRows:
        everything = len(self.outputs) == len(self.table)
        return self._rows(None if everything else self.outputs)

    def _rows(self, columns: Ids | None) -> DistanceRows | HyperbolicRows:
        kind = HyperbolicRows if self.metric == "hyperbolic" else DistanceRows
        return kind(self.table, columns=columns)

    def distance(self) -> VectorDistance | HyperbolicDistance:
        if self.metric == "hyperbolic":
            return HyperbolicDistance(self.table.vectors, f"hyperbolic distance of {self.table.name} vectors")
        return self._euclidean_distance()

    @cached_property
    def _stated_in(self) -> Metric:
        return self.distance().metric(self.table.fingerprint)

    @property
    def law_check(self) -> WordLaw:
        check = super().law_check
        return check if check.radial or len(self.table) > SMALL else WordLaw(words=EVERY_WORD)

    # The scale ------------------------------------------------------------------------------------------------

    def geometry(self) -> WordSpace:
        """The vocabulary as the calibration sees it."""
        outputs = self.distances
        between = outputs if outputs.columns is None else self._rows(None)
        return WordSpace(len(self.table), between, outputs, self.outputs)

    def certified(self, epsilon: float) -> Certificate:
        """A scale that is proven for this epsilon between all words, with its facts."""
        return certified_scale(self.table, self.metric, self.outputs, self.cap, epsilon, self.geometry)

    @cached_property
    def certificate(self) -> Certificate | None:
        """The certificate of the scale; None for the textbook's, which needs none."""
        return self.certified(self.epsilon) if self.calibration == EXACT else None

    @property
    def scale(self) -> float:
        """The factor of a distance."""
        return self.epsilon / 2.0 if self.certificate is None else self.certificate.scale

    def scales(self, ids: Ids) -> float | Floats:
        return self.scale

    def prepare(self) -> None:
        super().prepare()
        self._load("certificate")

    # What the card says ---------------------------------------------------------------------------------------

    def _slack(self, epsilon: float) -> float:
        if self.calibration == TEXTBOOK:
            return super()._slack(epsilon)
        return slack_of(len(self.outputs), epsilon, self.distances.error_bound)

    guessed_words: ClassVar[str] = "words of the vocabulary"
    """What the share on the card is a share of."""

    def _shown_parameters(self) -> dict[str, object]:
        shown = super()._shown_parameters()
        if self.metric == "euclidean":
            del shown["metric"]
        if self.calibration == EXACT:
            shown["best guess"] = self._best_guess()
        return shown

    def _best_guess(self) -> str:
        assert self.certificate is not None
        return f"{percent_up(self.certificate.stays)} of the {self.guessed_words}"


def percent_up(share: float) -> str:
    """A share in percent with two digits, rounded up.

    >>> percent_up(0.1748)
    '18 %'
    """
    return f"{rounded_up(min(100.0, 100.0 * share), 2)} %"
