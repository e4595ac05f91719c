"""Predictions of a trained model, from the options to the written rows and their scores."""

from __future__ import annotations

from tacit.devices import device_named
from tacit.errors import BadInputError, BadParameterError
from tacit.jobs.predict import (
    PredictConfig,
    PredictionResult,
)
from tacit.jobs.training.running import name_of, score_section
from tacit.progress import WorkProgress
from tacit.report import Report
from tacit.text.files import read_columns, write_columns
from tacit.training.prediction import load_trained, predict_rows
from tacit.training.tasks.language import SequenceToSequence


def predict_for_rows(config: PredictConfig, progress: WorkProgress) -> PredictionResult:
    """The predictions of a trained model, written and scored as its options say."""
    task, network, tokenizer = load_trained(config.model)
    network.to(device_named(config.device))  # type: ignore[arg-type]
    if config.temperature is not None:
        if not isinstance(task, SequenceToSequence):
            raise BadParameterError(
                "nothing-to-draw",
                "a model for '{task}' draws no texts: leave out {option.temperature}",
                task=task.name,
            )
        task.temperature = config.temperature
    usual = task.columns or {role: role for role in task.roles if role not in task.optional_roles}
    names = {**usual, **config.named_columns(task.roles)}
    if config.score and task.target and task.target not in names:
        raise BadInputError(
            "target-column-unknown",
            "the model does not say which column its {target} had: name it with {option.role_columns} ({target}=NAME)",
            target=task.target,
        )
    needed = [role for role in names if role != task.target or config.score]
    everything = read_columns(config.data, [names[role] for role in needed], rest=True)
    cells = {role: everything[names[role]] for role in needed}
    rows = [dict(zip(cells, values, strict=True)) for values in zip(*cells.values(), strict=True)]
    predicted = predict_rows(
        task, network, tokenizer, rows, batch=config.physical,
        progress=lambda done: progress("predicting", done, len(rows)),
    )  # fmt: skip
    if config.output is not None:
        write_columns(config.output, {**everything, config.prediction_column: predicted}, force=config.force)
    scores = None
    if config.score:
        truth = [row[task.target] for row in rows] if task.target else predicted
        title = f"{config.model.name} on {name_of(config.data)}"
        scores = Report("Predictions", [score_section(task, truth, predicted, title=title)])
    return PredictionResult(task.name, predicted, scores, config.output)
