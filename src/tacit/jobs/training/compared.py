"""Predictions of a second model on the same rows: the one without privacy, beside the private one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tacit.devices import device_named
from tacit.errors import BadInputError
from tacit.evaluation.groups import Answers
from tacit.jobs.predict import PredictConfig
from tacit.jobs.training.vector_models import is_vector_model, vector_predictions
from tacit.text.files import check_column, read_columns
from tacit.training.prediction import load_trained, predict_rows
from tacit.training.tasks import Task


def columns_of_task(task: Task, config: PredictConfig) -> dict[str, str]:
    """The column of each role in the rows to predict for."""
    usual = task.columns or {role: role for role in task.roles if role not in task.optional_roles}
    names = {**usual, **config.named_columns(task.roles)}
    if config.scored and task.target and task.target not in names:
        raise BadInputError(
            "target-column-unknown",
            "the model does not say which column its {target} had: name it with {option.role_columns} ({target}=NAME)",
            target=task.target,
        )
    return names


def rows_of_columns(
    columns: Mapping[str, Sequence[str]], names: Mapping[str, str], roles: Sequence[str]
) -> list[dict[str, str]]:
    """The rows of some columns, each as its values by role."""
    cells = {role: columns[names[role]] for role in roles}
    return [dict(zip(cells, values, strict=True)) for values in zip(*cells.values(), strict=True)]


def named_column(columns: Mapping[str, Sequence[str]], name: str) -> Sequence[str]:
    """The column of this name; an error names those that there are."""
    check_column(name, list(columns))
    return columns[name]


def beside_answers(config: PredictConfig, scored_as: str, progress: Callable[[int], None]) -> Answers | None:
    """The predictions of the model beside it for the same rows; None if there is none."""
    if config.beside is None:
        return None
    name = config.beside.name if config.beside.name != config.model.name else str(config.beside)
    if is_vector_model(config.beside):
        check_same_task("classify", scored_as)
        return Answers(
            name, [vector_predictions(config.beside, config.data, config.named_columns(("text", "label")).get("text"))]
        )
    task, network, tokenizer = load_trained(config.beside)
    check_same_task(task.scored_as, scored_as)
    network.to(device_named(config.device))  # type: ignore[arg-type]
    names = columns_of_task(task, config)
    roles = [role for role in names if role != task.target or config.scored]
    rows = rows_of_columns(read_columns(config.data, [names[role] for role in roles]), names, roles)
    return Answers(name, [predict_rows(task, network, tokenizer, rows, batch=config.physical, progress=progress)])


def check_same_task(other: str, task: str) -> None:
    """Refuse to compare models of different tasks."""
    if other != task:
        raise BadInputError(
            "beside-another-task",
            "the model of {option.beside} does '{other}', and this one '{task}': give a model for the same task, "
            "trained on the same rows without privacy",
            other=other,
            task=task,
        )
