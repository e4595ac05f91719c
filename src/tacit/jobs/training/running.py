"""A run from its options to the saved model. Loads the libraries of neural models."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import torch
from torch import nn

from tacit.account.release_charge import ReleaseCharge
from tacit.devices import device_named
from tacit.errors import BadParameterError
from tacit.evaluation.groups import Answers, WantedGroups, wanted_groups
from tacit.evaluation.predictions import measured_section, prediction_section
from tacit.jobs.charging import charging_rows
from tacit.jobs.training.options import PrivateTraining, TaskTraining
from tacit.jobs.training.result import TrainingProgress, TrainingResult
from tacit.report import Report, Section
from tacit.text.files import read_columns
from tacit.text.files.memory import is_in_memory
from tacit.training.models import load_model, model_folder
from tacit.training.origin import Origin, starting_weights, with_tokenizer
from tacit.training.prediction import predict_rows
from tacit.training.run import TrainingRun
from tacit.training.start import is_from_scratch
from tacit.training.strategies import apply_strategy
from tacit.training.tasks import Row, Task, task_named

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

IN_MEMORY = "rows in memory"
THIS_MODEL = "this model"


def task_of(config: TaskTraining) -> Task:
    """The task of a configuration, before it has seen any row."""
    return task_named(config.task)(
        length=config.length, columns=config.columns(), labels=list(config.labels), **config.task_options()
    )


def read_rows(data: object, roles: Mapping[str, str]) -> list[dict[str, str]]:
    """The rows of a file or of data in memory, each as its values by role."""
    columns = read_columns(data, list(dict.fromkeys(roles.values())))
    cells = {role: columns[column] for role, column in roles.items()}
    return [dict(zip(cells, values, strict=True)) for values in zip(*cells.values(), strict=True)]


def load_network(
    config: TaskTraining, task: Task, strategy: str, progress: TrainingProgress, *, pooling: str = "auto"
) -> tuple[nn.Module, PreTrainedTokenizerBase]:
    """The model with the strategy on it, and its tokenizer."""
    torch.manual_seed(config.chosen_start_seed)
    model, tokenizer = load_model(task, config.model, tokenizer=config.tokenizer, pooling=pooling, warn=progress.warned)
    return apply_strategy(model, strategy, rank=config.rank), tokenizer


def origin_of(model: str, tokenizer: str | None) -> Origin:
    """The origin of weights and vocabulary; see `tacit.training.origin`."""
    from_scratch = is_from_scratch(model)
    origin = Origin(from_scratch=True) if from_scratch else starting_weights(model_folder(model))
    return with_tokenizer(origin, tokenizer or "minilm") if tokenizer or from_scratch else origin


def name_of(data: object) -> str:
    """How a report calls the rows it speaks of."""
    return IN_MEMORY if is_in_memory(data) else str(data)


@dataclass(frozen=True)
class RowsToScore:
    """Rows that are not private, what a report calls them, and the groups that it compares."""

    name: str
    rows: Sequence[Row] = field(repr=False)
    wanted: WantedGroups = field(repr=False, default_factory=WantedGroups)


class ConfiguredRun(TypedDict):
    """The arguments of a run that its configuration names."""

    folder: Path
    seed: int | None
    trials: int
    warn: Callable[[str], None]
    configuration: Mapping[str, object]
    device: torch.device


def run_options(config: PrivateTraining, folder: Path, progress: TrainingProgress) -> ConfiguredRun:
    """The options that every run under differential privacy takes from its configuration."""
    return ConfiguredRun(
        folder=folder,
        seed=config.seed,
        trials=config.trials,
        warn=progress.remarked,
        configuration=config.identity(),
        device=device_named(config.device),
    )


def carry_out(
    config: PrivateTraining,
    run: TrainingRun,
    progress: TrainingProgress,
    *,
    test: RowsToScore | None = None,
    notes: tuple[str, ...] = (),
) -> TrainingResult:
    """Train to the end, save, and score. Of several processes only the first one speaks.

    test   rows that are not private, on which the finished model is scored
    """
    first = run.team.first
    if first:
        run.check_folder(resume=config.resume)
        progress.planned(run.plan, notes)
        run.prepared = progress.prepared
    with charging_run(config, run.private) if first else contextlib.nullcontext(run.charge) as run.charge:
        guarantee = run.run(progress.stepped, resume=config.resume)
    scores = scores_of(run.task, run.model, run.tokenizer, test) if test and first else None
    result = TrainingResult(
        guarantee, run.folder, run.task.name, scores, run.checked, first, run.configuration, plan=run.plan
    )
    run.team.leave()
    return result


def charging_run(config: PrivateTraining, private: Path) -> contextlib.AbstractContextManager[ReleaseCharge]:
    """The charge of a training, kept in its private folder."""
    return charging_rows(config, config.charged_rows, f"tacit {config.job}", kept_in=private)


def scores_of(task: Task, model: nn.Module, tokenizer: PreTrainedTokenizerBase, test: RowsToScore) -> Report:
    """The scores of a model on rows that are not private."""
    predicted = predict_rows(task, model, tokenizer, test.rows)
    truth = [row[task.target] for row in test.rows] if task.target else predicted
    section = score_section(task, truth, predicted, title=f"Scores on {test.name}")
    by_group = test.wanted.sections(task.scored_as, truth, Answers(THIS_MODEL, [predicted]))
    return Report("Scores", [section, *by_group])


def score_section(task: Task, truth: Sequence[str], predicted: Sequence[str], *, title: str) -> Section:
    """The scores of predictions: by the measures of the task itself, or by those of the task that it is scored as."""
    own = task.scores(truth, predicted)
    if own:
        return measured_section(title, own)
    return prediction_section(task.scored_as, truth, predicted, known=task.labels, title=title)


def rows_to_score(config: TaskTraining, roles: Mapping[str, str]) -> RowsToScore | None:
    """The rows that the finished model is scored on, if there are any."""
    if config.test is None:
        return None
    wanted = wanted_groups(
        lambda column: read_columns(config.test, [column])[column], config.group_column, by_class=config.by_class
    )
    return RowsToScore(name_of(config.test), read_rows(config.test, roles), wanted)


def file_of(data: object) -> Path:
    """The file that rows were read from; data in memory cannot be compared with the card of a file."""
    if is_in_memory(data):
        raise BadParameterError(
            "released-in-memory",
            "a card speaks of a file: give the released file itself as data, or train with {option.epsilon}",
        )
    return Path(str(data))
