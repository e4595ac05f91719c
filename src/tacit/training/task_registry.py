"""All tasks that models are trained for, by name, those of plug-ins too. A task is imported when it is used: it needs
torch, and lists of names do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tacit import plugins
from tacit.errors import BadInputError, BadParameterError
from tacit.plugins import Registry

if TYPE_CHECKING:
    from tacit.training.tasks.base import Task

OWN_TASKS: Final = {
    "classify": "tacit.training.tasks.classification:Classification",
    "regress": "tacit.training.tasks.classification:Regression",
    "tag": "tacit.training.tasks.tagging:Tagging",
    "answer": "tacit.training.tasks.answering:Answering",
    "write": "tacit.training.tasks.language:CausalLanguage",
    "fill": "tacit.training.tasks.language:MaskedLanguage",
    "translate": "tacit.training.tasks.language:SequenceToSequence",
}
OTHER_COMMANDS: Final = ("rewrite", "selective", "check")
"""What `tacit train` does beside tasks: a task of such a name could not be called."""


def _is_task(thing: object) -> bool:
    from tacit.training.tasks.base import Task

    return isinstance(thing, type) and issubclass(thing, Task)


TASKS: Registry[type[Task]] = Registry(plugins.TASKS, "task", OWN_TASKS, _is_task, reserved=OTHER_COMMANDS)
"""All tasks by name."""


def task_named(name: str) -> type[Task]:
    """The class of a task. A saved model finds its task by the name of the class, so that has to be the same."""
    if name not in TASKS:
        raise BadParameterError(
            "unknown-task",
            "there is no task '{name}': choose one of {known}, or install the package that has it, or name its file "
            "with {option.plugin}",
            name=name,
            known=", ".join(TASKS),
        )
    task = TASKS[name]
    if task.name != name:
        raise BadInputError(
            "broken-task",
            "the plug-in '{name}' calls its task '{other}': give the class and the plug-in the same name",
            name=name,
            other=task.name,
        )
    return task
