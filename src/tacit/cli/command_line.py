"""The command line that runs a job with given options: the inverse of what `generated` reads."""

from __future__ import annotations

import shlex

from tacit.cli.naming import SHORT, TERMINAL
from tacit.cli.run import COMMAND_OF
from tacit.jobs.config import Config, Option
from tacit.rounding import exact

ALWAYS_SHOWN = ("output",)
"""Options that stand in a command also where they have their default: people look for them."""


def command_line(config: Config) -> str:
    """The command that runs a job, ready to paste.

    >>> from tacit.jobs.rewrite_config import RewriteConfig
    >>> command_line(RewriteConfig(input="my notes.csv", columns=("text",), epsilon=2, output="out.csv"))
    "tacit rewrite 'my notes.csv' --column text --epsilon 2 -o out.csv"
    """
    return shlex.join(command_words(config))


def command_words(config: Config) -> list[str]:
    """The words of the command that runs a job: its name, its arguments, options that are not at their default."""
    values = config.model_dump(mode="json", exclude_defaults=True)
    values |= {name: str(getattr(config, name)) for name in ALWAYS_SHOWN if name in type(config).model_fields}
    words = ["tacit", *COMMAND_OF.get(config.job, tuple(config.job.split()))]
    arguments: list[str] = []
    options: list[str] = []
    last: list[str] = []
    for name, _, option in type(config).declared_options():
        if values.get(name) is None:
            continue
        if option.positional:
            arguments += [_text(each) for each in _several(values[name])]
        else:
            (last if name in ALWAYS_SHOWN else options).extend(_option_words(name, option, values[name]))
    return [*words, *arguments, *options, *last]


def _option_words(name: str, option: Option, value: object) -> list[str]:
    flag = SHORT[name] if name in ALWAYS_SHOWN else TERMINAL.name(option.name or name)
    if isinstance(value, bool):
        return [flag] if value else []
    if isinstance(value, dict):
        return [word for key, each in value.items() for word in (flag, f"{key}={_text(each)}")]
    if option.comma_separated:
        return [flag, ",".join(map(_text, _several(value)))]
    return [word for each in _several(value) for word in (flag, _text(each))]


def _several(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _text(value: object) -> str:
    return exact(value) if isinstance(value, float) else str(value)
