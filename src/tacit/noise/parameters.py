"""The ranges in which the parameters of a mechanism mean something, checked with a sentence each."""

from __future__ import annotations

import math

from tacit.errors import BadParameterError


def positive(value: float, name: str) -> float:
    """A finite number above zero."""
    number = float(value)
    if not (number > 0 and math.isfinite(number)):
        raise BadParameterError(
            "not-positive",
            "{name} must be a finite number above zero, not {value}: give a larger one",
            name=name,
            value=value,
        )
    return number


def proper_delta(delta: float) -> float:
    """A probability strictly between zero and one."""
    number = float(delta)
    if not 0 < number < 1:
        raise BadParameterError(
            "impossible-delta",
            "delta must lie strictly between 0 and 1, not {delta}: take it well below one over the number of "
            "people, and use the Laplace mechanism if it has to be zero",
            delta=delta,
        )
    return number
