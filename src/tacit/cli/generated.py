"""Commands made from configurations: each field of a configuration is one option, declared there and nowhere else."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

import click
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tacit.cli.naming import SHORT, TERMINAL
from tacit.errors import BadParameterError
from tacit.jobs.config import Config, Group, Option
from tacit.needs import check as check_needs

Action = Callable[..., None]


class SectionedCommand(click.Command):
    """A command whose help lists options under the headings of their groups.

    `begin` does what the command does with configurations that are there already, such as those of a file.
    """

    begin: Callable[[Sequence[Config]], None]
    configs: Sequence[type[Config]]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self.complete(args))

    def complete(self, args: Sequence[str]) -> list[str]:
        """The arguments, where options that may stand alone have their number."""
        alone = {
            flag: parameter.alone
            for parameter in self.params
            if isinstance(parameter, SectionedOption) and parameter.alone is not None
            for flag in parameter.opts
        }
        return with_numbers(args, alone)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_sections(self, ctx, formatter)


class ListingGroup(click.Group):
    """A group whose help lists the whole first sentence of each command, where click would cut it."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, first_sentence(command.help or "")) for name, command in sorted(self.commands.items())]
            )


def first_sentence(text: str) -> str:
    """The first sentence of a help text, in one line.

    >>> first_sentence("Add up sketches of\\nseveral sites. They must fit.")
    'Add up sketches of several sites.'
    """
    words = " ".join(text.split())
    end = words.find(". ")
    return words if end < 0 else words[: end + 1]


