"""Two phases of training, from their options to the saved model. Loads the libraries of neural models."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from tacit.errors import BadInputError
from tacit.jobs.selective import FIRST_RATES, SelectiveConfig, SelectiveProgress
from tacit.jobs.training.planning import check_batch, plan_for_records
from tacit.jobs.training.public_models import load_public
from tacit.jobs.training.result import TrainingResult
from tacit.jobs.training.running import charging_run, read_rows, run_options
from tacit.text.sensitive import Detector, detector
from tacit.training.models import model_folder
from tacit.training.origin import starting_weights
from tacit.training.plan import TrainingPlan
from tacit.training.private_folder import private_folder
from tacit.training.redaction import Redacted, list_detector, list_digest, redact_rows
from tacit.training.run import TrainingSettings
from tacit.training.selective import FirstKind, TwoPhases, needed_adjacency
from tacit.training.strategies import apply_strategy
from tacit.training.tasks import task_named

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True)
class Redaction:
    """Rows, the same rows with placeholders, the name of the redaction for the card, and what tells it from others
    (private)."""

    rows: list[dict[str, str]] = field(repr=False)
    redacted: Redacted = field(repr=False)
    name: str
    rule: str


def redaction_of(config: SelectiveConfig) -> Redaction:
    """The records of a configuration, and what its detector leaves of them."""
    name, rule, detect = _detector(config.sensitive)
    rows = read_rows(config.data, config.columns())
    return Redaction(rows, redact_rows(rows, ["text"], detect), name, rule)


def _detector(name: str) -> tuple[str, str, Detector]:
    if Path(name).is_file():
        # Promises about different lists must not add up, and a hash of a list of names would give it away.
        return f"a word list (of the run {secrets.token_hex(4)})", list_digest(name), list_detector(name)
    detect = detector(name)
    assert detect is not None
    return f"the detector '{name}'", f"the detector '{name}'", detect


def train_in_two_phases(config: SelectiveConfig, progress: SelectiveProgress) -> TrainingResult:
    """A model that has learned from redacted, public or private text first, and then from the records."""
    redaction = redaction_of(config)
    if not redaction.redacted.removed:
        raise BadInputError(
            "nothing-sensitive-in-texts",
            "'{sensitive}' finds nothing sensitive in these texts, so nothing would be protected: give another "
            "{option.sensitive}, or train with 'tacit train'",
            sensitive=config.sensitive,
        )
    progress.redacted(redaction.redacted)
    rows, kind = redaction.rows, FirstKind(config.first)
    check_batch(len(rows), config.batch)
    task = task_named(config.task)(length=config.length, columns=config.columns())
    task.learn(rows)
    first_rows: list[dict[str, str]] = redaction.redacted.rows
    if kind is FirstKind.PUBLIC:
        first_rows = read_rows(config.public_data, config.columns())
    plan = _private_plan(config, kind, config.epsilon, len(rows), config.epochs)
    first_plan = _first_plan(config, kind, rows, first_rows)

    def load(folder: Path | None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        # New weights start the same in a resumed run; weights before training are public.
        torch.manual_seed(config.seed or 0)
        name = config.chosen_model if folder is None else str(folder)
        network, tokenizer = load_public(task, name, progress.warned)
        return apply_strategy(network, config.strategy), tokenizer

    phases = TwoPhases(
        task=task,
        load=load,
        rows=rows,
        first_rows=first_rows,
        kind=kind,
        redaction=redaction.name,
        first_plan=first_plan,
        plan=plan,
        first_settings=_settings(config, config.rate if first_plan.private else config.rate * FIRST_RATES),
        settings=_settings(config, config.rate),
        public=config.public or "",
        origin=starting_weights(model_folder(config.chosen_model)),
        rule=redaction.rule,
        **run_options(config, config.output, progress),
    )
    phases.check_folder(resume=config.resume)
    progress.phases_planned(first_plan, plan)
    with charging_run(config, private_folder(phases.working_folder)) as phases.charge:
        guarantee = phases.run(progress.phase_stepped, resume=config.resume)
    return TrainingResult(guarantee, config.output, config.task, plan=plan, configuration=config.identity())


def _private_plan(
    config: SelectiveConfig, kind: FirstKind, epsilon: float, records: int, epochs: float
) -> TrainingPlan:
    return plan_for_records(
        config,
        epsilon,
        records,
        epochs=epochs,
        adjacency=needed_adjacency(kind),
        # Both phases and all trials speak of the same records, and share one delta.
        releases=config.trials * (2 if kind is FirstKind.PRIVATE else 1),
    )


def _first_plan(
    config: SelectiveConfig, kind: FirstKind, rows: list[dict[str, str]], first_rows: list[dict[str, str]]
) -> TrainingPlan:
    if kind is FirstKind.PRIVATE:
        assert config.first_epsilon is not None
        return _private_plan(config, kind, config.first_epsilon, len(rows), config.first_epochs)
    batch = min(config.first_batch, len(first_rows))
    return TrainingPlan.without_privacy(records=len(first_rows), batch=batch, epochs=config.first_epochs)


def _settings(config: SelectiveConfig, rate: float) -> TrainingSettings:
    return TrainingSettings(
        learning_rate=rate,
        model=config.chosen_model,
        bound=config.bound,
        physical=config.physical,
        strategy=config.strategy,
    )
