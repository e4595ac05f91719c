"""How many batches and tokens a budget buys.

All records of a label are in one of B batches of the planned size s = count / B, and every batch draws r tokens in all,
over one or several texts. Each token costs rho(s), about (c / (s T))^2 / 2, so a batch costs r rho(s). A record is in
one batch of one label: the price of a record is that of its batch, and the batches pay side by side.

To write n texts of up to L tokens, which take up to 3 L / 4 on average, the batches draw r = 3 n L / (4 B) tokens each,
and at least L. Larger batches cost less budget, but are dearer to compute: every token reads every record of its batch.
They give hardly better text, because a token is drawn from the *average* of a batch and no noise is added to it. So
the plan takes the smallest batches, hence the largest B, that the budget allows. Where B batches can write more than n
texts, the writing stops when there are enough, which is seen on released texts alone.

The plan sees the noisy count of a label, not its records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from tacit.account.zcdp import repeated_rho
from tacit.training.prompting.law import AveragedLaw

USUAL_SHARE: Final = 0.75
"""How much of its longest length a text usually takes."""


@dataclass(frozen=True)
class BatchPlan:
    """The batches of one label.

    law      of a token; it holds the planned size of a batch
    batches  their number
    tokens   drawn from each of them in all
    rows     texts that are expected, and at most kept
    length   tokens of the longest text
    """

    label: str
    law: AveragedLaw
    batches: int
    tokens: int
    rows: int
    length: int
    candidates: int

    @property
    def rho(self) -> float:
        """The price of a record of this label."""
        return repeated_rho(self.law.rho(self.candidates), self.tokens)

    @property
    def usual_draws(self) -> int:
        """Tokens that are usually drawn until all texts are there."""
        batches = math.ceil(self.rows * self.length * USUAL_SHARE / self.tokens)
        return min(self.batches, batches) * self.tokens

    @property
    def readings(self) -> int:
        """Predictions that the model usually makes for this label: every token reads every record of its batch."""
        return self.usual_draws * self.law.batch


def usual_tokens(rows: int, length: int) -> int:
    """How many tokens so many texts take."""
    return max(length, math.ceil(rows * length * USUAL_SHARE))


def plan_label(
    label: str, law: AveragedLaw, *, count: int, rows: int, length: int, candidates: int, rho: float, batch: int | None
) -> BatchPlan | None:
    """The plan for `rows` texts of a label of about `count` records; None if the budget buys not even one text.

    batch   the planned size of a batch; None takes the smallest one that the budget allows
    """
    if rows < 1 or count < 1:
        return None

    def with_batches(batches: int) -> BatchPlan:
        sized = replace(law, batch=max(1, count // batches) if batch is None else batch)
        return BatchPlan(
            label, sized, batches, usual_tokens(math.ceil(rows / batches), length), rows, length, candidates
        )

    if batch is not None:
        return _within(with_batches(max(1, round(count / batch))), rho, length)
    low, high = 1, count
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if with_batches(middle).rho <= rho else (low, middle - 1)
    return _within(with_batches(low), rho, length)


def _within(plan: BatchPlan, rho: float, length: int) -> BatchPlan | None:
    """The plan with as many tokens as the budget allows, and the texts that they usually make."""
    if plan.rho <= rho:
        return plan
    tokens = int(rho / plan.law.rho(plan.candidates) * (1 - 1e-9))
    if tokens < length:
        return None
    texts = int(plan.batches * tokens / (length * USUAL_SHARE))
    return replace(plan, tokens=tokens, rows=min(plan.rows, texts))
