"""Two budgets: sensitive words get a small epsilon, common words a larger one (after Tang et al. 2020).

    Pr[M(x) = y]  proportional to  exp(-epsilon(x)/2 * d(x, y)),   epsilon(x) = epsilon or common_epsilon

Tang et al. add noise of two sizes, which lets an observer tell the classes apart without any bound: far from a
word, the ratio of the two densities is unlimited. Over a finite vocabulary it has a bound, so that is used here.

Guarantee. With e = epsilon <= c = common_epsilon and D the largest distance:
  within one class, the log-ratio is at most that class's epsilon times d(x, x');
  across classes, it is at most e * d(x, x') + (c - e)/2 * D. For the weights:
      c/2 d(x', y) - e/2 d(x, y) = e/2 (d(x', y) - d(x, y)) + (c - e)/2 d(x', y)  <=  e/2 d(x, x') + (c - e)/2 D
  in one direction and e/2 d(x, x') in the other; the normalizers are sums of the same terms and add e/2 d(x, x') to the
  first and e/2 d(x, x') + (c - e)/2 D to the second.
So the mechanism is c-metric private with offset (c - e)/2 * D, and a sensitive word is protected against every other
word by e * d plus that offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.errors import BadParameterError
from tacit.guarantee import Guarantee, Notion, check_epsilon
from tacit.parameters import EpsilonRange
from tacit.rounding import rounded_up
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
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(1.0, 0.5, 8.0)

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
        return np.where(self.is_sensitive(ids), self.epsilon, self.larger_epsilon) / 2.0

    def promise(self) -> Guarantee:
        metric = self._euclidean()
        assert metric.diameter is not None
        facts = self._class_facts()
        offset = (self.larger_epsilon - self.epsilon) / 2.0 * metric.diameter
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
