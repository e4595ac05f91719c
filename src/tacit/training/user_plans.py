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
class UserTerms:
    """Public numbers that both plans are made from.

    users     how many there are
    examples  how many count in a step, over all users: at most `group` of each
    batch     examples per step, on average
    """

    epsilon: float
    users: int
    examples: int
    group: int
    batch: int
    epochs: float
    delta: float | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    releases: int = 1

    @property
    def cohort(self) -> int:
        """How many users have about a batch of examples that count: at least 1."""
        return min(self.users, max(1, round(self.batch * self.users / self.examples)))


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
    def drawing_users(cls, terms: UserTerms) -> UserPlan:
        """The plan with the least noise that stays within epsilon; an infinite epsilon has none."""
        if terms.epsilon == math.inf:
            plan = TrainingPlan.without_privacy(records=terms.users, batch=terms.cohort, epochs=terms.epochs)
        else:
            plan = TrainingPlan.calibrated(
                epsilon=terms.epsilon,
                records=terms.users,
                batch=terms.cohort,
                epochs=terms.epochs,
                delta=terms.delta,
                adjacency=terms.adjacency,
                unit=Unit.USER,
                releases=terms.releases,
            )
        return cls(
            plan.records,
            plan.batch,
            plan.steps,
            plan.multiplier,
            plan.delta,
            terms.adjacency,
            private=plan.private,
            group=terms.group,
            examples=terms.examples,
        )

    @property
    def not_covered(self) -> tuple[str, ...]:
        return of_users(super().not_covered)

    @property
    def words(self) -> tuple[str, str]:
        return "users", "steps"

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
    def drawing_examples(cls, terms: UserTerms) -> ExamplePlan:
        """The plan with the least noise that stays within epsilon; an infinite epsilon has none."""
        private = terms.epsilon != math.inf
        steps = steps_of(terms.epochs, terms.examples, terms.batch)
        delta = automatic_delta(terms.users, terms.releases) if terms.delta is None else terms.delta
        draft = cls(
            terms.examples,
            terms.batch,
            steps,
            1.0 if private else 0.0,
            delta if private else 0.0,
            terms.adjacency,
            private=private,
            group=terms.group,
            users=terms.users,
        )
        if not private:
            return draft
        multiplier = _least_noise(terms.epsilon, draft.rate, terms.group, steps, delta)
        check_noise(terms.epsilon, multiplier)
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
    def words(self) -> tuple[str, str]:
        return f"records of {self.users:,} users", "steps"

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


def compared(terms: UserTerms) -> Compared:
    """Both plans, and the one with less noise on the mean gradient; of two that are equal, the one that draws users."""
    by_user = UserPlan.drawing_users(terms)
    if terms.epsilon == math.inf:
        return Compared(by_user, by_user, None, "there is no noise to compare")
    if terms.adjacency is not Adjacency.ADD_REMOVE:
        return Compared(by_user, by_user, None, "for replacing a user, drawing examples is not accounted")
    try:
        by_example = ExamplePlan.drawing_examples(terms)
    except BadParameterError as error:
        return Compared(by_user, by_user, None, f"drawing examples is not possible ({error})")
    better = by_example if by_example.noise_of_mean < by_user.noise_of_mean else by_user
    return Compared(better, by_user, by_example)


def of_users(lines: tuple[str, ...]) -> tuple[str, ...]:
    """These lines about what is not covered, and those that are true of users."""
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
