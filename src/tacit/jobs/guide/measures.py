"""Expectations: scores that were measured on public data sets, and how they are read for another number of rows.

`measures.json` is written by `benchmarks/guide.py`; every row says on what, how large, with which budget, how often and
with which version it was measured. Between two measured sizes a score is interpolated over the logarithm of the number
of rows, and said to be; beyond them no number is made up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from tacit.jobs.guide.rules import Way

MEASURES: Final = Path(__file__).with_name("measures.json")
MEASURED_AS: Final = {Way.SKETCH: Way.MATCHING}
"""Ways whose result is that of another one."""
COMPARED_WITH: Final = {Way.TRAINING: Way.MATCHING}
"""Ways beside which another one is shown, because it may do better with few rows."""


class Basis(StrEnum):
    """How an expected score is known."""

    MEASURED = "measured"
    INTERPOLATED = "interpolated"
    BELOW = "fewer rows than measured"
    ABOVE = "more rows than measured"
    ALL_SIZES = "all sizes that were measured"


@dataclass(frozen=True)
class Measured:
    """A score on a public data set.

    way       what was measured, with the options that the guide recommends
    data_set  its name; `kind`: what it holds; `labels`: how many of them there are
    rows      private rows
    epsilon   the budget of a row (of a word at the word level)
    score     macro-F1 on original test rows, the worst of the learners; for topics the distance of the shares
    spread    its standard deviation over the seeds
    original  the same score with the private rows themselves, without protection
    stays     at the word level, the share of words that come out as they went in
    version   of Tacit
    """

    way: Way
    data_set: str
    kind: str
    labels: int
    rows: int
    epsilon: float
    score: float
    spread: float
    seeds: int
    learners: tuple[str, ...]
    original: float | None
    stays: float | None
    version: str

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class Expectation:
    """The score to expect from a file of a given size, if it is like a public data set.

    score     None where the number of rows is not known
    between   the measurements that it comes from
    """

    kind: str
    data_set: str
    labels: int
    rows: int | None
    basis: Basis
    score: float | None
    original: float | None
    between: tuple[Measured, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "data_set": self.data_set,
            "labels": self.labels,
            "rows": self.rows,
            "basis": self.basis.value,
            "score": self.score,
            "original": self.original,
            "measured": [each.to_dict() for each in self.between],
        }


@cache
def measured_scores() -> tuple[Measured, ...]:
    """The table."""
    rows = json.loads(MEASURES.read_text(encoding="utf-8"))
    blank = {"original": None, "stays": None}
    return tuple(
        Measured(**{**blank, **row, "way": Way(row["way"]), "learners": tuple(row["learners"])}) for row in rows
    )


def expectations(way: Way, rows: int | None) -> list[Expectation]:
    """The expectations for so many rows, one for each data set that was measured; from the smallest to the largest size
    where the number of rows is not known."""
    measured = [each for each in measured_scores() if each.way is MEASURED_AS.get(way, way)]
    names = dict.fromkeys(each.data_set for each in sorted(measured, key=lambda each: (each.labels, each.data_set)))
    return [expected([each for each in measured if each.data_set == name], rows) for name in names]


def expected(sizes: Sequence[Measured], rows: int | None) -> Expectation:
    """The expectation for so many rows, by the measurements on one data set."""
    ordered = sorted(sizes, key=lambda each: each.rows)
    if rows is None:
        return _expectation(ordered[:: max(1, len(ordered) - 1)], None, Basis.ALL_SIZES)
    same = [each for each in ordered if each.rows == rows]
    if same:
        return _expectation(same, rows, Basis.MEASURED)
    smaller, larger = [each for each in ordered if each.rows < rows], [each for each in ordered if each.rows > rows]
    if not smaller:
        return _expectation(larger[:1], rows, Basis.BELOW)
    if not larger:
        return _expectation(smaller[-1:], rows, Basis.ABOVE)
    return _expectation([smaller[-1], larger[0]], rows, Basis.INTERPOLATED)


def _expectation(between: Sequence[Measured], rows: int | None, basis: Basis) -> Expectation:
    first, last = between[0], between[-1]
    share = 0.0
    if basis is Basis.INTERPOLATED and rows is not None:
        share = math.log(rows / first.rows) / math.log(last.rows / first.rows)
    original = None
    if first.original is not None and last.original is not None and rows is not None:
        original = round((1 - share) * first.original + share * last.original, 2)
    score = None if rows is None else round((1 - share) * first.score + share * last.score, 2)
    return Expectation(first.kind, first.data_set, first.labels, rows, basis, score, original, tuple(between))


# In words -------------------------------------------------------------------------------------------------------------


def expectation_sentence(expected: Expectation) -> str:
    """An expectation in words, with where it comes from."""
    first = expected.between[0]
    topics = first.way is Way.TOPICS
    about = f"{expected.kind} ({expected.data_set}{'' if topics else f', {expected.labels} labels'})"
    repeated = f"{first.seeds} run{'' if first.seeds == 1 else 's'}"
    shown = _shown_topics if topics else _shown_score
    if expected.score is None:
        scores = " to ".join(f"{shown(each.score)} with {each.rows:,} rows" for each in expected.between)
        return f"{about}: {'' if topics else 'macro-F1 '}{scores} ({repeated})"
    beside = "" if expected.original is None else f", {_shown_score(expected.original)} with the originals"
    what = "of the rows counted under another topic" if topics else ""
    score = f"{shown(expected.score)} {what}" if topics else f"macro-F1 {shown(expected.score)}{beside}"
    return f"{about}: {score} ({_basis(expected, shown)}; {repeated})"


def _basis(expected: Expectation, shown: Callable[[float], str]) -> str:
    first, last = expected.between[0], expected.between[-1]
    if expected.basis is Basis.INTERPOLATED:
        return f"interpolated: {first.rows:,} rows {shown(first.score)}, {last.rows:,} rows {shown(last.score)}"
    if expected.basis is Basis.MEASURED:
        return f"measured with {first.rows:,} rows"
    return f"{expected.basis.value}; this is for {first.rows:,}"


def _shown_score(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def _shown_topics(value: float) -> str:
    return f"{100 * value:.0f} %"
