"""Errors a user can act on: a stable code, named fields, and one sentence that says what is wrong and what to do next.

    raise BadInputError(
        "fewer-rows-than-batch",
        "there are {rows:,} rows, fewer than a batch of {batch:,}: give a smaller {option.batch}",
        rows=len(rows),
        batch=batch,
    )

Code that reacts to an error looks at its class, its code and its fields, never at its sentence. The sentence names
options by the fields of the configuration that they set (`{option.batch}`, or with a value `{option.epsilon[3]}`), and
whoever shows it says them in the words of its reader: as a flag on a terminal, `batch` in Python, `'batch'` in HTTP.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import numbers
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol, Self

DISTRIBUTION: Final = "tacit-dp"
"""The name on the package index. `tacit` there is somebody else's library."""
NO_SUCH_CHOICE: Final = "there is no {what} '{name}': choose one of {known}"


class Naming(Protocol):
    """How the readers of an error call an option, alone and with an example value."""

    def name(self, option: str) -> str: ...

    def with_value(self, option: str, value: str) -> str: ...


class PythonNaming:
    """Options as parameters: `batch`, `epsilon=3`."""

    def name(self, option: str) -> str:
        return option

    def with_value(self, option: str, value: str) -> str:
        return f"{option}={value}"


class _Option:
    """One option in a sentence; `{option.epsilon[3]}` gives it a value."""

    def __init__(self, option: str, naming: Naming) -> None:
        self._option = option
        self._naming = naming

    def __str__(self) -> str:
        return self._naming.name(self._option)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __getitem__(self, value: int | str) -> str:
        return self._naming.with_value(self._option, str(value))


class _Options:
    def __init__(self, naming: Naming) -> None:
        self._naming = naming

    def __getattr__(self, option: str) -> _Option:
        if option.startswith("__"):
            raise AttributeError(option)
        return _Option(option, self._naming)


PYTHON: Naming = PythonNaming()


def worded(sentence: str, naming: Naming, fields: Mapping[str, Any]) -> str:
    """A sentence with its fields, in which options are called as its readers call them.

    >>> worded("give {option.batch[8]} for {rows} rows", PYTHON, {"rows": 3})
    'give batch=8 for 3 rows'
    """
    return sentence.format(option=_Options(naming), **fields)


class TacitError(Exception):
    """Something the user can fix. The command prints it as one sentence and exits with `exit_code`."""

    exit_code: int = 2

    def __init__(self, code: str, sentence: str, /, **fields: Any) -> None:
        self.code: str = code
        self.sentence: str = sentence
        self.fields: Mapping[str, Any] = fields
        self._remarks: list[tuple[str, dict[str, Any]]] = []
        super().__init__(self.rendered(PYTHON))

    @classmethod
    def of(cls, error: TacitError) -> Self:
        """The same cause, sentence and fields as an error of this class."""
        return cls(error.code, error.sentence, **error.fields)

    def rendered(self, naming: Naming) -> str:
        """The sentence in the words of one kind of reader."""
        return worded(self.sentence, naming, self.fields)

    def plain_fields(self) -> dict[str, int | float | str | None]:
        """The fields as JSON can hold them: numbers, and everything else in words."""
        return {name: _plain(value) for name, value in self.fields.items()}

    def add_remark(self, sentence: str, **fields: Any) -> None:
        """A sentence beside the error, such as what is left of a run and how to go on."""
        self._remarks.append((sentence, fields))
        self.add_note(worded(sentence, PYTHON, fields))

    def remarks(self, naming: Naming) -> list[str]:
        """The sentences beside the error in the words of one kind of reader."""
        return [worded(sentence, naming, fields) for sentence, fields in self._remarks]

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.code, self.sentence, dict(self.fields), self.__dict__.copy())


def _plain(value: Any) -> int | float | str | None:
    if value is None:
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real) and math.isfinite(value):
        return float(value)
    return str(value)


def _rebuilt(
    kind: type[TacitError], code: str, sentence: str, fields: dict[str, Any], state: dict[str, Any]
) -> TacitError:
    """An error that came from another process, with all that was set on it there."""
    error = kind.__new__(kind)
    TacitError.__init__(error, code, sentence, **fields)
    error.__dict__.update(state)
    return error


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


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str = ".", cutoff: float = 0.6) -> str:
    """How a sentence about an unknown name goes on: with the known one that is spelled most like it, if one is.

    >>> did_you_mean("santxt", ["santext", "tem"]), did_you_mean("x", ["santext", "tem"])
    ("; did you mean 'santext'?", '.')
    """
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean '{close[0]}'?" if close else otherwise


def check_choice(name: str, known: Iterable[str], *, code: str, what: str) -> None:
    """Refuses a name of something, such as a noise, that is not among the known ones.

    >>> check_choice("laplace", ["gauss", "laplace"], code="unknown-noise", what="noise")
    """
    choices = list(known)
    if name not in choices:
        raise BadParameterError(code, NO_SUCH_CHOICE, what=what, name=name, known=", ".join(choices))


def package_folder(package: str, what: str, install: str) -> Path:
    """The folder of an installed package, which is not imported; `what` comes in it and `install` gets it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(
            "package-not-installed", "{what} in a package that is not installed: {install}", what=what, install=install
        )
    return Path(next(iter(spec.submodule_search_locations)))


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional library, or say in one sentence how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            "missing-extra",
            "{purpose} needs the library '{library}': {install}",
            purpose=purpose,
            library=module.partition(".")[0],
            install=install_line(extra),
        ) from error
