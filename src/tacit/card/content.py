"""Everything a card says, in words, whatever the format: no format can say more than another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tacit.card.facts import ReleaseFacts
from tacit.card.sentence import plain_sentence
from tacit.card.strength import Verdict, bound_heading, bound_text, strength, totals
from tacit.card_words import MODELS, UNITS, domain_text, notion_text, setting_line, unit_name
from tacit.guarantee import Guarantee, Provenance
from tacit.rounding import rounded_up

SECOND = "A second promise, for the shuffled rows"
"""The title of the lines that say it."""


@dataclass(frozen=True)
class Content:
    """The parts of a card in words."""

    title: str
    sentence: str
    rows: list[tuple[str, str]]
    heading: str
    totals: list[tuple[str, str, Verdict]]
    not_covered: list[str]
    assumptions: list[str]
    provenance: list[str]
    release: list[tuple[str, str]]
    footer: str
    second: list[tuple[str, str]] = field(default_factory=list)

    def lists(self) -> Iterator[tuple[str, list[str]]]:
        """The lists of the card that say something, with their titles."""
        for title, items in (
            ("Not covered", self.not_covered),
            ("Assumed", self.assumptions),
            ("Learned from", self.provenance),
        ):
            if items:
                yield title, items


def content(g: Guarantee, facts: ReleaseFacts | None, version: str, shuffled: Guarantee | None = None) -> Content:
    """The text of a card for this guarantee and release."""
    conversions = f" Conversions: {'; '.join(g.history)}." if g.history else ""
    return Content(
        title="Privacy card" if g.is_private else "Privacy card: NO GUARANTEE",
        sentence=plain_sentence(g),
        rows=list(guarantee_rows(g)),
        heading=bound_heading(g),
        totals=[(what, bound_text(exponent, note), strength(exponent)) for what, exponent, note in totals(g, facts)],
        not_covered=list(g.not_covered),
        assumptions=list(g.assumptions),
        provenance=[_provenance_text(p) for p in g.provenance],
        release=list(_release_rows(g, facts)),
        footer=f"Tacit {version}.{conversions}",
        second=[] if shuffled is None else list(_second_rows(shuffled)),
    )


def _second_rows(g: Guarantee) -> Iterator[tuple[str, str]]:
    """The lines of a second promise: where they repeat the first one they are left out."""
    yield "promise", plain_sentence(g)
    yield from (row for row in guarantee_rows(g) if row[0] != "mechanism")
    yield "protection", strength(g.exponent()).sentence
    yield "assumed", "; ".join(g.assumptions[-2:])


def guarantee_rows(g: Guarantee) -> Iterator[tuple[str, str]]:
    """The parts of a guarantee, one labeled line each."""
    yield "mechanism", g.mechanism
    yield "kind of promise", notion_text(g.notion, g.unit)
    if g.is_private:
        unit = unit_name(g.unit)
        yield "epsilon", f"{rounded_up(g.epsilon)} per {unit}" + (" and unit of distance" if g.metric else "")
        if g.delta:
            yield "delta", rounded_up(g.delta)
        if g.offset:
            yield "constant (epsilon_0)", f"{rounded_up(g.offset)}, added whatever the distance"
        if g.slack:
            yield "computer arithmetic", f"adds at most {rounded_up(g.slack, 2)} per {unit}"
    if g.metric is not None:
        typical = f", typical {g.metric.typical:.4g}" if g.metric.typical is not None else ""
        largest = f", largest {rounded_up(g.metric.diameter, 4)}" if g.metric.diameter is not None else ""
        yield "distance", f"{g.metric.label}{typical}{largest}"
    if g.sensitive_share is not None:
        yield "sensitive words", f"{g.sensitive_share:.1%} of the vocabulary"
    if g.domain is not None:
        yield "refers to", domain_text(g.domain)
    yield "noise is added", MODELS[g.model]
    yield "one secret is", UNITS[g.unit]
    yield "hidden from each other", g.adjacency.value
    for name, value in g.parameters.items():
        if name != "delta" or value != g.delta:
            yield setting_line(name, value)


def _release_rows(g: Guarantee, facts: ReleaseFacts | None) -> Iterator[tuple[str, str]]:
    if facts is None:
        return
    yield "output", facts.output
    yield "rows", f"{facts.rows:,}"
    yield "texts", f"{facts.documents:,}"
    if g.unit.is_part_of_text or facts.units != facts.documents:  # else the texts are what is counted
        part = unit_name(g.unit) if g.unit.is_part_of_text else "word"
        yield f"{part}s released", f"{facts.units:,} (longest text {facts.longest_document:,})"
    for label, columns in (
        ("columns rewritten", facts.columns),
        ("columns randomized", facts.randomized_columns),
        ("columns copied", facts.kept_columns),
    ):
        if columns:
            yield label, ", ".join(columns)
    if facts.dropped_columns:
        yield "columns dropped", str(facts.dropped_columns)
    yield "command", facts.command
    yield "created", facts.created
    if facts.digest:
        yield "SHA-256", facts.digest


def _provenance_text(p: Provenance) -> str:
    origin = "public" if p.public else f"private, paid by {p.paid_by}"
    return f"{p.name}: {p.source} ({origin})"
