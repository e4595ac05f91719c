"""The threshold from which a model answers nothing, chosen on rows that are declared public: private ones would show in
a number that is saved without noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torch import nn

from tacit.errors import BadInputError
from tacit.evaluation.scores import best_threshold
from tacit.guarantee import Provenance, ProvenanceKind
from tacit.jobs.train import TrainConfig
from tacit.jobs.training.running import IN_MEMORY, name_of
from tacit.training.prediction import ranked_rows
from tacit.training.tasks import Answering, Row, Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def fitted_threshold(
    task: Answering,
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    rows: Sequence[Row],
    *,
    batch: int = 64,
    progress: Callable[[int], None] = lambda done: None,
) -> float:
    """The threshold with the largest F1 on these rows, as in the evaluation of SQuAD 2."""
    if not rows:
        raise BadInputError("no-threshold-rows", "there are no rows to choose a threshold on: give public ones")
    rankings = ranked_rows(task, model, tokenizer, rows, batch=batch, progress=progress)
    truth, answers = [row["answer"] for row in rows], [ranking.text for ranking in rankings]
    return best_threshold(truth, answers, [ranking.difference for ranking in rankings])


def set_threshold(task: Task, model: nn.Module, tokenizer: PreTrainedTokenizerBase, rows: Sequence[Row]) -> None:
    """Let the task use the best threshold of these public rows, if there are any."""
    if rows and isinstance(task, Answering):
        task.threshold = fitted_threshold(task, model, tokenizer, rows)


def origin_of_threshold(config: TrainConfig, rows: Sequence[Row]) -> tuple[Provenance, ...]:
    """The line of the card about the rows that choose the threshold."""
    if not rows:
        return ()
    name = name_of(config.rows_of_threshold)
    source = f"{len(rows):,} rows of {name if name == IN_MEMORY else Path(name).name}, declared public"
    return (Provenance("threshold for no answer", source, kind=ProvenanceKind.DECLARED_PUBLIC),)
