"""The names of all scores, so that a misspelled one is an error before anything runs.

A kind names the scores to show first in `Kind.measures`. What the kinds that come with Tacit score beyond these is in
`FURTHER`, as patterns: some names hold a part of the data or an attack.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase

from tacit.errors import BadInputError
from tacit.experiments.steps import kinds

ENDS = ("low", "high", "floor", "ceiling")

_OF_THE_CARD = ("epsilon of the card", "delta of the card")
_OF_CLASSES = ("score", "macro-F1", "accuracy", "entity F1", "collapsed", "never predicted", "lost classes")

FURTHER: Mapping[str, tuple[str, ...]] = {
    "attack": ("rate of *", "defended", "cases"),
    "conversion": ("delta",),
    "data": ("rows in *", "words per row in *"),
    "downstream": ("mean absolute error",),
    "graph": (*_OF_CLASSES, *_OF_THE_CARD, "training nodes", "epsilon of a *", "noise multiplier"),
    "memorize": ("similarity to the original", "similarity to pre-training"),
    "perturb": ("sensitivity of the map", "diameter after the map", "smallest epsilon of the domain"),
    "perturbed_task": ("accuracy", "score", "F1 of *"),
    "pretrain": ("width", "noise share"),
    "rewrite": ("documents", "units per document", "different words in *", "words in *", "words per text in *",
                *_OF_THE_CARD),
    "sanitized": ("loss at the beginning", "lines"),
    "similarity": ("chrF", "BERTScore", "perplexity", "words kept in place", "words kept anywhere", "length change"),
    "statistics": ("exact", "median of *", "inputs of a word", "effective outputs", "bits of an output"),
    "train": (*_OF_CLASSES, *_OF_THE_CARD, "exact match", "F1 where there is an answer", "F1 of *"),
    "tune": (*_OF_CLASSES, *_OF_THE_CARD),
}  # fmt: skip


def measures_of(kind: str) -> tuple[str, ...]:
    """Every score that a kind can have, as patterns."""
    return tuple(dict.fromkeys([*kinds()[kind].measures, *FURTHER.get(kind, ())]))


def is_measure(kind: str, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in measures_of(kind))


def check_measure(kind: str, name: str, step: str) -> None:
    """Whether a step can have a score of this name (or an end of its interval)."""
    stem, dot, end = name.rpartition(".")
    if is_measure(kind, name) or (dot and end in ENDS and is_measure(kind, stem)):
        return
    known = measures_of(kind)
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else "."
    raise BadInputError(f"'{step}' has no score '{name}'{hint} A {kind} step has: {'; '.join(known)}")
