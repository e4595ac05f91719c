"""Two budgets: sensitive words get a small epsilon, common words a larger one (after Tang et al. 2020).

    Pr[M(x) = y]  proportional to  exp(-s(x) d(x, y)),   s(x) for epsilon or for common_epsilon

Tang et al. add noise of two sizes, which lets an observer tell the classes apart without any bound: far from a
word, the ratio of the two densities is unlimited. Over a finite vocabulary it has a bound, so that is used here.

Guarantee of the textbook's scales, s = e/2 and c/2, with e = epsilon <= c = common_epsilon and D the largest distance:
  within one class, the log-ratio is at most that class's epsilon times d(x, x');
  across classes, it is at most e * d(x, x') + (c - e)/2 * D. For the weights:
      c/2 d(x', y) - e/2 d(x, y) = e/2 (d(x', y) - d(x, y)) + (c - e)/2 d(x', y)  <=  e/2 d(x, x') + (c - e)/2 D
  in one direction and e/2 d(x, x') in the other; the normalizers are sums of the same terms and add e/2 d(x, x') to the
  first and e/2 d(x, x') + (c - e)/2 D to the second.
So the mechanism is c-metric private with offset (c - e)/2 * D, and a sensitive word is protected against every other
word by e * d plus that offset.

With exact calibration a <= b are scales that are proven for e and for c between *all* words (`tight`), so within a
class nothing changes. Across classes, x sensitive and x' common, exponents capped at C:
      min(b d(x', y), C) - min(a d(x, y), C) <= min(a d(x, x'), C) + min((b - a) D, C),
      min(a d(x, y), C) - min(b d(x', y), C) <= min(a d(x, x'), C);
      ln Z_b(x') - ln Z_a(x) <= ln Z_a(x') - ln Z_a(x) in the first direction, because Z falls with the scale;
      ln Z_a(x) - ln Z_b(x') <= ln Z_a(x) - ln Z_a(x') + (b - a) D in the other;
      or simply differences of the smallest and largest values that are known of them.
The first way gives e * d + (b - a) D, because a is proven for e. The second gives e * d + max(min((b - a) D, C) +
high_b - low_a, high_a - low_b), where a <= e has been used. The offset is the smaller of the two. Where both exceed
that of the textbook, b becomes max(c/2, a), for which the first does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.errors import BadParameterError
from tacit.guarantee import Guarantee, Notion, check_epsilon
from tacit.noise.choice import exponent_cap
from tacit.parameters import EpsilonRange
from tacit.rounding import rounded_up
from tacit.words.calibrated import TEXTBOOK, percent_up
from tacit.words.tight import Certificate
from tacit.words.two_classes import TwoClassWords


@dataclass(kw_only=True, eq=False)
class TwoBudgets(TwoClassWords):
    """SanText with a smaller epsilon for sensitive words than for common ones; every word can become every word.

    epsilon          the budget of a sensitive word
    common_epsilon   the budget of a common word, at least epsilon (default: twice epsilon)
    """

    common_epsilon: float | None = None

    name: ClassVar[str] = "two-budgets"
    title: ClassVar[str] = "Two budgets"
    paper: ClassVar[str] = "after Tang et al. 2020"
    notion: ClassVar[str] = Notion.METRIC.value
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(1.0, 0.75, 6.0)

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.common_epsilon is not None and check_epsilon(self.common_epsilon) < self.epsilon:
            raise BadParameterError(
                "budgets-reversed",
                "common_epsilon {common_epsilon:g} is below epsilon {epsilon:g}: common words cannot have a smaller "
                "budget than sensitive ones",
                common_epsilon=self.common_epsilon,
                epsilon=self.epsilon,
            )

    @property
    def larger_epsilon(self) -> float:
        return 2.0 * self.epsilon if self.common_epsilon is None else self.common_epsilon

    def scales(self, ids: Ids) -> Floats:
        if self.calibration == TEXTBOOK:
            return np.where(self.is_sensitive(ids), self.epsilon, self.larger_epsilon) / 2.0
        return np.where(self.is_sensitive(ids), self.scale, self._common[0])

    @cached_property
    def _common(self) -> tuple[float, float]:
        """The scale of a common word and the offset between the classes."""
        diameter = self._stated_in.diameter
        assert diameter is not None
        textbook = (self.larger_epsilon - self.epsilon) / 2.0 * diameter
        if self.certificate is None:
            return self.larger_epsilon / 2.0, textbook
        small, large = self.certificate, self.certified(self.larger_epsilon)
        if large.scale >= small.scale:
            offset = self._offset(small, large, diameter)
            if offset <= textbook:
                return large.scale, offset
        scale = max(self.larger_epsilon / 2.0, small.scale)
        return scale, (scale - small.scale) * diameter

    def _offset(self, small: Certificate, large: Certificate, diameter: float) -> float:
        moved = (large.scale - small.scale) * diameter
        farthest = min(moved, self.cap, exponent_cap(len(self.outputs)))
        return min(moved, max(0.0, farthest + large.high - small.low, small.high - large.low))

    def prepare(self) -> None:
        super().prepare()
        self._load("_common")

    def _best_guess(self) -> str:
        # No guess is better than 1 / Z of the word that came out, and Z falls with the scale.
        stays = self.certified(self.larger_epsilon).stays
        return f"at most {percent_up(stays)} of the {self.guessed_words}"

    def promise(self) -> Guarantee:
        facts = self._class_facts()
        metric, offset = self._stated_in, self._common[1]
        stronger = f"{rounded_up(self.epsilon)} x distance + {rounded_up(offset, 4)}"
        return self._promise(
            Notion.METRIC,
            self.larger_epsilon,
            offset=offset,
            metric=metric,
            parameters={**self._shown_parameters(), "exponent of a sensitive word against any other": stronger},
            slack=self._slack(self.larger_epsilon),
            **facts,
        )
