"""Batches that grow during training (Anil et al. 2021): small ones while every step helps, large ones when noise hurts.

Phase i takes T_i steps in which every record is drawn with probability q_i = b_i / records; clipping bound and noise
are the same throughout, and the noisy sum is divided by the planned size b_i of its phase, a public number. All phases
are fixed before the first step, from public numbers only, and composed exactly (`account.phases`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from tacit.account.delta import automatic_delta
from tacit.account.phases import Phase, phased_epsilon, phased_noise_multiplier
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, Unit
from tacit.training.plan import TrainingPlan, check_noise, steps_of


def growing_sizes(first: int, last: int) -> tuple[int, ...]:
    """Batch sizes from the first to the last, each twice the one before it, the last one at most so.

    >>> growing_sizes(100, 500)
    (100, 200, 400, 500)
    """
    sizes = [first]
    while 2 * sizes[-1] < last:
        sizes.append(2 * sizes[-1])
    return (*sizes, last)


@dataclass(frozen=True)
class GrowingPlan(TrainingPlan):
    """A plan whose batch, the largest one, is reached in phases: pairs of a batch size and a number of steps."""

    phases: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(steps for _, steps in self.phases) != self.steps or max(size for size, _ in self.phases) != self.batch:
            raise BadParameterError(
                "phases-do-not-fit", "the phases of a plan have its steps in sum, and its batch as the largest one"
            )

    @classmethod
    def growing(
        cls,
        *,
        epsilon: float,
        records: int,
        batch: int,
        grow_to: int,
        epochs: float,
        delta: float | None = None,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        unit: Unit = Unit.RECORD,
        releases: int = 1,
    ) -> GrowingPlan:
        """The plan with the least noise that stays within epsilon: doubling sizes, as many steps of each, and so many
        passes over the records in sum. An infinite epsilon has no noise."""
        if not batch < grow_to <= records:
            raise BadParameterError(
                "batches-cannot-grow",
                "batches grow from {batch:,} to a larger size of at most {records:,} records, not to {grow_to:,}",
                batch=batch,
                records=records,
                grow_to=grow_to,
            )
        sizes = growing_sizes(batch, grow_to)
        each = steps_of(epochs, records, sum(sizes))
        phases = tuple((size, each) for size in sizes)
        if epsilon == math.inf:
            return cls(records, grow_to, each * len(sizes), 0.0, 0.0, unit=unit, private=False, phases=phases)
        chosen = automatic_delta(records, releases) if delta is None else delta
        draft = cls(records, grow_to, each * len(sizes), 1.0, chosen, adjacency, unit, phases=phases)
        multiplier = _multiplier(epsilon, draft.accounted(draft.steps), chosen, adjacency)
        check_noise(epsilon, multiplier)
        return replace(draft, multiplier=multiplier)

    def batch_at(self, step: int) -> int:
        done = 0
        for size, steps in self.phases:
            done += steps
            if step < done:
                return size
        return self.batch

    def accounted(self, steps: int) -> tuple[Phase, ...]:
        """The phases of the first so many steps."""
        begun, left = [], steps
        for size, planned in self.phases:
            taken = min(planned, left)
            left -= taken
            if taken:
                begun.append(Phase(size / self.records, taken))
        return tuple(begun)

    def epsilon(self, steps: int | None = None) -> float:
        return self._spent(self.steps if steps is None else steps, coarse=False)

    def epsilon_at_most(self, steps: int) -> float:
        part = max(1, math.ceil(self.steps / 20))
        return self._spent(min(self.steps, math.ceil(steps / part) * part), coarse=True)

    def _spent(self, steps: int, *, coarse: bool) -> float:
        if not self.private:
            return math.inf
        return _epsilon(self.accounted(steps), self.multiplier, self.delta, self.adjacency, coarse) if steps else 0.0

    @property
    def _secret_sample(self) -> tuple[str, ...]:
        """The first batch is never all records, whatever the last one is."""
        return (f"nobody learns which {self.unit.value}s were drawn for a step",)

    def _noise_parameters(self, steps: int) -> dict[str, object]:
        rates = ", ".join(f"{phase.rate:.4g} for {phase.steps:,} steps" for phase in self.accounted(steps))
        return {
            "noise multiplier": round(self.multiplier, 4),
            "sampling rate": f"{rates} (Poisson)",
            "steps": steps,
        }


@lru_cache(maxsize=64)
def _multiplier(epsilon: float, phases: tuple[Phase, ...], delta: float, adjacency: Adjacency) -> float:
    return phased_noise_multiplier(epsilon=epsilon, phases=phases, delta=delta, adjacency=adjacency)


@lru_cache(maxsize=4096)
def _epsilon(phases: tuple[Phase, ...], multiplier: float, delta: float, adjacency: Adjacency, coarse: bool) -> float:
    return phased_epsilon(phases=phases, noise_multiplier=multiplier, delta=delta, adjacency=adjacency, coarse=coarse)
