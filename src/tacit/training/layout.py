"""How records are filled up to one length, so that what one adds does not depend on the others.

The side that the tokenizer names, the other side, or one public length for every record: the first way in which a
model gives a record the gradient that it has alone (`gradients.padding`). What is chosen depends on the model and the
tokenizer only; it is saved with the model, so that it is used as it was trained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import nn

from tacit.devices import device_of
from tacit.training.gradients import PaddingError
from tacit.training.gradients.examples import without_dropout
from tacit.training.gradients.padding import refuse_padding
from tacit.training.tasks import Task

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def choose_layout(
    task: Task, model: nn.Module, tokenizer: PreTrainedTokenizerBase, warn: Callable[[str], None] = lambda message: None
) -> float:
    """Set `side` and `constant` of the task; the deviation of a record that is filled up from the record alone."""
    refused: PaddingError | None = None
    device = device_of(model)
    for side, constant in task.layouts(tokenizer):
        task.side, task.constant = side, constant
        try:
            with without_dropout(model):
                deviation = refuse_padding(model, task.loss, [record.on(device) for record in task.filled(tokenizer)])
        except PaddingError as error:
            refused = refused or error
            continue
        if task.constant:
            warn(
                f"{refused}. So every record is filled up to {task.length} word pieces, which takes longer: a smaller "
                "length, or another model, is faster"
            )
        return deviation
    raise refused or PaddingError("no-layout", "the task knows no layout of its records")
