"""A command for each task that models are trained for. Those of plug-ins are made from their configurations when they
are called: help lists them without importing them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from tacit.cli.generated import Action, command_for
from tacit.cli.training_display import QuietTraining
from tacit.jobs.training.options import TaskConfigs
from tacit.training.task_registry import TASKS


class TaskGroup(click.Group):
    """The commands of all tasks under one name; without a command it shows its help.

    configs   the configuration of each task
    action    what a command does with its configuration
    helps     the help of each of Tacit's tasks
    others    commands beside those of tasks
    """

    def __init__(
        self,
        name: str,
        configs: TaskConfigs[Any],
        action: Action,
        helps: Mapping[str, str],
        others: Sequence[click.Command] = (),
        *,
        help: str,
    ) -> None:
        own = {
            task: command_for(task, [config, QuietTraining], action, help=helps[task])
            for task, config in configs.own.items()
        }
        super().__init__(name, {**own, **{str(other.name): other for other in others}}, help=help, no_args_is_help=True)
        self._configs = configs
        self._action = action

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *TASKS.of_plugins()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in TASKS:
            return own
        config = self._configs[cmd_name]
        return command_for(cmd_name, [config, QuietTraining], self._action, help=_sentence(config.__doc__ or ""))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed = {name: self.commands[name] for name in super().list_commands(ctx)}
        click.Group(self.name, listed).format_commands(ctx, formatter)
        others = [(name, _short_help(name, ctx.command_path)) for name in TASKS.of_plugins()]
        if others:
            with formatter.section("Tasks of plug-ins"):
                formatter.write_dl(others)


def _short_help(task: str, command: str) -> str:
    """The help text of a task, or where to read it if the plug-in is not imported yet."""
    imported = TASKS.imported(task)
    return f"'{command} {task} --help' explains it." if imported is None else _sentence(imported.help)


def _sentence(text: str) -> str:
    """Some words as a sentence.

    >>> _sentence("one label for each line")
    'One label for each line.'
    """
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
