"""Use a trained model: predictions for rows, written like the target column."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from tacit.devices import device_of, moved
from tacit.errors import BadInputError, BadParameterError
from tacit.precision import Precision
from tacit.training.checkpoint import RunState, run_state
from tacit.training.frozen import computed_once
from tacit.training.gradients import Batch
from tacit.training.models import load_model
from tacit.training.origin import SETTINGS
from tacit.training.tasks import Answering, Row, Task, task_named
from tacit.training.tasks.ranked_answers import Ranking

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def load_trained(folder: Path) -> tuple[Task, PreTrainedModel, PreTrainedTokenizerBase]:
    """Task, model and tokenizer of a folder that `tacit train` has made."""
    settings = read_settings(folder)
    kind = task_named(str(settings["task"]))
    known = {field.name for field in fields(kind)}
    task = kind(**{name: value for name, value in settings.items() if name in known})
    model, tokenizer = load_model(task, str(folder))
    model.eval()
    return task, model, tokenizer


def read_settings(folder: Path) -> dict[str, Any]:
    path = folder / SETTINGS
    if not path.is_file():
        if run_state(folder) is RunState.UNFINISHED:
            raise BadInputError(
                "run-not-finished",
                "the run in {folder} is not finished: go on with its training ({option.resume})",
                folder=folder,
            )
        raise BadInputError(
            "not-a-trained-folder",
            "{folder} is not a folder that 'tacit train' has made: it has no {file}. Give one that it has made",
            folder=folder,
            file=SETTINGS,
        )
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        settings["task"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInputError(
            "damaged-file", "{path} is damaged: train the model again, or repair it", path=path
        ) from error
    return dict(settings)


def predict_rows(
    task: Task,
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    rows: Sequence[Row],
    *,
    batch: int = 64,
    frozen: Precision | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> list[str]:
    """A prediction for each row, in order; rows of similar length are worked on together.

    frozen   compute the layers whose weights are marked as not trained once for all models of this process that have
             the same, with this precision
    """
    predictions = [""] * len(rows)

    def predict(predictor: nn.Module, numbers: Batch, records: list[int]) -> None:
        predicted = task.predict(predictor, numbers, tokenizer, [rows[i] for i in records])
        for i, prediction in zip(records, predicted, strict=True):
            predictions[i] = prediction

    _in_batches(task, model, tokenizer, rows, predict, batch=batch, frozen=frozen, progress=progress)
    return predictions


def ranked_rows(
    task: Answering,
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    rows: Sequence[Row],
    *,
    batch: int = 64,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Ranking]:
    """The best answers for each row, in order."""
    rankings: dict[int, Ranking] = {}

    def rank(predictor: nn.Module, numbers: Batch, records: list[int]) -> None:
        rankings.update(
            zip(records, task.ranked(predictor, numbers, tokenizer, [rows[i] for i in records]), strict=True)
        )

    _in_batches(task, model, tokenizer, rows, rank, batch=batch, frozen=None, progress=progress)
    return [rankings[i] for i in range(len(rows))]


def _in_batches(
    task: Task,
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    rows: Sequence[Row],
    use: Callable[[nn.Module, Batch, list[int]], None],
    *,
    batch: int,
    frozen: Precision | None,
    progress: Callable[[int], None],
) -> None:
    """Use the model on all rows, those of similar length together."""
    if batch < 1:
        raise BadParameterError("impossible-count", "a batch has at least 1 row, not {count}", count=batch)
    model.eval()
    encoded = [task.encode(row, tokenizer, train=False) for row in rows]
    order = sorted(range(len(rows)), key=lambda i: len(encoded[i].get("input_ids", ())))
    once = frozen if task.read_once else None
    halves, kept = (None, None) if once is None else computed_once(model, task, encoded, tokenizer, precision=once)
    predictor = model if halves is None else halves.top
    device = device_of(predictor)
    with torch.random.fork_rng(devices=[]):
        # The same masks whenever a masked language model is asked.
        torch.manual_seed(0)
        for start in range(0, len(order), batch):
            records = order[start : start + batch]
            numbers: Batch = moved(task.collate([encoded[i] for i in records], tokenizer), device)
            numbers = numbers if kept is None else kept.added(numbers, records)
            use(predictor, numbers, records)
            progress(min(start + batch, len(order)))
