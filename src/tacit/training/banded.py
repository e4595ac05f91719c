"""The plan of banded matrix factorization with amplification (BandMF; Choquette-Choo et al., NeurIPS 2023).

The noise of a step takes back some of the noise of the steps before (`account.matrix`), so that less of it is left in
the sum of all steps, which is what the weights are. The matrix C of n steps has b bands: column t is zero but for the
rows t, ..., t + b - 1. Every record is dealt into one of b groups, independently of all others and of what it says;
step t takes each record of group t modulo b with probability q = b batch / records, so about `batch` of them.

Accounting. What is released is a function of C x + z, row by row, where z is N(0, sigma^2) in every number and x_t is
the clipped sum of step t, chosen after looking at the rows before (C is lower triangular). A record of group j can be
in x_t for t = j, j + b, j + 2b, ... only. The columns of any two of these steps have no row in common, because they are
at least b apart. So the rows fall into blocks t, ..., t + b - 1, one for each step of the group, and the record is in a
block with one coin of probability q, which moves the block by u C[s, t] in each of its rows s: a vector of norm |u|
|column t|, at most the clipping bound times the norm of the column. Given the coins of all other records and the rows
before, everything else in a row is the same with and without the record. A block is therefore one Poisson-sampled
Gaussian step with multiplier sigma / (bound |column|), and the run is ceil(n / b) of them, one after the other: the
accounting of DP-SGD with fewer steps and a higher rate. b = 1 is DP-SGD itself; at q = 1 nothing is sampled, and the
groups may be known.

The noise is scaled by the norm of the largest column, which for a Toeplitz matrix is the first one. Two mistakes that
break the proof are refuted in the tests: leaving that norm out, and drawing every step from all records.

Replacing a record leaves it in its group, at its place: blocks are then those of DP-SGD with a record replaced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.account.delta import automatic_delta
from tacit.account.matrix import Toeplitz, error_of, optimal_banded
from tacit.account.sgd import renyi_multiplier
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency
from tacit.noise.source import StreamKey
from tacit.training.plan import TrainingPlan, check_noise, least_noise, spent_by_steps, steps_of

MOST_BANDS = 64
"""That are tried by themselves: each is a vector as large as what is trained."""
UP = 1.0 + 1e-12


@dataclass(frozen=True)
class BandedPlan(TrainingPlan):
    """A plan with banded noise. `multiplier` is relative to the clipping bound times the norm of the largest column."""

    factor: Toeplitz = field(default_factory=Toeplitz)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch * self.factor.bands > self.records or self.factor.bands > self.steps:
            raise BadParameterError(
                "too-many-bands",
                "{bands} bands need as many steps, and as many batches of different records: there are {steps:,} "
                "steps, and {records:,} records are {batches:,} batches",
                bands=self.factor.bands,
                steps=self.steps,
                records=self.records,
                batches=self.records // self.batch,
            )

    @classmethod
    def banded(
        cls,
        *,
        epsilon: float,
        records: int,
        batch: int,
        epochs: float,
        bands: int | None = None,
        delta: float | None = None,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        releases: int = 1,
    ) -> BandedPlan:
        """The plan with the least noise that stays within epsilon; without `bands`, the number of them that leaves the
        least noise in the sums of steps. It is chosen from public numbers only."""
        chosen = automatic_delta(records, releases) if delta is None else delta
        steps = steps_of(epochs, records, batch)
        count = bands if bands is not None else best_bands(epsilon, records, batch, steps, chosen)
        if count < 1:
            raise BadParameterError("impossible-count", "there is at least 1 band, not {count}", count=count)
        draft = cls(records, batch, steps, 1.0, chosen, adjacency, factor=banded_factor(steps, count))
        multiplier = least_noise(epsilon, draft.rate, draft.participations(steps), chosen, adjacency)
        check_noise(epsilon, multiplier)
        return replace(draft, multiplier=multiplier)

    @property
    def bands(self) -> int:
        return self.factor.bands

    @property
    def rate(self) -> float:
        """The probability of a record to be drawn in a step of its group."""
        return self.bands * self.batch / self.records

    def participations(self, steps: int) -> int:
        """The most steps among so many in which one record can be drawn."""
        return math.ceil(steps / self.bands)

    @property
    def correlation(self) -> Toeplitz | None:
        return self.factor

    @property
    def noise_scale(self) -> float:
        """The standard deviation of z, in units of the clipping bound."""
        return self.multiplier * column_norm(self.factor)

    def noise_deviation(self, step: int) -> float:
        return self.noise_scale * math.sqrt(float(_step_variances(self.factor, self.steps)[step]))

    def epsilon(self, steps: int | None = None) -> float:
        return self._spent(self.steps if steps is None else steps, coarse=False)

    def epsilon_at_most(self, steps: int) -> float:
        part = max(1, math.ceil(self.steps / 20))
        return self._spent(min(self.steps, math.ceil(steps / part) * part), coarse=True)

    def _spent(self, steps: int, *, coarse: bool) -> float:
        if not steps:
            return 0.0
        return spent_by_steps(
            self.rate, self.multiplier, self.participations(steps), self.delta, self.adjacency, coarse
        )

    def groups(self, key: StreamKey) -> NDArray[np.int64]:
        """The group of each record."""
        return key.stream(0, b"groups").generator.integers(self.bands, size=self.records)

    def sample(self, step: int, key: StreamKey) -> NDArray[np.int64]:
        uniform = key.stream(step, b"records").generator.random(self.records)
        return np.flatnonzero((self.groups(key) == step % self.bands) & (uniform < self.rate))

    @property
    def _secret_sample(self) -> tuple[str, ...]:
        """Nothing where every record of a group is drawn: who is in which group may be known."""
        return () if self.rate == 1.0 else (f"nobody learns which {self.unit.value}s were drawn for a step",)

    def _noise_parameters(self, steps: int) -> dict[str, object]:
        return {
            "noise": f"{self.factor.label}, multiplier {self.multiplier:.4g} for a record of sensitivity 1",
            "sampling rate": f"{self.rate:.4g} (Poisson) in a step of its group, one of {self.bands}: at most "
            f"{self.participations(steps)} of {steps} steps",
            "steps": steps,
        }


def column_norm(factor: Toeplitz) -> float:
    """The norm of the largest column of the matrix, rounded up: the first, which no row cuts off."""
    return math.sqrt(math.fsum(value * value for value in factor.coefficients)) * UP


def banded_factor(steps: int, bands: int) -> Toeplitz:
    """The banded factor that leaves the least noise in the sums of so many steps, for a record in one of `bands`."""
    return optimal_banded(steps, steps, min(bands, steps))


def left_over(factor: Toeplitz, steps: int) -> float:
    """Root mean square of the noise on the running sums of the steps, for a multiplier of 1."""
    return error_of(factor, steps, steps)


def best_bands(epsilon: float, records: int, batch: int, steps: int, delta: float) -> int:
    """The number of bands with the least noise on the running sums: 1, 2, 4, ... up to what fits. The multiplier is
    that of the Renyi bound, which is fast and near enough to choose by."""
    most = min(MOST_BANDS, steps, records // batch)
    counts: list[int] = sorted({min(most, 2**power) for power in range(8)})

    def error(bands: int) -> float:
        rate, participations = bands * batch / records, math.ceil(steps / bands)
        return renyi_multiplier(epsilon, rate, participations, delta) * left_over(banded_factor(steps, bands), steps)

    return min(counts, key=error)


@lru_cache(maxsize=16)
def _step_variances(factor: Toeplitz, steps: int) -> NDArray[np.float64]:
    """Of the noise of each single step, for z of variance 1."""
    return np.cumsum(factor.inverse_series(steps) ** 2)
