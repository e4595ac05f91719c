"""Kinds of steps, one file each. A new file with a `KIND` is found by itself.

A kind is a pydantic model of its parameters, `run`, which writes raw results into a folder, and `score`, which derives
numbers from these files alone. `run` gets the folders of its inputs and a function for progress; equal parameters and
inputs give equal files, so a step that was stopped is simply run again. The exception is noise: a step that releases
text keeps its key in `KEY_FILE` until it is finished, so that running it again never draws new noise. A step that
trains keeps checkpoints, its key among them, in `RUN_FOLDER` in the same way, and goes on from there.

Scores: a name such as "accuracy", and with it where they exist "accuracy.low" and "accuracy.high" (95 % over test
items), "accuracy.floor" (what needs no text) and "accuracy.ceiling" (the same without privacy).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

from tacit.errors import BadInputError
from tacit.experiments.declared import Axes, Strict
from tacit.progress import StepProgress
from tacit.report import Table

Progress = StepProgress
Inputs = Mapping[str, Path]
"""The folders of the inputs of a step."""
Scores = dict[str, float]
OF_THE_CARD: Final = ("epsilon of the card", "delta of the card")
OF_CLASSES: Final = ("score", "macro-F1", "accuracy", "entity F1", "collapsed", "never predicted", "lost classes")
"""Scores that several kinds have."""
KEY_FILE: Final = "noise.key"
RUN_FOLDER: Final = "run"


@dataclass(frozen=True)
class Input:
    """An input of a step: which kinds of steps may stand there.

    required   an input that is not named is taken from the step's other inputs (the data behind the texts)
    public     everything it was made from must be declared public
    """

    kinds: tuple[str, ...]
    required: bool = True
    public: bool = False


class PlannedCell(Protocol):
    """A cell as it is known before anything runs."""

    @property
    def kind(self) -> str: ...

    @property
    def parameters(self) -> Strict: ...

    @property
    def inputs(self) -> Mapping[str, PlannedCell]: ...


P = TypeVar("P", bound=Strict)


@dataclass(frozen=True)
class Kind(Generic[P]):
    """One kind of step.

    version   raised whenever `run` would write something else: steps of older versions are run again
    scoring   raised whenever `score` would derive something else: scores of older versions are derived again from the
              raw files, and nothing is run
    check     says before anything runs what is missing or contradicts (a model, a library, a setting); it gets the
              parameters and the names of the inputs that are given
    fits      says before anything runs why the cells that are given as inputs do not go with the parameters (a part or
              a column that the data does not have); see `tacit.experiments.inputs`
    content   what stands for the parameters in the key of a step; by default the parameters themselves
    epsilon   what the epsilon of a step means, such as "per document": only equal meanings share an axis; None where it
              means nothing
    measures  the scores to show first
    further   the names of the other scores, as patterns (some hold a part of the data or an attack); a function of
              nothing where plug-ins add to them
    timing    a table about time, from the axes and folders of the finished cells of a step; it stands with the costs,
              because times differ between equal runs
    """

    name: str
    version: int
    parameters: type[P]
    run: Callable[[P, Inputs, Path, Progress], None]
    score: Callable[[Path], Scores]
    inputs: Mapping[str, Input] = field(default_factory=dict)
    check: Callable[[P, frozenset[str]], None] | None = None
    content: Callable[[P], object] | None = None
    epsilon: Callable[[P], str | None] | None = None
    measures: tuple[str, ...] = ()
    timing: Callable[[Sequence[tuple[Axes, Path]]], Table | None] | None = None
    fits: Callable[[P, Mapping[str, PlannedCell]], None] | None = None
    further: tuple[str, ...] | Callable[[], tuple[str, ...]] = ()
    scoring: int = 1

    @property
    def all_measures(self) -> tuple[str, ...]:
        """Every score that a step of this kind can have, as patterns."""
        further = self.further() if callable(self.further) else self.further
        return tuple(dict.fromkeys([*self.measures, *further]))

    @property
    def draws_noise(self) -> bool:
        return "test_seed" in self.parameters.model_fields

    def check_parameters(self, parameters: P, inputs: frozenset[str]) -> None:
        """Nothing if everything that a cell needs is there."""
        if self.check is not None:
            self.check(parameters, inputs)

    def check_inputs(self, parameters: P, inputs: Mapping[str, PlannedCell]) -> None:
        """Nothing if the cells that are given as inputs go with the parameters."""
        if self.fits is not None:
            self.fits(parameters, inputs)

    def content_of(self, parameters: P) -> object:
        """The values that stand for the parameters in the key of a step."""
        return parameters.model_dump() if self.content is None else self.content(parameters)

    def meaning_of_epsilon(self, parameters: P) -> str | None:
        """The unit that the epsilon of a step is counted per."""
        return None if self.epsilon is None else self.epsilon(parameters)


AnyKind = Kind[Any]
"""A kind of which the parameters are not known."""


@cache
def kinds() -> dict[str, AnyKind]:
    """All kinds of steps by name."""
    package = importlib.import_module(__name__)
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return {module.KIND.name: module.KIND for module in modules if hasattr(module, "KIND")}


def kind_named(name: str, where: str) -> AnyKind:
    """The kind of a step of the file."""
    known = kinds()
    if name not in known:
        raise BadInputError(
            "no-such-kind",
            "'{where}.kind' must be one of {known}, not '{name}'",
            where=where,
            known=", ".join(known),
            name=name,
        )
    return known[name]
