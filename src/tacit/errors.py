"""Errors a user can act on: one sentence that says what is wrong, and what to do next."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Final

DISTRIBUTION: Final = "tacit-dp"
"""The name on the package index. `tacit` there is somebody else's library."""


class TacitError(Exception):
    """Something the user can fix. The command prints it as one sentence and exits with `exit_code`."""

    exit_code = 2


class BadInputError(TacitError):
    """A file, column, row or text that cannot be used as it is."""


class BadParameterError(TacitError, ValueError):
    """A parameter outside the values for which a mechanism is defined or proven."""


class NoGuaranteeError(TacitError):
    """A conversion, composition or comparison for which no proof exists."""


class NominalError(TacitError):
    """A release whose formal bound no longer protects, where such releases are refused."""

    exit_code = 3


class StoppedError(TacitError):
    """The user stopped the run."""

    exit_code = 130


class TacitWarning(UserWarning):
    """Something a user should know of that stops nothing. Commands show it as one line; cards carry it as a note."""


class MissingExtraError(TacitError, ImportError):
    """An optional library is not installed."""


def place_of(error: BaseException) -> str:
    """Kind and place of an unexpected error, without its message, which could quote private text."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    code = trace.tb_frame.f_code
    file = code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"{type(error).__name__} in {file}, line {trace.tb_lineno} ({code.co_name})"


def install_line(*extras: str) -> str:
    """The command that installs Tacit with these extras."""
    return f"pip install '{DISTRIBUTION}[{','.join(dict.fromkeys(extras))}]'"


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or say in one sentence how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{purpose} needs the library '{module.partition('.')[0]}': {install_line(extra)}"
        ) from error
