"""The optimal metric mechanism of a short public list, by a linear program (after Imola et al. 2022).

    minimize   mean over x of  sum over y of  P(y | x) d(x, y)
    subject to P(y | x) <= exp(epsilon d(x, x')) P(y | x')  for all x, x', y,   rows of P sum to 1

There are n^2 variables and n^3 constraints, so the list has at most 100 words; most constraints never bind, and only
those that a solution breaks are added, until none is broken. The words may be any: intents, diagnoses, job titles with
vectors.

Guarantee: epsilon-metric differential privacy in the distance of the vectors, for any two tokens. It does not rest on
the solver. What the solver returns is mixed with 1e-6 of the uniform law, rounded to integers, and then *verified*: the
largest of ln W(x, y)/W(x', y) - ln sum W(x)/sum W(x') - epsilon d over all triples, computed in double precision from
the integers that the draw uses, with 1e-9 for that arithmetic, is the slack on the card. A result that breaks epsilon
by more than 1e-6 is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tacit.arrays import Floats, Ids
from tacit.checks import EVERY_WORD, WordLaw
from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.guarantee import Guarantee, Notion
from tacit.noise.choice import draw_rows, probabilities
from tacit.noise.source import Source
from tacit.parameters import EpsilonRange
from tacit.progress import StepProgress, announced
from tacit.vectors import cache
from tacit.words.base import WordMechanism, by_word
from tacit.words.calibrated import percent_up

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_WORDS = 100
UNIFORM = 1e-6
WEIGHT_BITS = 50
LARGEST_EXPONENT = 18.0
"""Constraints are not looser than exp(18): the solver's own precision ends there. That only asks for more."""

AIM = 1.0 - 1e-6
LARGEST_SLACK = 1e-6
ARITHMETIC = 1e-9
BROKEN = 1e-9
MOST_ROUNDS = 60


@dataclass(kw_only=True, eq=False)
class OptimalWords(WordMechanism):
    """The law with the smallest expected distance of all that keep epsilon, for public lists of up to 100 words.

    Give the list as vectors (a file, or `limit`). Solving takes seconds for 40 words and minutes for 100, once.
    """

    name: ClassVar[str] = "optimal"
    title: ClassVar[str] = "Optimal mechanism of a short list"
    paper: ClassVar[str] = "after Imola et al. 2022"
    notion: ClassVar[str] = Notion.METRIC.value
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(1.0, 0.1, 4.0)

    @cached_property
    def weights(self) -> Ids:
        """The integers that the draw uses: one row per input."""
        if len(self.table) > MOST_WORDS:
            raise BadParameterError(
                "too-many-words",
                "the linear program takes lists of up to {most} words, and these vectors have {words:,}: give a "
                "shorter list, or santext with exact calibration, which comes close to the optimum",
                most=MOST_WORDS,
                words=len(self.table),
            )
        key = cache.key_of("optimal", 1, self.table.fingerprint, self.epsilon)
        kept = cache.cache_folder() / "optimal" / key / "weights.npy"
        if kept.is_file():
            weights: Ids = np.load(kept)
            if weights.shape == self._between.shape:
                return weights
        law = solved(self._between, self.epsilon, progress=announced("linear program, once"))
        weights = as_integers(law)
        cache.keep_folder("optimal", key, lambda folder: np.save(folder / "weights.npy", weights))
        return weights

    @cached_property
    def _between(self) -> Floats:
        count = len(self.table)
        left, right = np.divmod(np.arange(count * count), count)
        return self._euclidean_distance().between(left, right).reshape(count, count)

    @cached_property
    def slack(self) -> float:
        """The verified excess over epsilon d of the integers (see the module)."""
        excess = verified_excess(self.weights, self._between, self.epsilon)
        if excess > LARGEST_SLACK:
            raise NoGuaranteeError(
                "solver-too-coarse",
                "the solver's result breaks epsilon by {excess:.1e}, so it is not used: choose another epsilon, or "
                "santext with exact calibration",
                excess=excess,
            )
        return excess

    @property
    def law_check(self) -> WordLaw:
        return WordLaw(words=EVERY_WORD)

    def prepare(self) -> None:
        super().prepare()
        self._load("slack")

    def draw(self, ids: Ids, source: Source) -> Ids:
        drawn = np.empty(len(ids), dtype=np.int64)
        for words, counts, positions in by_word(ids, MOST_WORDS):
            drawn[positions] = draw_rows(self.weights[words], counts, source)
        return drawn

    def laws_of_draw(self, ids: Ids) -> Floats:
        return probabilities(self.weights[ids])

    def promise(self) -> Guarantee:
        guessed = float(probabilities(self.weights).max(axis=0).sum()) / len(self.table)
        return self._promise(
            Notion.METRIC,
            self.epsilon,
            metric=self._euclidean(),
            slack=self.slack,
            parameters={
                **self._shown_parameters(),
                "calibration": "exact",
                "best guess": f"{percent_up(guessed)} of the words of the list",
            },
        )


