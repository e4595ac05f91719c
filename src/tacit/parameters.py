"""Facts about the parameters of a mechanism, declared on the class beside their types and defaults.

    punctuation: str = parameter("rewrite", choices=("rewrite", "drop", "keep"))
    bits: int = parameter(64, low=1, high=4096, service_most=512)

The catalog lists it, the mechanism is checked by it, the page makes its controls from it, the service decides by it
what a request may ask for, and a command knows from it what must be installed. There is no other table of these facts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, Final

from tacit.errors import BadParameterError
from tacit.needs import Ability

_METADATA: Final = "tacit"

NeedsOfValue = Callable[[str], Sequence[Ability]]


@dataclass(frozen=True)
class EpsilonRange:
    """Where a slider for epsilon stands at first, and its ends: from strong protection to a nominal one, or from
    "nearly every word changes" to "few do".

    >>> EpsilonRange(2.0, 1.0, 12.0).high
    12.0
    """

    default: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0.0 < self.low <= self.default <= self.high < math.inf:
            raise BadParameterError(
                "epsilon-range",
                "the range of a slider must have 0 < low <= default <= high, not {low:g}, {default:g}, {high:g}",
                low=self.low,
                default=self.default,
                high=self.high,
            )


@dataclass(frozen=True)
class Parameter:
    """The facts about one parameter.

    choices          the texts it can be; none: any
    low, high        the ends of a number, both allowed
    service_values   texts that a request to a service may give without the operator's permission, beside the default
                     and the choices: names of what comes with the package, never of files
    service_any      a request may give any text: the mechanism itself checks it, and it names nothing on the server
    service_most     the largest number that a request may give without the operator's permission
    needs            what must be installed for a value, which is given as text; "" where the default is used and the
                     default is None
    """

    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    service_values: tuple[str, ...] = ()
    service_any: bool = False
    service_most: int | None = None
    needs: NeedsOfValue | None = None

    def check(self, name: str, value: object) -> None:
        """Refuse a value that is not among the choices or outside of the range."""
        if self.choices and isinstance(value, str) and value not in self.choices:
            raise BadParameterError(
                "not-a-choice",
                "{name} must be one of {choices}, not '{value}'",
                name=name,
                choices=", ".join(self.choices),
                value=value,
            )
        if isinstance(value, int | float) and not isinstance(value, bool):
            self._check_range(name, value)

    def _check_range(self, name: str, value: float) -> None:
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        if low <= value <= high or (self.low is None and self.high is None):
            return
        if self.high is None:
            sentence = "{name} must be at least {low:g}, not {value:g}"
        elif self.low is None:
            sentence = "{name} must be at most {high:g}, not {value:g}"
        else:
            sentence = "{name} must lie between {low:g} and {high:g}, not {value:g}"
        raise BadParameterError("outside-range", sentence, name=name, low=low, high=high, value=value)

    def service_takes(self, value: str) -> bool:
        """Whether a request may give this text without the operator's permission."""
        return self.service_any or value in self.choices or value in self.service_values


def parameter(
    default: Any = MISSING,
    *,
    choices: Sequence[str] = (),
    low: float | None = None,
    high: float | None = None,
    service_values: Sequence[str] = (),
    service_any: bool = False,
    service_most: int | None = None,
    needs: NeedsOfValue | None = None,
) -> Any:
    """The field of a dataclass with what `Parameter` says about it."""
    known = Parameter(tuple(choices), low, high, tuple(service_values), service_any, service_most, needs)
    return field(default=default, metadata={_METADATA: known})


def declared_parameters(cls: type) -> dict[str, Parameter]:
    """The parameters of a class that say something about themselves, by `parameter`."""
    return {item.name: item.metadata[_METADATA] for item in fields(cls) if _METADATA in item.metadata}


@cache
def parameters_of(cls: type) -> dict[str, Parameter]:
    """All parameters of a mechanism's class by name; those that say nothing about themselves have an empty entry."""
    return {item.name: item.metadata.get(_METADATA) or Parameter() for item in fields(cls) if item.init}
