"""Predictions of a trained model, from the options to the written rows and their scores."""

from __future__ import annotations

from tacit.devices import device_named
from tacit.errors import BadParameterError
from tacit.evaluation.groups import Answers, WantedGroups
from tacit.jobs.predict import (
    PredictConfig,
    PredictionResult,
)
from tacit.jobs.training.compared import beside_answers, columns_of_task, named_column, rows_of_columns
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
    names = columns_of_task(task, config)
    needed = [role for role in names if role != task.target or config.scored]
    everything = read_columns(config.data, [names[role] for role in needed], rest=True)
    rows = rows_of_columns(everything, names, needed)
    wanted = config.wanted(lambda column: named_column(everything, column)) if config.scored else WantedGroups()
    predicted = predict_rows(
        task, network, tokenizer, rows, batch=config.physical,
        progress=lambda done: progress("predicting", done, len(rows)),
    )  # fmt: skip
    if config.output is not None:
        write_columns(config.output, {**everything, config.prediction_column: predicted}, force=config.force)
    scores = None
    if config.scored:
        truth = [row[task.target] for row in rows] if task.target else predicted
        title = f"{config.model.name} on {name_of(config.data)}"
        beside = beside_answers(
            config, task.scored_as, lambda done: progress("predicting by the other model", done, len(rows))
        )
        by_group = wanted.sections(task.scored_as, truth, Answers(config.model.name, [predicted]), beside)
        scores = Report("Predictions", [score_section(task, truth, predicted, title=title), *by_group])
    return PredictionResult(task.name, predicted, scores, config.output)