def verified_excess(weights: Ids, distances: Floats, epsilon: float) -> float:
    """By how much the law of these integers exceeds epsilon d at worst, not below 0, its arithmetic added."""
    logs = np.log(weights) - np.log(weights.sum(axis=1, keepdims=True))
    worst = max(float(((row - logs).max(axis=1) - epsilon * distances[x]).max()) for x, row in enumerate(logs))
    return max(0.0, worst) + ARITHMETIC


def as_integers(law: Floats) -> Ids:
    """The law mixed with a little of the uniform one, as integers: every weight is at least 2^50 1e-6 / n."""
    clean = np.maximum(law, 0.0)
    clean /= clean.sum(axis=1, keepdims=True)
    mixed = (1.0 - UNIFORM) * clean + UNIFORM / clean.shape[1]
    weights: Ids = np.rint(mixed * 2.0**WEIGHT_BITS).astype(np.int64)
    return weights


def solved(distances: Floats, epsilon: float, *, progress: StepProgress | None = None) -> Floats:
    """The solution of the linear program, up to the precision of the solver."""
    from scipy.optimize import linprog

    count = len(distances)
    exponents = np.minimum(AIM * epsilon * distances, LARGEST_EXPONENT)
    ratios = np.exp(exponents)
    # Each input against its nearest ones first: these bind most often.
    near = np.argsort(distances, axis=1, kind="stable")[:, 1:4]
    active = np.zeros((count, count, count), dtype=bool)  # x, x', y
    active[np.arange(count)[:, None], near] = True
    active |= active.transpose(1, 0, 2)
    equal = _row_sums(count)
    law = np.full((count, count), 1.0 / count)
    for step in range(MOST_ROUNDS):
        result = linprog(
            distances.ravel() / count,
            A_ub=_constraints(active, ratios),
            b_ub=np.zeros(int(active.sum())),
            A_eq=equal,
            b_eq=np.ones(count),
            bounds=(0.0, 1.0),
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        if result.x is None:
            raise NoGuaranteeError(
                "no-solution", "the solver found no solution: choose another epsilon, or santext with exact calibration"
            )
        law = np.asarray(result.x).reshape(count, count)
        broken = law[:, None, :] - ratios[:, :, None] * law[None, :, :] > BROKEN
        broken &= ~active
        if progress is not None:
            progress(min(step + 1, MOST_ROUNDS - 1), MOST_ROUNDS)
        if not broken.any():
            break
        active |= broken
    if progress is not None:
        progress(MOST_ROUNDS, MOST_ROUNDS)
    return law


def _row_sums(count: int) -> csr_array:
    from scipy.sparse import csr_array

    columns = np.arange(count * count)
    return csr_array((np.ones(count * count), (columns // count, columns)), shape=(count, count * count))


def _constraints(active: np.ndarray, ratios: Floats) -> csr_array:
    """P(y | x) - ratio(x, x') P(y | x') for each active (x, x', y), one row each."""
    from scipy.sparse import csr_array

    count = len(ratios)
    x, other, y = np.nonzero(active)
    number = np.arange(len(x))
    # Divided by the larger coefficient, so that all rows have the same size.
    larger = ratios[x, other]
    values = np.concatenate([1.0 / larger, -np.ones(len(x))])
    places = (np.concatenate([number, number]), np.concatenate([x * count + y, other * count + y]))
    return csr_array((values, places), shape=(len(x), count * count))
