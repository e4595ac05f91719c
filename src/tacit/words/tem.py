"""TEM, the truncated exponential mechanism (Carvalho et al. 2021).

    gamma = (2 / epsilon) ln((1 - beta)(|V| - 1) / beta)
    words within gamma of x score -d(x, y); one element "outside" scores -gamma + (2 / epsilon) ln #(V \\ L_x);
    Gumbel(2 / epsilon) noise, take the maximum; "outside" becomes a uniform word outside the ball L_x.

Adding Gumbel noise of scale 2 / epsilon and taking the maximum draws with probability proportional to
exp(epsilon/2 * score) (Gumbel-max). A word y outside the ball thus has weight exp(-epsilon/2 * gamma), exactly:

    Pr[M(x) = y]  proportional to  exp(-epsilon/2 * min(d(x, y), gamma))

which is how it is drawn here. Guarantee: epsilon-metric differential privacy. Proof: min(d, gamma) is 1-Lipschitz in x
because d is. With exact calibration the scale s takes the place of epsilon/2 everywhere, so that beta keeps its
meaning: gamma = ln((1 - beta)(|V| - 1) / beta) / s, proven over all pairs (see `tight`). The set difference matters:
published code that took a quotient of counts for it breaks the bound (the tests keep that variant as a known wrong
one).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tacit.errors import BadParameterError
from tacit.guarantee import Guarantee, Notion
from tacit.words.calibrated import TEXTBOOK, CalibratedWords


@dataclass(kw_only=True, eq=False)
class TEM(CalibratedWords):
    """Like SanText, but all words farther than a threshold are equally likely.

    beta   the chance of leaving the ball when every other word lies outside it; it sets the threshold gamma
    """

    beta: float = 0.001

    name: ClassVar[str] = "tem"
    title: ClassVar[str] = "Truncated exponential mechanism"
    paper: ClassVar[str] = "Carvalho et al. 2021"
    notion: ClassVar[str] = Notion.METRIC.value

    def check_parameters(self) -> None:
        super().check_parameters()
        if not 0.0 < self.beta < 1.0:
            raise BadParameterError(
                "not-a-probability",
                "beta is a probability between 0 and 1, not {beta}: the paper uses 0.001",
                beta=self.beta,
            )

    @property
    def gamma(self) -> float:
        if self.calibration == TEXTBOOK:
            return max(0.0, 2.0 / self.epsilon * self._outside)
        return self.cap / self.scale

    @property
    def _outside(self) -> float:
        return math.log((1.0 - self.beta) * (len(self.table) - 1) / self.beta)

    @property
    def cap(self) -> float:
        return self.epsilon / 2.0 * self.gamma if self.calibration == TEXTBOOK else max(0.0, self._outside)

    def promise(self) -> Guarantee:
        return self._promise(Notion.METRIC, self.epsilon, metric=self._stated_in, slack=self._slack(self.epsilon))
