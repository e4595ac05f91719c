"""The strength of a guarantee: the exponents of one unit and of whole rows, as odds, with a verdict."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from enum import StrEnum

from tacit.card.facts import ReleaseFacts
from tacit.card_words import unit_name
from tacit.errors import NoGuaranteeError
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit
from tacit.rounding import exponential_up, power_of_ten_up, rounded_up


class Verdict(StrEnum):
    """How much a bound protects, from the best to the worst."""

    STRONG = "strong"
    MODERATE = "moderate"
    WEAK = "weak"
    NOMINAL = "nominal"

    @property
    def sentence(self) -> str:
        return "nominal: the formal bound alone no longer protects" if self is Verdict.NOMINAL else self.value


def strength(exponent: float) -> Verdict:
    """A verdict with stated thresholds: ln 3 is what a fair-coin randomized response gives."""
    if exponent <= math.log(3) + 1e-9:
        return Verdict.STRONG
    if exponent <= 4:
        return Verdict.MODERATE
    if exponent <= 10:
        return Verdict.WEAK
    return Verdict.NOMINAL


def odds(exponent: float) -> str:
    """e^exponent, rounded up, in words that stay readable when the number does not."""
    if math.isinf(exponent):
        return "any factor"
    if exponent < 0.01:
        return exponential_up(exponent, 5)
    if exponent < 20:
        return exponential_up(exponent, 3)
    return power_of_ten_up(exponent)


def bound_heading(g: Guarantee) -> str:
    """The heading over the numbers of `totals`: they bound odds or, with a delta, probabilities of events."""
    return "any event at most so many times as probable" if g.delta else "odds change by at most"


def totals(g: Guarantee, facts: ReleaseFacts | None) -> Iterator[tuple[str, float, str]]:
    """The exponent for one unit and for whole texts: what a per-token epsilon hides."""
    if not g.is_private:
        return
    yield from _exponents(f"one {unit_name(g.unit)}", g, "distance")
    yield from row_totals(g, facts)


def row_totals(g: Guarantee, facts: ReleaseFacts | None) -> Iterator[tuple[str, float, str]]:
    """The exponent of a whole row, where that is more than one unit: all its words, or its texts in several columns."""
    if not g.is_private:
        return
    if g.unit is Unit.DOCUMENT and facts is not None and len(facts.columns) > 1:
        with contextlib.suppress(NoGuaranteeError):
            whole = g.for_group(len(facts.columns))
            yield from _exponents(f"one row here, {len(facts.columns):,} texts", whole, "distances")
    if not g.unit.is_part_of_text:
        return
    parts = f"{unit_name(g.unit)}s"
    lengths: dict[int, str] = {number: f"a text of {number} {parts}" for number in (20, 200)}
    if facts is not None and facts.longest_row > 0:
        longest = parts if facts.longest_row > 1 else unit_name(g.unit)
        lengths = {facts.longest_row: f"the longest row here, {facts.longest_row:,} {longest}"}
    inside_spans = g.adjacency is Adjacency.SAME_SPANS
    if inside_spans:
        lengths = {n: f"all {n:,} words inside spans here" for n in lengths if facts is not None and facts.longest_row}
    for length, what in lengths.items():
        try:
            whole = g.for_group(length) if inside_spans else g.for_document(length)
        except NoGuaranteeError:
            continue
        yield from _exponents(what, whole, "distances")


def row_sentences(g: Guarantee, facts: ReleaseFacts) -> list[str]:
    """Sentences that bound the loss of a whole row, one for each total; none unless several columns are rewritten."""
    if len(facts.columns) < 2:
        return []
    return [
        f"For {what}, in {len(facts.columns):,} columns together: by at most {_exponent_text(exponent)}"
        + (f" ({note})." if note else ".")
        for what, exponent, note in row_totals(g, facts)
    ]


def bound_text(exponent: float, note: str) -> str:
    """A bound as a factor, with what it holds for."""
    return f"{_exponent_text(exponent)}{f' ({note})' if note else ''}"


def _exponent_text(exponent: float) -> str:
    return "any factor" if math.isinf(exponent) else f"e^{rounded_up(exponent, 4)} = {odds(exponent)}"


def _exponents(what: str, g: Guarantee, distance: str) -> Iterator[tuple[str, float, str]]:
    notes = ["only where the output is a sensitive word"] if g.notion is Notion.UTILITY_OPTIMIZED_METRIC else []
    notes += ["within its set only"] if g.adjacency.within_sets else []
    notes += ["same kept punctuation only"] if g.adjacency.keeps_punctuation else []
    notes += ["the redacted places only"] if g.adjacency is Adjacency.SAME_REDACTED else []
    notes += ["inside the detected spans only"] if g.adjacency is Adjacency.SAME_SPANS else []
    notes += [f"plus {rounded_up(g.delta, 3)} on every probability"] if g.delta else []
    note = ", ".join(notes)
    if g.metric is None:
        yield what, g.exponent(), note
        return
    if g.metric.typical is not None:
        yield f"{what}, typical {distance}", g.exponent(g.metric.typical), note
    if g.metric.diameter is not None:
        yield f"{what}, largest {distance}", g.exponent(), note
