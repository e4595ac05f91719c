"""The plan of DP-FTRL: users in a fixed order, noise that is correlated over the rounds.

The users are dealt into ceil(users / cohort) groups, each user independently of all others and of what they wrote;
round t visits group t modulo the number of groups. So a user is visited at most once in that many rounds. Removing a
user leaves the groups of all others as they were, and takes one clipped update out of each of the user's rounds: the
change whose largest effect on C x is `sensitivity` in `tacit.account.matrix`. The run is then **one** Gaussian
mechanism, and its epsilon is exact (Balle & Wang 2018). It holds even against an observer who knows the groups.

Replacing a user is removing one and adding another, possibly in another group: twice the sensitivity at most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.account.delta import automatic_delta
from tacit.account.matrix import Buffered, Toeplitz, error_of, optimal_banded, optimal_buffered
from tacit.account.tree import Tree, best_tree
from tacit.errors import BadParameterError, check_choice
from tacit.guarantee import Adjacency, Unit
from tacit.noise.gaussian import analytic_gaussian_sigma, gaussian_epsilon
from tacit.noise.source import StreamKey
from tacit.rounding import rounded_up
from tacit.training.plan import MOST_NOISE, TrainingPlan, steps_of

Factor = Toeplitz | Buffered | Tree
NOISES = ("buffered", "banded", "tree", "independent")


@dataclass(frozen=True)
class VisitPlan(TrainingPlan):
    """`records` are users, `batch` the planned cohort, `steps` the rounds, `multiplier` the standard deviation of z
    relative to the clipping bound."""

    unit: Unit = Unit.USER
    factorization: Factor = field(default_factory=Toeplitz)

    @classmethod
    def ordered(
        cls,
        *,
        epsilon: float,
        users: int,
        cohort: int,
        epochs: float,
        delta: float | None = None,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        noise: str = "buffered",
        bands: int = 16,
        momentum: float = 0.0,
        releases: int = 1,
    ) -> VisitPlan:
        """The plan with the least noise that stays within epsilon; the factorization is fitted to rounds and visits."""
        chosen = automatic_delta(users, releases) if delta is None else delta
        draft = cls(users, cohort, steps_of(epochs, users, cohort), 1.0, chosen, adjacency)
        factor = factorization_named(noise, draft.steps, draft.separation, bands=bands, momentum=momentum)
        draft = replace(draft, factorization=factor)
        # A little more than the exact number: rounding must not lift the epsilon of the plan above the one asked for.
        multiplier = analytic_gaussian_sigma(epsilon, chosen, draft.reach(draft.steps)) * (1.0 + 1e-9)
        if multiplier > MOST_NOISE:
            raise BadParameterError(
                "noise-drowns-learning",
                "epsilon {epsilon:g} needs noise of {multiplier:.3g} times the clipping bound, in which nothing can "
                "be learned: raise epsilon, train for fewer epochs, or gather more users",
                epsilon=epsilon,
                multiplier=multiplier,
            )
        return replace(draft, multiplier=multiplier)

    @property
    def separation(self) -> int:
        """Rounds between two visits of a user."""
        return math.ceil(self.records / self.batch)

    @property
    def visits(self) -> int:
        """The most visits of one user."""
        return math.ceil(self.steps / self.separation)

    def reach(self, steps: int) -> float:
        """How far one change moves C x after so many rounds, in units of the clipping bound."""
        return _sensitivity(self.factorization, steps, self.separation, self.adjacency)

    def epsilon(self, steps: int | None = None) -> float:
        done = self.steps if steps is None else steps
        if not self.private:
            return math.inf
        return gaussian_epsilon(self.multiplier, self.delta, self.reach(done)) if done else 0.0

    def epsilon_at_most(self, steps: int) -> float:
        part = max(1, math.ceil(self.steps / 20))
        return self.epsilon(min(self.steps, math.ceil(steps / part) * part))

    def sample(self, step: int, key: StreamKey) -> NDArray[np.int64]:
        """The users of this round: those of one group."""
        groups = key.stream(0, b"groups").generator.integers(self.separation, size=self.records)
        return np.flatnonzero(groups == step % self.separation)

    @property
    def _secret_sample(self) -> tuple[str, ...]:
        """Nothing: no amplification by sampling is claimed."""
        return ()

    def _noise_parameters(self, steps: int) -> dict[str, object]:
        return {
            "noise": f"{self.factorization.label}, multiplier {self.multiplier:.4g}",
            "sensitivity": f"{rounded_up(self.reach(steps))} times the bound, computed for these rounds and visits",
            "visits": f"at most {math.ceil(steps / self.separation)} of one {self.unit.value}, {self.separation} "
            "rounds apart; no amplification by sampling",
            "rounds": steps,
        }


def factorization_named(noise: str, rounds: int, separation: int, *, bands: int = 16, momentum: float = 0.0) -> Factor:
    """The factorization of this name that fits so many rounds and visits best."""
    check_choice(noise, NOISES, code="unknown-noise", what="noise")
    if noise == "independent":
        return Toeplitz()
    if noise == "tree":
        return best_tree(rounds, separation)
    if noise == "banded":
        return optimal_banded(rounds, separation, min(bands, rounds), momentum)
    return min(
        (optimal_buffered(rounds, separation, buffers) for buffers in (1, 2, 3)),
        key=lambda factor: error_of(factor, rounds, separation),
    )


@lru_cache(maxsize=1024)
def _sensitivity(factor: Factor, steps: int, separation: int, adjacency: Adjacency) -> float:
    return factor.sensitivity(steps, separation) * (2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0)
