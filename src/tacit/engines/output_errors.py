"""Errors about the place of an output: what is there already, and what cannot be written over."""

from __future__ import annotations

from pathlib import Path

from tacit.errors import TacitError
from tacit.text.files import OutputError


class AlreadyCompleteError(TacitError):
    """There is nothing to resume: the output is finished."""

    exit_code = 0


def unfinished_error(partial: Path | str) -> OutputError:
    """The error for a run that was stopped."""
    return OutputError(
        "unfinished-run",
        "an unfinished run is in '{path}': add {option.resume} to go on with it, or {option.force} to throw it away "
        "and start over",
        path=partial,
    )


def output_is_input_error() -> OutputError:
    """The error for an output that would overwrite the input."""
    return OutputError("output-is-input", "the output is the input itself: choose another name with {option.output}")


def complete_error(output: Path | str) -> AlreadyCompleteError:
    """The error for a run that is resumed after its end."""
    return AlreadyCompleteError(
        "already-complete", "'{output}' is already complete: there is nothing to resume", output=output
    )


def exists_error(output: Path | str) -> OutputError:
    """The error for an output that exists."""
    return OutputError(
        "output-exists",
        "'{path}' exists: add {option.force} to overwrite it, or choose another name with {option.output}",
        path=output,
    )
