"""Predictions of a trained model, from the options to the written rows and their scores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from tacit.devices import device_named
from tacit.errors import BadInputError, BadParameterError
from tacit.evaluation.groups import Answers, WantedGroups
from tacit.jobs.predict import (
    PredictConfig,
    PredictionResult,
)
from tacit.jobs.training.answer_threshold import fitted_threshold
from tacit.jobs.training.compared import beside_answers, columns_of_task, named_column, rows_of_columns
from tacit.jobs.training.running import name_of, read_rows, score_section
from tacit.progress import WorkProgress
from tacit.report import Report
from tacit.text.files import read_columns, write_columns
from tacit.training.prediction import load_trained, predict_rows, ranked_rows
from tacit.training.tasks import Answering
from tacit.training.tasks.language import SequenceToSequence
from tacit.training.tasks.ranked_answers import RankedAnswer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

BEST = "_best"
"""What the column of the best answers is called, after that of the predictions."""


def predict_for_rows(config: PredictConfig, progress: WorkProgress) -> PredictionResult:
    """The predictions of a trained model, written and scored as its options say."""
    task, network, tokenizer = load_trained(config.model)
    network.to(device_named(config.device))  # type: ignore[arg-type]
    config.check_answers(task.name, answers=isinstance(task, Answering))
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
    best, threshold = None, None
    remarks: tuple[str, ...] = ()
    if isinstance(task, Answering):
        threshold = _choose_threshold(config, task, network, tokenizer, names, progress)
        rankings = ranked_rows(
            task, network, tokenizer, rows, batch=config.physical,
            progress=lambda done: progress("predicting", done, len(rows)),
        )  # fmt: skip
        predicted = [ranking.predicted(task.nothing_from) for ranking in rankings]
        cut = sum(ranking.question_cut for ranking in rankings)
        remarks = (task.remark_on_questions(cut, len(rows)),) if cut else ()
        if config.best is not None:
            best = [ranking.best(config.best, task.nothing_from) for ranking in rankings]
    else:
        predicted = predict_rows(
            task, network, tokenizer, rows, batch=config.physical,
            progress=lambda done: progress("predicting", done, len(rows)),
        )  # fmt: skip
    if config.output is not None:
        columns = {**everything, config.prediction_column: predicted}
        if best is not None:
            columns[config.prediction_column + BEST] = [_as_json(answers) for answers in best]
        write_columns(config.output, columns, force=config.force)
    scores = None
    if config.scored:
        truth = [row[task.target] for row in rows] if task.target else predicted
        title = f"{config.model.name} on {name_of(config.data)}"
        beside = beside_answers(
            config, task.scored_as, lambda done: progress("predicting by the other model", done, len(rows))
        )
        by_group = wanted.sections(task.scored_as, truth, Answers(config.model.name, [predicted]), beside)
        scores = Report("Predictions", [score_section(task, truth, predicted, title=title), *by_group])
    return PredictionResult(task.name, predicted, scores, config.output, best, threshold, remarks)


def _choose_threshold(
    config: PredictConfig,
    task: Answering,
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    names: Mapping[str, str],
    progress: WorkProgress,
) -> float | None:
    """Set the threshold that was given or that public rows choose; the latter."""
    if config.threshold is not None:
        task.threshold = config.threshold
    if config.threshold_rows is None:
        return None
    if task.target not in names:
        raise BadInputError(
            "target-column-unknown",
            "the model does not say which column its {target} had: name it with {option.role_columns} ({target}=NAME)",
            target=task.target,
        )
    public = read_rows(config.threshold_rows, {role: names[role] for role in task.roles})
    task.threshold = fitted_threshold(
        task, network, tokenizer, public, batch=config.physical,
        progress=lambda done: progress("choosing a threshold", done, len(public)),
    )  # fmt: skip
    return task.threshold


def _as_json(answers: Sequence[RankedAnswer]) -> str:
    return json.dumps([asdict(answer) for answer in answers], ensure_ascii=False)
