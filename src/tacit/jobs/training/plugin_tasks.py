"""The configuration of a task that a plug-in has, made from what its class says.

A task that derives from one of Tacit's has the options of that one as well, if it reads the same columns. Each of its
roles is a column, and each field that it declares with `parameter` is an option.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, TypeVar, cast, get_type_hints

from pydantic import Field

from tacit.catalog import parameter_meanings
from tacit.errors import BadInputError
from tacit.jobs.config import Group, Option
from tacit.jobs.fields import LabelColumn, Length, TextColumn
from tacit.needs import BLEU
from tacit.parameters import declared_parameters
from tacit.training.tasks import TASKS, Task, task_named

if TYPE_CHECKING:
    from tacit.jobs.training.options import TaskTraining

Trained = TypeVar("Trained", bound="TaskTraining")

COLUMNS: Final[Mapping[str, Any]] = {"text": TextColumn, "label": LabelColumn[str]}
"""Columns that tasks of Tacit have, too."""


def config_of_plugin(
    name: str, job: str, base: type[Trained], own: Mapping[str, type[Trained]], by_model: Mapping[str, type[Trained]]
) -> type[Trained]:
    """The configuration of one task.

    job       the job that it configures: train or federate
    base      what the configurations of all tasks of this job have
    own       the configurations of Tacit's tasks
    by_model  what those of tasks with a kind of model have, by the class of the model
    """
    task = task_named(name)
    start = _nearest(task, own) or by_model.get(task.model_class, base)
    known = getattr(start, "roles", ())
    columns = {f"{role}_column": _column(role, role in task.optional_roles) for role in task.roles if role not in known}
    options = _options(task)
    for field in (*columns, *options):
        if field in start.model_fields or not field.isidentifier():
            raise BadInputError(
                "task-option-taken",
                "the task '{name}' of a plug-in has a role or a parameter that would be the option '{field}': give it "
                "a name of its own, of letters, digits and _",
                name=name,
                field=field,
            )
    declared = {**columns, **options, **_usual_length(task)}

    def task_options(self: Trained) -> dict[str, Any]:
        return {**start.task_options(self), **{option: getattr(self, option) for option in options}}

    return cast("type[Trained]", type(
        f"{job}-{name}".title().replace("-", ""),
        (start,),
        {
            "__doc__": task.help,
            "__module__": base.__module__,
            "__annotations__": {"job": ClassVar[str], **{field: kind for field, (kind, _) in declared.items()}},
            "job": f"{job} {name}",
            "task": name,
            "roles": task.roles,
            "scoring": (BLEU,) if task.scored_as == "translate" else (),
            "task_options": task_options,
            **{field: default for field, (_, default) in declared.items()},
        },
    ))  # fmt: skip


def _nearest(task: type[Task], own: Mapping[str, type[Trained]]) -> type[Trained] | None:
    """The configuration of the task of Tacit that this one derives from, if it reads all columns of it."""
    for parent in task.__mro__:
        name = str(parent.__dict__.get("name"))
        if name in own and TASKS[name] is parent and set(own[name].roles) <= set(task.roles):
            return own[name]
    return None


def _column(role: str, optional: bool) -> tuple[Any, str | None]:
    """The declaration and the default of the column of a role."""
    kind = COLUMNS.get(role) or Annotated[str, Field(description=f"The column of the {role}."), Option(Group.DATA)]
    return (kind | None, None) if optional else (kind, role)


def _options(task: type[Task]) -> dict[str, tuple[Any, Any]]:
    """The declaration and the default of each parameter."""
    meanings, types = parameter_meanings(task), get_type_hints(task)
    defaults = {field.name: field.default for field in fields(task)}
    return {
        name: (
            Annotated[
                Literal[known.choices] if known.choices else types[name],
                Field(ge=known.low, le=known.high, description=meanings.get(name, "")),
                Option(Group.TRAINING),
            ],
            defaults[name],
        )
        for name, known in declared_parameters(task).items()
    }


def _usual_length(task: type[Task]) -> dict[str, tuple[Any, int]]:
    """The length that a task says itself, if it does."""
    return {} if task.length == Task.length else {"length": (Length, task.length)}
