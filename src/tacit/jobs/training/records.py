"""A training on single records, from its options to the saved model; and the check that a model can be trained so."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from tacit.guarantee import Guarantee, Provenance, ProvenanceKind
from tacit.jobs.train import TrainConfig
from tacit.jobs.train_check import CheckConfig
from tacit.jobs.training.answer_threshold import origin_of_threshold, set_threshold
from tacit.jobs.training.planning import check_batch, plan_for_records
from tacit.jobs.training.result import TrainingProgress, TrainingResult
from tacit.jobs.training.rows_of_users import plan_by_user, read_rows_of_users
from tacit.jobs.training.running import (
    IN_MEMORY,
    RowsToScore,
    carry_out,
    file_of,
    load_network,
    name_of,
    origin_of,
    read_rows,
    rows_to_score,
    run_options,
    task_of,
)
from tacit.training.banded import BandedPlan
from tacit.training.gradients import Checked, choose
from tacit.training.layout import choose_layout
from tacit.training.models import load_model
from tacit.training.origin import released_text
from tacit.training.plan import TrainingPlan
from tacit.training.run import TrainingRun, TrainingSettings
from tacit.training.strategies import apply_strategy
from tacit.training.tasks import Task, task_named
from tacit.training.team import Team
from tacit.training.user_rows import UserRows
from tacit.training.users import Users

SGD_FOR_BANDS = (
    "banded noise is taken back in the sum of steps, which is what the optimizer sgd makes; Adam divides single steps "
    "by their noise, which is larger, and learned less with it wherever it was measured"
)


def train_on_records(
    config: TrainConfig,
    progress: TrainingProgress,
    *,
    released: Guarantee | None = None,
    model_name: str | None = None,
) -> TrainingResult:
    """A model that has learned from the records of a configuration.

    released    the promise of rows in memory that the caller has released by itself; a file names its card
    model_name  what cards call the model, where its folder would say nothing to their readers
    """
    records = read_records(config)
    if records.users is not None:
        planned = plan_by_user(config, config.noise_epsilon, records.users)
        run = run_of(config, records, planned.plan, progress, model_name=model_name, user_rows=planned.rows)
        return carry_out(config, run, progress, test=records.test, notes=planned.notes)
    plan = _plan(config, len(records.rows))
    run = run_of(config, records, plan, progress, released=released, model_name=model_name)
    notes = (SGD_FOR_BANDS,) if isinstance(plan, BandedPlan) and plan.bands > 1 and config.optimizer != "sgd" else ()
    return carry_out(config, run, progress, test=records.test, notes=notes)


def _plan(config: TrainConfig, records: int) -> TrainingPlan:
    """The plan of a configuration, with independent or banded noise."""
    if config.noise == "independent":
        return plan_for_records(config, config.noise_epsilon, records)
    check_batch(records, config.batch)
    return BandedPlan.banded(
        epsilon=config.noise_epsilon,
        records=records,
        batch=config.batch,
        epochs=config.epochs,
        bands=config.bands,
        delta=config.chosen_delta,
        adjacency=config.adjacency,
        releases=config.trials,
    )


@dataclass(frozen=True)
class Records:
    """The rows of a training: private ones, public ones that help, those of a test, and public ones that choose a
    threshold; whose the private ones are, if the promise is made to users."""

    rows: list[dict[str, str]]
    public: list[dict[str, str]]
    test: RowsToScore | None
    threshold: list[dict[str, str]] = field(default_factory=list)
    users: Users | None = None


def read_records(config: TrainConfig) -> Records:
    """All rows that a configuration names."""
    roles = config.columns()
    public = [] if config.public_rows is None else read_rows(config.public_rows, roles)
    threshold = [] if config.rows_of_threshold is None else read_rows(config.rows_of_threshold, roles)
    test = rows_to_score(config, roles)
    if config.user_column is None:
        return Records(read_rows(config.data, roles), public, test, threshold)
    rows, users = read_rows_of_users(config.data, roles, config.user_column)
    return Records(rows, public, test, threshold, users)


def run_of(
    config: TrainConfig,
    records: Records,
    plan: TrainingPlan,
    progress: TrainingProgress,
    *,
    released: Guarantee | None = None,
    model_name: str | None = None,
    user_rows: UserRows | None = None,
) -> TrainingRun:
    """The run of a configuration by a plan, with a model of its own."""
    task = task_of(config)
    task.learn([*records.rows, *records.public])
    strategy = config.chosen_strategy
    settings = TrainingSettings(
        optimizer=config.optimizer,
        learning_rate=config.rate(private=plan.private),
        schedule=config.schedule,
        average=config.average,
        clipping=config.clipping,
        bound=config.bound,
        engine=config.gradient_engine,
        physical=config.physical,
        strategy=strategy,
        model=model_name or config.model,
        tensorboard=config.tensorboard,
        precision=config.precision,
        gradient_checkpointing=config.gradient_checkpointing,
        public_gradients=config.chosen_public_gradients,
        noise_generator=config.noise_generator,
    )
    model, tokenizer = load_network(config, task, strategy, progress, pooling=config.chosen_pooling)
    origin = replace(
        origin_of(config.model, config.tokenizer),
        public=config.public,
        released=released or _promise_of_text(config, task, len(records.rows)),
        helpers=(
            *((_public_help(config, len(records.public)),) if records.public else ()),
            *origin_of_threshold(config, records.threshold),
        ),
    )
    return TrainingRun(
        task=task,
        model=model,
        tokenizer=tokenizer,
        rows=records.rows,
        plan=plan,
        settings=settings,
        origin=origin,
        team=Team.from_environment(),
        public_rows=records.public,
        shard=config.shard,
        trained=lambda: set_threshold(task, model, tokenizer, records.threshold),
        user_rows=user_rows,
        **run_options(config, config.output, progress),
    )


def _public_help(config: TrainConfig, rows: int) -> Provenance:
    """The line of the card about the public rows whose gradients help."""
    name = name_of(config.public_rows)
    source = f"{rows:,} rows of {name if name == IN_MEMORY else Path(name).name}, declared public"
    return Provenance("public gradients", source, kind=ProvenanceKind.DECLARED_PUBLIC)


def _promise_of_text(config: TrainConfig, task: Task, rows: int) -> Guarantee | None:
    """The promise of a released file; what the model learns to write must have passed the mechanism as well."""
    if config.released is None:
        return None
    label = task.target if task.target_is_label else None
    read = [column for role, column in task.columns.items() if role != label]
    return released_text(config.released, str(file_of(config.data)), rows, read)


@dataclass(frozen=True)
class GradientCheck:
    """How far clipped gradients are from those of one example at a time, and how records are filled up.

    padding  what the filling of a record changes at most, where it is not filled up to one length
    length   word pieces that every record is filled up to; None where a record adds the same as alone
    """

    checked: Checked
    side: str
    padding: float
    length: int | None


def check_gradients(config: CheckConfig) -> GradientCheck:
    """The gradients of a model beside those of one example at a time, without noise; no data is needed."""
    task = task_named(config.task)(labels=["a", "b", "c"])
    network, tokenizer = load_model(task, config.model)
    network = apply_strategy(network, config.strategy)
    padding = choose_layout(task, network, tokenizer)
    _, checked = choose(network, task.loss, task.probes(tokenizer), config.gradient_engine)
    return GradientCheck(checked, task.side, padding, task.length if task.constant else None)
