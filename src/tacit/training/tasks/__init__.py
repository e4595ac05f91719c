"""Tasks that a model can learn: one file per kind, all with a loss per example."""

from __future__ import annotations

from tacit.training.task_registry import TASKS, task_named
from tacit.training.tasks.answering import Answering
from tacit.training.tasks.base import Encoded, Row, Task
from tacit.training.tasks.classification import Classification, Labeling, Regression
from tacit.training.tasks.language import CausalLanguage, MaskedLanguage, SequenceToSequence
from tacit.training.tasks.sanitized import SanitizedMasking, sanitized_rows
from tacit.training.tasks.tagging import Tagging

__all__ = [
    "TASKS", "Answering", "CausalLanguage", "Classification", "Encoded", "Labeling", "MaskedLanguage", "Regression",
    "Row", "SanitizedMasking", "SequenceToSequence", "Tagging", "Task", "sanitized_rows", "task_named",
]  # fmt: skip
