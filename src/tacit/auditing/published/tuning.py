"""Tuning by private runs whose paper prints the epsilon of the best run alone, and what the choice spends.

The toy run: a model is good or bad, and a record decides by a randomized answer which is likelier, so that one run has
pure epsilon e. The best of several runs is bad only if all are.
"""

from __future__ import annotations

import math

from tacit.account.selection import TrialLaw
from tacit.auditing.published.result import Refutation


def best_of_many_runs(epsilon: float = 1.0, runs: int = 10, delta: float = 1e-6) -> Refutation:
    """The common practice: so many runs, the best is shown with its own epsilon.

    With the record a run is bad with probability a = e^epsilon / (1 + e^epsilon), without it with b = 1 - a. All are
    bad with a^runs or b^runs, and the only event that matters gives epsilon = ln((a^runs - delta) / b^runs) exactly.
    """
    bad = 1.0 / (1.0 + math.exp(-epsilon))
    return Refutation(
        f"tuning by {runs} runs of which the best is shown with the epsilon of one run",
        epsilon,
        math.log((bad**runs - delta) / (1.0 - bad) ** runs),
        "that the best of many runs is still bad says what each of them said, all at once",
        delta,
    )


def best_of_a_secret_number(epsilon: float = 1.0, mean: float = 1_000.0) -> Refutation:
    """A secret random number of runs, taken to be free: the choice still costs more than one run (Liu & Talwar 2019
    prove 3 epsilon for a geometric number, and this law comes near it).

    A run gives one of three models. With the record the best is less likely by e^-epsilon (1/2 without it), the middle
    one, which is rare, likelier by e^epsilon, and the worst has the rest, which changes by less: one run has pure
    epsilon. Spent is what the middle model says when it is shown, exactly: it occurred, and the best one did not.
    """
    law, best, middle = TrialLaw("geometric", mean), 0.5, 1e-6
    without = _shown(law, middle, best)
    with_record = _shown(law, middle * math.exp(epsilon), best * math.exp(-epsilon))
    return Refutation(
        f"tuning by a secret geometric number of runs (mean {mean:g}) that is taken to be free",
        epsilon,
        math.log(with_record / without),
        "the number of runs is secret, and the choice costs up to 3 epsilon all the same",
    )


def _shown(law: TrialLaw, middle: float, best: float) -> float:
    """The probability that the middle model is shown: all runs are no better, and not all are worse."""
    return law.generating(1.0 - best) - law.generating(1.0 - best - middle)
