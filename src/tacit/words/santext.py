"""SanText (Yue et al., Findings of ACL 2021): the exponential mechanism over the whole vocabulary.

    Pr[M(x) = y]  proportional to  exp(-s * |phi(x) - phi(y)|)

Guarantee: epsilon-metric differential privacy in the distance of the vectors, for any two tokens. Proof for the
textbook's s = epsilon/2: by the triangle inequality the exponent changes by at most epsilon/2 * d(x, x') (see
`exponential`); for the exact scale: computed over all pairs of the vocabulary (see `tight`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tacit.guarantee import Guarantee, Notion
from tacit.words.calibrated import CalibratedWords


@dataclass(kw_only=True, eq=False)
class SanText(CalibratedWords):
    """Every word becomes a vocabulary word, near words more often than far ones.

    Good first choice: fast, exact, and every word is protected alike. epsilon is a budget per unit of vector distance,
    so compare it only between runs with the same vectors; with the default vectors, 1 to 2 rewrites most words.
    """

    name: ClassVar[str] = "santext"
    title: ClassVar[str] = "SanText"
    paper: ClassVar[str] = "Yue et al. 2021"
    notion: ClassVar[str] = Notion.METRIC.value

    def promise(self) -> Guarantee:
        return self._promise(Notion.METRIC, self.epsilon, metric=self._stated_in, slack=self._slack(self.epsilon))
