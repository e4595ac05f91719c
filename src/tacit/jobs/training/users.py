"""A training on users, each with any number of rows, from its options to the saved model."""

from __future__ import annotations

import math

from tacit.errors import BadInputError
from tacit.guarantee import Unit
from tacit.jobs.federate import FederateConfig
from tacit.jobs.training.result import TrainingProgress, TrainingResult
from tacit.jobs.training.rows_of_users import read_rows_of_users
from tacit.jobs.training.running import (
    carry_out,
    load_network,
    origin_of,
    rows_to_score,
    run_options,
    task_of,
)
from tacit.training.federated import FederatedRun, LocalTraining, VisitPlan
from tacit.training.federated.integers import SkellamPlan
from tacit.training.plan import TrainingPlan
from tacit.training.run import TrainingSettings
from tacit.training.team import Team

USUAL_NOISE = "buffered"


def train_on_users(config: FederateConfig, progress: TrainingProgress) -> TrainingResult:
    """A model that has learned from the users of a configuration."""
    roles = config.columns()
    rows, users = read_rows_of_users(config.data, roles, config.user_column)
    test = rows_to_score(config, roles)
    task = task_of(config)
    task.learn(rows)
    plan = plan_for_users(config, len(users))
    local = LocalTraining(config.local_epochs, config.local_batch, config.local_rate, config.rows_per_user)
    settings = TrainingSettings(
        optimizer=config.optimizer,
        learning_rate=config.rate,
        schedule=config.schedule,
        average=config.average,
        clipping=config.clipping,
        bound=config.bound,
        strategy=config.strategy,
        model=config.model,
        tensorboard=config.tensorboard,
    )
    model, tokenizer = load_network(config, task, config.strategy, progress)
    run = FederatedRun(
        task=task,
        model=model,
        tokenizer=tokenizer,
        rows=rows,
        plan=plan,
        settings=settings,
        origin=origin_of(config.model, config.tokenizer),
        team=Team.from_environment(),
        users=users,
        local=local,
        momentum=config.momentum,
        **run_options(config, config.output, progress),
    )
    more = users.with_more_than(local.rows)
    notes = (
        (f"{more:,} users have more than {local.rows:,} rows: that many of theirs count in a round",) if more else ()
    )
    return carry_out(config, run, progress, test=test, notes=notes)


def plan_for_users(config: FederateConfig, users: int) -> TrainingPlan:
    """The plan of a training on so many users; without noise for an infinite epsilon."""
    if config.cohort > users:
        raise BadInputError(
            "fewer-users-than-cohort",
            "there are {users:,} users, fewer than a cohort of {cohort:,}: give a smaller {option.cohort}, well below "
            "the number of users",
            users=users,
            cohort=config.cohort,
        )
    if config.epsilon == math.inf:
        return TrainingPlan.without_privacy(records=users, batch=config.cohort, epochs=config.epochs, unit=Unit.USER)
    if config.algorithm == "fedavg":
        return TrainingPlan.calibrated(
            epsilon=config.epsilon,
            records=users,
            batch=config.cohort,
            epochs=config.epochs,
            delta=config.chosen_delta,
            adjacency=config.adjacency,
            unit=Unit.USER,
            releases=config.trials,
        )
    if config.noise == "skellam":
        return SkellamPlan.planned(
            epsilon=config.epsilon,
            users=users,
            cohort=config.cohort,
            epochs=config.epochs,
            delta=config.chosen_delta,
            adjacency=config.adjacency,
            releases=config.trials,
            bits=config.sum_bits,
            fewest=config.smallest_cohort,
        )
    return VisitPlan.ordered(
        epsilon=config.epsilon,
        users=users,
        cohort=config.cohort,
        epochs=config.epochs,
        noise=config.noise or USUAL_NOISE,
        bands=config.bands,
        momentum=config.momentum,
        delta=config.chosen_delta,
        adjacency=config.adjacency,
        releases=config.trials,
    )
