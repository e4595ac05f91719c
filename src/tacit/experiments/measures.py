"""The names of all scores, so that a misspelled one is an error before anything runs.

A kind names the scores to show first in `Kind.measures`, and all others in `Kind.further`.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Final

from tacit.errors import BadInputError, did_you_mean
from tacit.experiments.steps import kinds

ENDS: Final = ("low", "high", "floor", "ceiling")


def measures_of(kind: str) -> tuple[str, ...]:
    """Every score that a kind can have, as patterns."""
    return kinds()[kind].all_measures


def is_measure(kind: str, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in measures_of(kind))


def check_measure(kind: str, name: str, step: str) -> None:
    """Refuse a name that is no score of a step (or an end of its interval)."""
    stem, dot, end = name.rpartition(".")
    if is_measure(kind, name) or (dot and end in ENDS and is_measure(kind, stem)):
        return
    known = measures_of(kind)
    raise BadInputError(
        "no-such-score",
        "'{step}' has no score '{name}'{hint} A {kind} step has: {known}",
        step=step,
        name=name,
        hint=did_you_mean(name, known),
        kind=kind,
        known="; ".join(known),
    )
