"""Answers by private vote: disjoint sets of private examples answer the same question, and a label is drawn.

Every set shows its examples to a public model, which names one of the public labels. With k_c votes for label c, label
c is drawn with probability proportional to exp(a k_c), by integers.

**A set is a group of records** (records, or users, are put into sets by a keyed hash of themselves alone). A record
that comes or goes changes its own set and no other, so at most one vote changes: from c to c', or from or to no vote at
all where the set is empty. One log-weight falls by at most a and one rises by at most a: a choice of bounded range 2a,
so a = e / 2 for a question of price e.

**A set is a user** (every user's records are a set of their own). A user who comes or goes brings or takes one vote;
all others stay. One log-weight moves by a, the rest do not: range a, so a = e, twice as much. The same factor for a set
that is a *group* would be wrong: the vote of a group can move from one label to another (`tests/training/prompting`).

A question costs e as a choice of bounded range e, and Q questions cost Q e^2 / 8 together (`tacit.account.zcdp`), or Q
e without a delta, whichever is less for the budget.

Examples are never chosen by their likeness to the question: which are the nearest depends on all records together, so
that one record could change the votes of many sets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from tacit.account.zcdp import ROUNDING, choice_rho, epsilon_of_rho, repeated_rho, rho_of_epsilon
from tacit.arrays import Floats, Ids, Integers
from tacit.errors import BadParameterError
from tacit.noise.choice import draw_rows, integer_weights, probabilities, rounding_slack
from tacit.noise.source import Source

NO_VOTE: Final = -1
"""The vote of an empty set."""


@dataclass(frozen=True)
class VotePrice:
    """The price of one question: the range of its choice, and what all questions cost together."""

    width: float
    questions: int
    epsilon: float
    delta: float


def price_of_questions(epsilon: float, delta: float, questions: int, labels: int) -> VotePrice:
    """The largest range that every question can have within (epsilon, delta)."""
    if questions < 1:
        raise BadParameterError("no-questions", "there is no question to answer: give a file with at least one row")
    least = rounding_slack(labels)
    apart = epsilon / questions * (1 - ROUNDING)
    together = math.sqrt(8 * rho_of_epsilon(epsilon, delta) / questions) * (1 - 1e-9)
    if max(apart, together) <= 2 * least:
        raise BadParameterError(
            "budget-below-rounding",
            "{questions:,} questions leave each of them less than rounding costs: ask fewer, or spend more",
            questions=questions,
        )
    if apart >= together:
        return VotePrice(apart, questions, epsilon, 0.0)
    return VotePrice(together, questions, epsilon_of_rho(repeated_rho(choice_rho(together), questions), delta), delta)


@dataclass(frozen=True)
class VoteLaw:
    """The law of an answer.

    width         the price of a question: the range of its choice, rounding included
    labels        how many there are
    set_is_user   whether a unit brings or takes a whole vote, and changes none
    """

    width: float
    labels: int
    set_is_user: bool = False

    @property
    def strength(self) -> float:
        """a: what one more vote adds to the log-weight of a label."""
        left = self.width - rounding_slack(self.labels)
        if left <= 0:
            raise BadParameterError("budget-below-rounding", "a question costs more than the rounding of its choice")
        return left if self.set_is_user else left / 2

    def counts(self, votes: Ids) -> Integers:
        """The number of votes of each label."""
        cast: Integers = np.bincount(votes[votes != NO_VOTE], minlength=self.labels).astype(np.int64)
        return cast

    def weights(self, counts: Integers) -> Integers:
        """Integer weights (1, labels)."""
        exponents: Floats = (counts.max() - counts).astype(np.float64) * self.strength
        return integer_weights(exponents[None])

    def law(self, counts: Integers) -> Floats:
        """The exact probabilities of `draw`."""
        law: Floats = probabilities(self.weights(counts))[0]
        return law

    def draw(self, votes: Ids, source: Source) -> int:
        """The label of an answer, drawn by integers."""
        return int(draw_rows(self.weights(self.counts(votes)), np.ones(1, dtype=np.int64), source)[0])
