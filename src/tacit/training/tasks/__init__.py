"""What can be learned: one file per kind of task, all with a loss per example."""

from __future__ import annotations

from tacit import plugins
from tacit.errors import BadParameterError
from tacit.plugins import Registry
from tacit.training.tasks.answering import Answering
from tacit.training.tasks.base import Encoded, Row, Task
from tacit.training.tasks.classification import Classification, Labeling, Regression
from tacit.training.tasks.language import CausalLanguage, MaskedLanguage, SequenceToSequence
from tacit.training.tasks.sanitized import SanitizedMasking, sanitized_rows
from tacit.training.tasks.tagging import Tagging


def _is_task(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, Task)


TASKS: Registry[type[Task]] = Registry(
    plugins.TASKS,
    "task",
    {
        task.name: f"{task.__module__}:{task.__qualname__}"
        for task in (
            Classification,
            Regression,
            Tagging,
            Answering,
            CausalLanguage,
            MaskedLanguage,
            SequenceToSequence,
        )
    },
    _is_task,
)
"""All tasks by name, those of plug-ins too."""


def task_named(name: str) -> type[Task]:
    """The class of a task; those of plug-ins are found as well."""
    if name not in TASKS:
        raise BadParameterError(
            "unknown-task", "there is no task '{name}': choose one of {known}", name=name, known=", ".join(TASKS)
        )
    return TASKS[name]


__all__ = [
    "TASKS", "Answering", "CausalLanguage", "Classification", "Encoded", "Labeling", "MaskedLanguage", "Regression",
    "Row", "SanitizedMasking", "SequenceToSequence", "Tagging", "Task", "sanitized_rows", "task_named",
]  # fmt: skip
