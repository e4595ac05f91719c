"""SanText+ (Yue et al., Findings of ACL 2021): common words may stay, sensitive ones hide among each other.

V_S, the sensitive words, is the share w of the vocabulary that is least frequent in public text; V_N is the rest.

    x in V_S:  y in V_S with probability proportional to exp(-s * d(x, y)), s = epsilon/2 or the exact scale (`tight`)
    x in V_N:  x itself with probability 1 - p; otherwise as above

Guarantee: utility-optimized metric differential privacy. (i) For outputs y in V_S and any two inputs the log-ratio is
at most epsilon * d(x, x') + ln(1/p): the weights as for SanText, and the factor p for x in V_N. (ii) An output in V_N
comes from exactly one input, itself: it is not protected at all. With w = 1, or p = 1, no word stays and the guarantee
is that of SanText.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.errors import BadParameterError
from tacit.guarantee import Guarantee, Notion
from tacit.noise.source import Source
from tacit.words.two_classes import TwoClassWords


@dataclass(kw_only=True, eq=False)
class SanTextPlus(TwoClassWords):
    """Like SanText, but a common word is only rewritten with probability p, which keeps texts readable.

    p   the probability that a common word is rewritten too; the card's epsilon_0 is ln(1/p)
    """

    p: float = 0.3

    guessed_words: ClassVar[str] = "sensitive words"

    name: ClassVar[str] = "santext+"
    title: ClassVar[str] = "SanText+"
    paper: ClassVar[str] = "Yue et al. 2021"
    notion: ClassVar[str] = Notion.UTILITY_OPTIMIZED_METRIC.value

    def check_parameters(self) -> None:
        super().check_parameters()
        if not 0.0 < self.p <= 1.0:
            raise BadParameterError(
                "not-a-probability",
                "p is a probability above 0 and at most 1, not {probability}: the paper uses 0.3",
                probability=self.p,
            )

    @cached_property
    def outputs(self) -> Ids:
        return self.sensitive_ids

    def draw(self, ids: Ids, source: Source) -> Ids:
        stays = ~self.is_sensitive(ids)
        stays[stays] = source.generator.random(int(stays.sum())) >= self.p
        words = ids % len(self.table)
        drawn = words.copy()
        drawn[~stays] = super().draw(words[~stays], source)
        return drawn

    def laws_of_draw(self, ids: Ids) -> Floats:
        words = ids % len(self.table)
        result = super().laws_of_draw(words)
        common = np.flatnonzero(~self.is_sensitive(ids))
        result[common] *= self.p
        result[common, words[common]] += 1.0 - self.p
        return result

    def promise(self) -> Guarantee:
        facts = self._class_facts()
        slack = self._slack(self.epsilon)
        if self.sensitive.all() or self.p == 1.0:
            # No word can stay: this is SanText with outputs from the sensitive set.
            facts.pop("sensitive_share")
            return self._promise(Notion.METRIC, self.epsilon, metric=self._stated_in, slack=slack, **facts)
        facts["not_covered"] = (
            *facts.get("not_covered", ()),
            "common words: each stays with probability "
            f"{1 - self.p:.0%}, and a common word in the output is the original",
        )
        return self._promise(
            Notion.UTILITY_OPTIMIZED_METRIC,
            self.epsilon,
            offset=math.log(1.0 / self.p),
            metric=self._stated_in,
            slack=slack,
            **facts,
        )
