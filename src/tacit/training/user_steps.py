"""The steps of a run, by what its plan draws: records, users, or the examples of users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import nn

from tacit.errors import BadInputError
from tacit.noise.source import StreamKey
from tacit.training.clipping import AnyClipping
from tacit.training.gradients import Batch, Engine, Loss
from tacit.training.gradients.check import TOLERANCE
from tacit.training.gradients.examples import without_dropout
from tacit.training.gradients.unit_sums import unit_deviation, weighted
from tacit.training.plan import TrainingPlan
from tacit.training.sharding import ShardedModel
from tacit.training.step import Collate, Draw, PlainStep, PrivateStep
from tacit.training.team import Team
from tacit.training.unit_step import MOST_TOGETHER, PlainUnitStep, PrivateUnitStep
from tacit.training.user_plans import ExamplePlan, UserPlan
from tacit.training.user_rows import UserRows

if TYPE_CHECKING:
    from tacit.training.public_gradients import PublicGradients


def check_users(plan: TrainingPlan, users: UserRows | None, rows: int) -> None:
    """Refuse a plan that was made for other users, or for records where rows belong to users and the other way round:
    its promise would not be that of the run."""
    if users is None:
        fits = not isinstance(plan, UserPlan | ExamplePlan)
    else:
        count, counted = len(users.users), users.counted
        fits = users.rows == rows and (
            (isinstance(plan, UserPlan) and (plan.records, plan.examples, plan.group) == (count, counted, users.most))
            or (
                isinstance(plan, ExamplePlan) and (plan.users, plan.records, plan.group) == (count, counted, users.most)
            )
        )
    if not fits:
        raise BadInputError("plan-of-other-users", "the plan was made for other users or rows: make it anew")


@dataclass(frozen=True)
class UnitTrial:
    """How far the gradients of made-up units were from ordinary ones; `alone` if every unit has to be worked on by
    itself, by ordinary gradients."""

    deviation: float = 0.0
    alone: bool = False


def prepare_units(
    plan: TrainingPlan, engine: Engine, model: nn.Module, probes: Sequence[Batch], *, sixteen: bool
) -> UnitTrial:
    """Make the engine ready for units, if the plan draws users, and compare its gradients of made-up ones with ordinary
    gradients. An engine whose sums over rows were off is not used for units: each is then worked on alone."""
    if not isinstance(plan, UserPlan):
        return UnitTrial()
    engine.loss = weighted(engine.loss)
    if sixteen:
        return UnitTrial(alone=True)
    with without_dropout(model):
        deviation, _ = unit_deviation(model, engine.loss, [(engine.run(probe), probe) for probe in probes])
    return UnitTrial(deviation) if deviation <= TOLERANCE else UnitTrial(alone=True)


def drawn_by(plan: TrainingPlan, users: UserRows | None) -> Draw | None:
    """The draw of a step, where it is not that of the plan alone: examples of users are drawn from those that count in
    this step."""
    if users is None or not isinstance(plan, ExamplePlan):
        return None

    def draw(step: int, key: StreamKey) -> NDArray[np.int64]:
        drawn: NDArray[np.int64] = users.all(step, key)[plan.sample(step, key)]
        return drawn

    return draw


Shared = tuple[
    Collate, int, Callable[[str], None], NDArray[np.int64] | None, Team, NDArray[np.int64] | None,
]  # fmt: skip
"""The arguments of every step, behind its plan. The last, how many rows a record has, is not for steps over users,
whose parts are cut by records."""


def plain_step(
    plan: TrainingPlan, users: UserRows | None, shared: Shared, *, model: nn.Module, loss: Loss
) -> PlainStep:
    """The step of a run without privacy."""
    if users is not None and isinstance(plan, UserPlan):
        return PlainUnitStep(plan, *shared[:5], rows=users, most_together=shared[1], model=model, loss=weighted(loss))
    return PlainStep(plan, *shared, draw=drawn_by(plan, users), model=model, loss=loss)


def private_step(
    plan: TrainingPlan,
    users: UserRows | None,
    shared: Shared,
    *,
    engine: Engine,
    clipping: AnyClipping,
    model: nn.Module,
    public: PublicGradients | None,
    shapes: Callable[[int], object] | None,
    alone: bool,
    shards: ShardedModel | None,
    generator: str,
    agreed: bool,
) -> PrivateStep:
    """The step of a private run, with an engine that was made ready for units."""
    if users is not None and isinstance(plan, UserPlan):
        return PrivateUnitStep(
            plan, *shared[:5], rows=users, most_together=0 if alone else MOST_TOGETHER, engine=engine,
            clipping=clipping, model=model, public=public, generator=generator, agreed=agreed,
        )  # fmt: skip
    return PrivateStep(
        plan, *shared, draw=drawn_by(plan, users), shapes=shapes, engine=engine, clipping=clipping, model=model,
        public=public, shards=shards, generator=generator, agreed=agreed,
    )  # fmt: skip