class SectionedGroup(click.Group):
    """A group that also does something by itself, with options under the headings of their groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_sections(self, ctx, formatter)
        self.format_commands(ctx, formatter)


def _write_sections(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    sections: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        record = _argument_record(parameter) or parameter.get_help_record(ctx)
        if record is not None:
            sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
    for heading, records in sorted(sections.items(), key=lambda item: _SECTIONS.index(item[0])):
        with formatter.section(heading):
            formatter.write_dl(records)


def with_numbers(arguments: Sequence[str], alone: Mapping[str, int]) -> list[str]:
    """The arguments, where options that may stand alone have their number.

    >>> with_numbers(["--diff", "in.csv"], {"--diff": 10})
    ['--diff', '10', 'in.csv']
    >>> with_numbers(["--diff"], {"--diff": 10})
    ['--diff', '10']
    """
    result: list[str] = []
    for place, argument in enumerate(arguments):
        result.append(argument)
        if argument in alone and not "".join(arguments[place + 1 : place + 2]).isdigit():
            result.append(str(alone[argument]))
    return result


_SECTIONS = ["Arguments", *(group.value for group in Group), "Options"]


class SectionedOption(click.Option):
    """An option that knows the heading it is listed under; names of earlier versions work and are not listed."""

    def __init__(
        self,
        *arguments: Any,
        section: str,
        old_names: tuple[str, ...] = (),
        alone: int | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self.section = section
        self.old_names = old_names
        self.alone = alone

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        names = self.opts
        self.opts = [name for name in names if name not in self.old_names]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


class DescribedArgument(click.Argument):
    """A positional argument with a line of help."""

    section = "Arguments"

    def __init__(self, *arguments: Any, described: str, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.described = described


def _argument_record(parameter: click.Parameter) -> tuple[str, str] | None:
    if not isinstance(parameter, DescribedArgument):
        return None
    return parameter.make_metavar(click.get_current_context()), parameter.described


class ScaledNumber(click.ParamType[int]):
    """A number in a large unit, such as megabytes, as a whole number of the small one."""

    name = "float"
    most = 1_000_000

    def __init__(self, option: str, scale: int) -> None:
        self.option = option
        self.scale = scale

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not 0 < number <= self.most:  # not a number is refused here, too
            raise BadParameterError(
                "bad-option",
                "{option." + self.option + "} is a number above 0 and up to {most:,}, not '{value}'",
                most=self.most,
                value=str(value)[:40],
            )
        return max(1, int(number * self.scale))


Kind = TypeVar("Kind", bound="SectionedCommand")


@overload
def command_for(
    name: str, configs: Sequence[type[Config]], action: Action, *, help: str, epilog: str | None = None
) -> SectionedCommand: ...


@overload
def command_for(
    name: str,
    configs: Sequence[type[Config]],
    action: Action,
    *,
    help: str,
    epilog: str | None = None,
    kind: type[Kind],
) -> Kind: ...


def command_for(
    name: str,
    configs: Sequence[type[Config]],
    action: Action,
    *,
    help: str,
    epilog: str | None = None,
    kind: type[SectionedCommand] = SectionedCommand,
) -> SectionedCommand:
    """The command that builds the configurations from its options and calls `action` with them, in that order."""
    parameters = [parameter for config in configs for parameter in parameters_of(config)]
    begin = _beginning(action)
    command = kind(name, params=parameters, callback=_callback(configs, begin), help=help, epilog=epilog)
    command.begin, command.configs = begin, configs
    return command


Begin = Callable[[Sequence[Config]], None]


def _beginning(action: Action) -> Begin:
    """A function that checks what configurations need and starts the command."""

    def begin(built: Sequence[Config]) -> None:
        check_needs(f"'{click.get_current_context().command_path}'", [need for each in built for need in each.needs()])
        action(*built)

    return begin


def _callback(configs: Sequence[type[Config]], begin: Begin) -> Callable[..., None]:
    """A function that builds the configurations from the values of a command line and starts the command."""

    def called(**given: Any) -> None:
        if click.get_current_context().invoked_subcommand is None:
            begin([config(**_given_to(config, given)) for config in configs])

    return called


def group_of(name: str, commands: Sequence[click.Command], *, help: str) -> click.Group:
    """Commands under one name; without a command it shows its help."""
    return ListingGroup(name, {str(each.name): each for each in commands}, help=help, no_args_is_help=True)


def acting_group(
    name: str, commands: Sequence[click.Command], configs: Sequence[type[Config]], action: Action, *, help: str
) -> click.Group:
    """Commands under one name that also acts by itself: without a command it calls `action` with its options."""
    return SectionedGroup(
        name,
        {str(each.name): each for each in commands},
        params=[parameter for config in configs for parameter in parameters_of(config)],
        callback=_callback(configs, _beginning(action)),
        invoke_without_command=True,
        help=help,
    )


def _given_to(config: type[Config], given: dict[str, Any]) -> dict[str, Any]:
    """The options that were given on the command line; fields that were not keep their default."""
    context = click.get_current_context()
    default = click.core.ParameterSource.DEFAULT
    return {
        name: given[name]
        for name in config.model_fields
        if name in given and context.get_parameter_source(name) is not default
    }


def parameters_of(config: type[Config]) -> list[click.Parameter]:
    """The options of a configuration, arguments first."""
    parameters = [_parameter(name, field, option) for name, field, option in config.declared_options()]
    return sorted(parameters, key=lambda parameter: not isinstance(parameter, click.Argument))


def _parameter(name: str, field: FieldInfo, option: Option) -> click.Parameter:
    kind, repeated, choices = _kind(field.annotation)
    if option.comma_separated:
        kind, repeated = str, False
    if option.scale is not None:
        kind = ScaledNumber(option.name or name, option.scale)
    required = field.is_required()
    described = field.description or ""
    if option.positional:
        return DescribedArgument(
            [name], required=required, type=kind, nargs=-1 if repeated else 1,
            metavar=option.metavar or name.upper(), described=described,
        )  # fmt: skip
    flag = TERMINAL.name(option.name or name)
    old_names = tuple(old if old.startswith("-") else TERMINAL.name(old) for old in option.old_names)
    names = [name, *([SHORT[name]] if name in SHORT else []), flag, *old_names]
    if kind is bool:
        if option.off_name is not None:
            names[names.index(flag)] = f"{flag}/{TERMINAL.name(option.off_name)}"
        return SectionedOption(
            names, is_flag=True, default=None if option.off_name else False, help=described, envvar=option.variable,
            section=option.group.value, old_names=old_names,
        )  # fmt: skip
    return SectionedOption(
        names, old_names=old_names, type=kind, multiple=repeated, required=required, envvar=option.variable,
        alone=option.alone,
        default=() if repeated else None,
        metavar=option.metavar or ("|".join(choices) if choices else None),
        help=_with_default(described, field, option), section=option.group.value,
    )  # fmt: skip


def _with_default(described: str, field: FieldInfo, option: Option) -> str:
    unit = f" {option.unit}" if option.unit else ""
    if field.is_required() or field.default in (None, (), {}, PydanticUndefined) or option.alone is not None:
        return described
    shown = ",".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
    if option.scale is not None:
        shown = f"{field.default / option.scale:g}"
    return f"{described}  [default: {shown}{unit}]"


def _kind(annotation: Any) -> tuple[Any, bool, tuple[str, ...]]:
    """The type of a command-line value, whether it may be repeated, and its choices.

    What is not a plain type is left to the configuration as text: it says in its own words what does not fit.
    """
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _kind(typing.get_args(annotation)[0])
    if origin in (types.UnionType, typing.Union):
        kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
        return _kind(kinds[0]) if len(kinds) == 1 else (str, False, ())
    if origin is dict:
        return str, True, ()
    if origin in (tuple, list):
        return _kind(typing.get_args(annotation)[0])[0], True, ()
    if origin is Literal:
        return str, False, tuple(map(str, typing.get_args(annotation)))
    if annotation is bool:
        return bool, False, ()
    if annotation is Path:
        return click.Path(path_type=Path), False, ()
    return (annotation if annotation in (int, float, str) else str), False, ()
