"""Plans of training for users with several examples each, in the two ways of Charles et al. ("Fine-tuning large
language models with user-level differential privacy", 2024), and the choice between them.

users     users are drawn; the gradient of a user is the mean over their examples and clipped once. Accounting: DP-SGD
          whose records are users (`account.sgd`)
examples  examples are drawn and clipped one by one; a user has at most K of them. Accounting: the number of drawn ones
          is binomial (`account.groups`)

Both take the same `batch` of examples per step on average, so a step costs the same, and both draw at the same rate q =
batch / (examples that count): q of the users, or q of the examples. What then differs is the noise on the mean
gradient, in units of the clipping bound,

    users     sigma_users / (q users)              examples     sigma_examples / (q examples that count)

and the smaller one is chosen (`compared`). It is a number of the plan alone: no text, no label and no gradient is
looked at. It takes the same bound for a mean over a user and for one example; where the examples of a user differ much,
the mean is shorter than they are and needs less of a bound, which no plan can know.

Public: the number of users, and how many examples count in a step (at most K of each user). The card says so. Nothing
says how many examples a certain user has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from tacit.account.delta import automatic_delta
from tacit.account.groups import group_epsilon, group_noise_multiplier
from tacit.errors import BadParameterError
from tacit.guarantee import Adjacency, Unit
from tacit.training.plan import TrainingPlan, check_noise, steps_of

UnitSampling = Literal["users", "examples"]
"""What is drawn in a step, where the promise is made to users."""
ONE_NAME = "a person behind several user names: each name is protected on its own"


@dataclass(frozen=True)
class UserPlan(TrainingPlan):
    """A plan that draws users: `records` are users, `batch` is their planned number in a step.

    group     the most examples of a user that count in a step
    examples  how many count in a step over all users (public)
    """

    unit: Unit = Unit.USER
    group: int = 1
    examples: int = 1

    @classmethod
    def drawing_users(
        cls,
        *,
        epsilon: float,
        users: int,
        examples: int,
        group: int,
        batch: int,
        epochs: float,
        delta: float | None = None,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        releases: int = 1,
    ) -> UserPlan:
        """The plan with the least noise that stays within epsilon; an infinite epsilon has none. `batch` is in
        examples."""
        cohort = users_in_batch(batch, users, examples)
        steps = steps_of(epochs, users, cohort)
        if epsilon == math.inf:
            return cls(users, cohort, steps, 0.0, 0.0, adjacency, private=False, group=group, examples=examples)
        plan = TrainingPlan.calibrated(
            epsilon=epsilon,
            records=users,
            batch=cohort,
            epochs=epochs,
            delta=delta,
            adjacency=adjacency,
            unit=Unit.USER,
            releases=releases,
        )
        return cls(users, cohort, plan.steps, plan.multiplier, plan.delta, adjacency, group=group, examples=examples)

    @property
    def not_covered(self) -> tuple[str, ...]:
        return of_users(super().not_covered)

    @property
    def noise_of_mean(self) -> float:
        """The deviation of the noise on the mean gradient of a step, in units of the clipping bound."""
        return self.multiplier / self.batch

    def _noise_parameters(self, steps: int) -> dict[str, object]:
        return {
            "sampling": f"of users; the mean gradient of at most {self.group:,} of a user's records is clipped once",
            **super()._noise_parameters(steps),
        }

    @property
    def _noise_assumptions(self) -> tuple[str, ...]:
        return (public_examples(self.group), *super()._noise_assumptions)


@dataclass(frozen=True)
class ExamplePlan(TrainingPlan):
    """A plan that draws the examples of users: `records` are the examples that count in a step, at most `group` of each
    of the `users`. The promise is made to users."""

    unit: Unit = Unit.USER
    group: int = 1
    users: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.private and self.adjacency is not Adjacency.ADD_REMOVE:
            raise BadParameterError(
                "replaced-user-by-examples",
                "drawing the examples of users is accounted for adding or removing a user: leave out "
                "{option.replace_one}, or choose {option.unit_sampling[users]}",
            )

    @classmethod
    def drawing_examples(
        cls,
        *,
        epsilon: float,
        users: int,
        examples: int,
        group: int,
        batch: int,
        epochs: float,
        delta: float | None = None,
        adjacency: Adjacency = Adjacency.ADD_REMOVE,
        releases: int = 1,
    ) -> ExamplePlan:
        """The plan with the least noise that stays within epsilon; an infinite epsilon has none."""
        steps = steps_of(epochs, examples, batch)
        if epsilon == math.inf:
            return cls(examples, batch, steps, 0.0, 0.0, adjacency, private=False, group=group, users=users)
        chosen = automatic_delta(users, releases) if delta is None else delta
        draft = cls(examples, batch, steps, 1.0, chosen, adjacency, group=group, users=users)
        multiplier = _least_noise(epsilon, draft.rate, group, steps, draft.delta)
        check_noise(epsilon, multiplier)
        return replace(draft, multiplier=multiplier)

    @property
    def noise_of_mean(self) -> float:
        """The deviation of the noise on the mean gradient of a step, in units of the clipping bound."""
        return self.multiplier / self.batch

    def epsilon(self, steps: int | None = None) -> float:
        return self._spent(self.steps if steps is None else steps, coarse=False)

    def epsilon_at_most(self, steps: int) -> float:
        part = max(1, math.ceil(self.steps / 20))
        return self._spent(min(self.steps, math.ceil(steps / part) * part), coarse=True)

    def _spent(self, steps: int, *, coarse: bool) -> float:
        if not self.private:
            return math.inf
        if not steps:
            return 0.0
        return _epsilon(self.rate, self.group, self.multiplier, steps, self.delta, coarse)

    @property
    def units(self) -> int:
        return self.users

    @property
    def not_covered(self) -> tuple[str, ...]:
        return of_users(super().not_covered)

    @property
    def _secret_sample(self) -> tuple[str, ...]:
        return () if self.batch == self.records else ("nobody learns which records were drawn for a step",)

    def _noise_parameters(self, steps: int) -> dict[str, object]:
        return {
            "sampling": f"of records, at most {self.group:,} of a user; how many of a user are drawn is binomial, and "
            "accounted as a mixture",
            **super()._noise_parameters(steps),
        }

    @property
    def _noise_assumptions(self) -> tuple[str, ...]:
        return (public_examples(self.group), *super()._noise_assumptions)


@dataclass(frozen=True)
class Compared:
    """Both plans for the same users and the same computation, as far as they can be made, and the chosen one."""

    chosen: UserPlan | ExamplePlan
    users: UserPlan
    examples: ExamplePlan | None
    refused: str = ""

    @property
    def reason(self) -> str:
        """Why, in a sentence made of public numbers."""
        if self.examples is None:
            return f"users are drawn: {self.refused}"
        first, other = self.users.noise_of_mean, self.examples.noise_of_mean
        kind = "users are drawn" if self.chosen is self.users else "examples of users are drawn"
        return (
            f"{kind}: the noise on the mean gradient is {first:.3g} of the bound when users are drawn and {other:.3g} "
            "when their examples are, for as many examples per step"
        )


def compared(
    *,
    epsilon: float,
    users: int,
    examples: int,
    group: int,
    batch: int,
    epochs: float,
    delta: float | None = None,
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    releases: int = 1,
) -> Compared:
    """Both plans, and the one with less noise on the mean gradient; of two that are equal, the one that draws users."""
    by_user = UserPlan.drawing_users(
        epsilon=epsilon, users=users, examples=examples, group=group, batch=batch, epochs=epochs, delta=delta,
        adjacency=adjacency, releases=releases,
    )  # fmt: skip
    if adjacency is not Adjacency.ADD_REMOVE:
        return Compared(by_user, by_user, None, "for replacing a user, drawing examples is not accounted")
    try:
        by_example = ExamplePlan.drawing_examples(
            epsilon=epsilon, users=users, examples=examples, group=group, batch=batch, epochs=epochs, delta=delta,
            adjacency=adjacency, releases=releases,
        )  # fmt: skip
    except BadParameterError as error:
        return Compared(by_user, by_user, None, f"drawing examples is not possible ({error})")
    better = by_example if by_example.noise_of_mean < by_user.noise_of_mean else by_user
    return Compared(better, by_user, by_example)


def users_in_batch(batch: int, users: int, examples: int) -> int:
    """How many users have about so many examples that count together: at least 1."""
    return min(users, max(1, round(batch * users / examples)))


def of_users(lines: tuple[str, ...]) -> tuple[str, ...]:
    """What the promise to a user does not cover, beside these lines."""
    return (*lines, ONE_NAME)


def public_examples(group: int) -> str:
    """The assumption about how many examples there are."""
    return f"the number of records that count, at most {group:,} of each user, is public in sum"


@lru_cache(maxsize=64)
def _least_noise(epsilon: float, rate: float, group: int, steps: int, delta: float) -> float:
    return group_noise_multiplier(epsilon=epsilon, sampling_rate=rate, group=group, steps=steps, delta=delta)


@lru_cache(maxsize=4096)
def _epsilon(rate: float, group: int, multiplier: float, steps: int, delta: float, coarse: bool) -> float:
    return group_epsilon(
        sampling_rate=rate, group=group, noise_multiplier=multiplier, steps=steps, delta=delta, coarse=coarse
    )
