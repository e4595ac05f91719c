"""Sampling, noise and steps of a training, from its options."""

from __future__ import annotations

import math

from tacit.errors import BadInputError
from tacit.guarantee import Adjacency
from tacit.jobs.training.options import RecordTraining
from tacit.training.growing import GrowingPlan
from tacit.training.plan import TrainingPlan


def check_batch(records: int, batch: int) -> None:
    """Refuse a batch size that so many records cannot fill."""
    if batch > records:
        raise BadInputError(
            "fewer-rows-than-batch",
            "there are {records:,} rows, fewer than a batch of {batch:,}: give a smaller {option.batch}",
            records=records,
            batch=batch,
        )


def plan_for_records(
    config: RecordTraining,
    epsilon: float,
    records: int,
    *,
    epochs: float | None = None,
    adjacency: Adjacency | None = None,
    releases: int | None = None,
) -> TrainingPlan:
    """The plan of a training on so many records; without noise for an infinite epsilon.

    epochs, adjacency   where they are not those of the configuration
    releases            how many trainings about these records share one delta; by default all trials
    """
    passes = config.epochs if epochs is None else epochs
    check_batch(records, config.batch)
    if config.grow_to is not None:
        return GrowingPlan.growing(
            epsilon=epsilon,
            records=records,
            batch=config.batch,
            grow_to=config.grow_to,
            epochs=passes,
            delta=config.chosen_delta,
            adjacency=adjacency or config.adjacency,
            releases=config.trials if releases is None else releases,
        )
    if epsilon == math.inf:
        return TrainingPlan.without_privacy(records=records, batch=config.batch, epochs=passes)
    return TrainingPlan.calibrated(
        epsilon=epsilon,
        records=records,
        batch=config.batch,
        epochs=passes,
        delta=config.chosen_delta,
        adjacency=adjacency or config.adjacency,
        releases=config.trials if releases is None else releases,
    )
