"""The privacy card: a guarantee written out for machines (JSON) and for people (terminal, Markdown, HTML).

Every renderer reads the same `Content`, so that no format can say more than another. Bounds are rounded up.
"""

from __future__ import annotations

import contextlib
import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from tacit.card_words import MODELS, UNITS, domain_text, notion_text, promise_text, setting_line, unit_name
from tacit.errors import BadInputError, NoGuaranteeError
from tacit.guarantee import Adjacency, Guarantee, Notion, Unit
from tacit.notebook import framed
from tacit.rounding import exponential_up, power_of_ten_up, rounded_down, rounded_up
from tacit.version import __version__

CARD_VERSION = 2
READABLE_VERSIONS = (1, 2)
"""Cards of these versions are read; the rules by which they change are in docs/guarantee.md."""


@dataclass(frozen=True)
class ReleaseFacts:
    """What a release shows anyway: counts of the output, never anything of the input that the output hides.

    `digest` is the SHA-256 of the output (text/digest.py), by which a card knows its own file; empty where there is no
    file. `configuration` holds the options that decided the release, by name (`Config.identity`).
    """

    rows: int
    documents: int
    units: int
    longest_document: int
    longest_row: int
    columns: tuple[str, ...] = ()
    kept_columns: tuple[str, ...] = ()
    randomized_columns: tuple[str, ...] = ()
    dropped_columns: int = 0
    output: str = ""
    command: str = ""
    created: str = ""
    digest: str = ""
    configuration: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Content:
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


@dataclass(frozen=True)
class Card:
    guarantee: Guarantee
    facts: ReleaseFacts | None = None
    version: str = field(default=__version__)

    @property
    def verdict(self) -> Verdict | None:
        """The worst of the verdicts on this card; none where nothing is promised."""
        found = {strength(exponent) for _, exponent, _ in totals(self.guarantee, self.facts)}
        return max(found, key=list(Verdict).index, default=None)

    @property
    def worst_line(self) -> str:
        """The line of this card with the largest bound, in words; empty where nothing is promised."""
        lines = list(totals(self.guarantee, self.facts))
        if not lines:
            return ""
        what, exponent, note = max(lines, key=lambda line: line[1])
        return f"{what}, {bound_heading(self.guarantee)} {_bound_text(exponent, note)}"

    @property
    def is_nominal(self) -> bool:
        """Whether a line of this card says that the bound no longer protects, or nothing is promised at all."""
        return not self.guarantee.is_private or self.verdict is Verdict.NOMINAL

    # Machines -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        return {
            "card_version": CARD_VERSION,
            "tacit_version": self.version,
            "sentence": plain_sentence(self.guarantee),
            "guarantee": self.guarantee.to_dict(),
            "in_words": [list(row) for row in _rows(self.guarantee)],
            "release": None if self.facts is None else _jsonable(asdict(self.facts)),
            "totals": [
                {"what": what, "exponent": _finite(exponent), "note": note}
                for what, exponent, note in totals(self.guarantee, self.facts)
            ],
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Card:
        try:
            data = json.loads(text)
            if data["card_version"] not in READABLE_VERSIONS:
                raise BadInputError(
                    "card-version",
                    "this card has version {version}, and this Tacit reads the versions {readable}: use a newer Tacit",
                    version=data["card_version"],
                    readable=" and ".join(map(str, READABLE_VERSIONS)),
                )
            release = data.get("release")
            facts = None
            if release is not None:
                for name in ("columns", "kept_columns", "randomized_columns"):
                    release[name] = tuple(release.get(name, ()))
                facts = ReleaseFacts(**release)
            return cls(Guarantee.from_dict(data["guarantee"]), facts, version=data["tacit_version"])
        except (KeyError, TypeError, ValueError) as error:
            raise BadInputError(
                "not-a-card",
                "this is not a privacy card: {error} at {reason}",
                error=type(error).__name__,
                reason=str(error),
            ) from error

    # People ---------------------------------------------------------------------------------------------------

    def content(self) -> Content:
        g = self.guarantee
        return Content(
            title="Privacy card" if g.is_private else "Privacy card: NO GUARANTEE",
            sentence=plain_sentence(g),
            rows=list(_rows(g)),
            heading=bound_heading(g),
            totals=[
                (what, _bound_text(exponent, note), strength(exponent))
                for what, exponent, note in totals(g, self.facts)
            ],
            not_covered=list(g.not_covered),
            assumptions=list(g.assumptions),
            provenance=[_provenance_text(p) for p in g.provenance],
            release=list(_release_rows(g, self.facts)),
            footer=f"Tacit {self.version}. Conversions: {'; '.join(g.history)}."
            if g.history
            else f"Tacit {self.version}.",
        )

    def to_text(self) -> str:
        c = self.content()
        lines = [c.title, "=" * len(c.title), c.sentence, ""]
        width = max(len(label) for label, _ in c.rows)
        lines += [f"{label:<{width}}  {value}" for label, value in c.rows]
        if c.totals:
            lines += ["", f"What it adds up to ({c.heading})"]
            wide = max(len(what) for what, _, _ in c.totals)
            lines += [f"  {what:<{wide}}  {value}: {verdict.sentence}" for what, value, verdict in c.totals]
        for title, items in _lists(c):
            lines += ["", title, *(f"  - {item}" for item in items)]
        return "\n".join(lines)

    def to_markdown(self) -> str:
        c = self.content()
        lines = [f"# {c.title}", "", f"> {c.sentence}", "", "| | |", "|---|---|"]
        lines += [f"| {label} | {_cell(value)} |" for label, value in c.rows]
        if c.totals:
            lines += [
                "",
                "## What it adds up to",
                "",
                f"| for | {c.heading} | protection |",
                "|---|---|---|",
            ]
            lines += [f"| {what} | {_cell(value)} | {verdict.sentence} |" for what, value, verdict in c.totals]
        for title, items in _lists(c):
            lines += ["", f"## {title}", "", *(f"- {item}" for item in items)]
        if c.release:
            lines += ["", "## Release", "", "| | |", "|---|---|"]
            lines += [f"| {label} | {_cell(value)} |" for label, value in c.release]
        lines += ["", f"*{c.footer}*", ""]
        return "\n".join(lines)

    def to_html(self) -> str:
        c = self.content()
        e = html.escape
        body = [f"<h1>{e(c.title)}</h1>", f'<p class="sentence">{e(c.sentence)}</p>', _html_table(c.rows)]
        if c.totals:
            head = f"<tr><th>for</th><th>{e(c.heading)}</th><th>protection</th></tr>"
            cells = "".join(
                f'<tr><td>{e(what)}</td><td>{e(value)}</td><td class="{verdict}">{e(verdict.sentence)}</td></tr>'
                for what, value, verdict in c.totals
            )
            body.append(f"<h2>What it adds up to</h2><table>{head}{cells}</table>")
        for title, items in _lists(c):
            listed = "".join(f"<li>{e(item)}</li>" for item in items)
            body.append(f"<h2>{e(title)}</h2><ul>{listed}</ul>")
        if c.release:
            body.append(f"<h2>Release</h2>{_html_table(c.release)}")
        body.append(f"<footer>{e(c.footer)}</footer>")
        kind = "void" if self.verdict is None else self.verdict
        return (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<title>{e(c.title)}</title><style>{_STYLE}</style></head><body class="{kind}"><main>'
            + "".join(body)
            + "</main></body></html>\n"
        )

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        rows = "" if self.facts is None else f" for {self.facts.rows:,} rows"
        return f"<Card{rows}: {promise_text(self.guarantee)}>"

    def _repr_html_(self) -> str:
        return framed(self.to_html(), "Privacy card")


def for_file(promised: Guarantee, kept: Sequence[str]) -> Guarantee:
    """The guarantee of the mechanism, with what a file shows beside the rewritten texts."""
    copied = [f"the column '{name}', which is copied as it is" for name in kept]
    rows = "how many rows there are, and their order"
    if promised.unit is Unit.TOKEN:
        rows = "how many rows there are, their order, and which texts are empty"
    return promised.also_not_covered(rows, *copied)


# The words --------------------------------------------------------------------------------------------------------


ODDS_MARGIN = math.log(2.0)
TAIL = 3.0


def plain_sentence(g: Guarantee) -> str:
    """One sentence a data steward can repeat to a lawyer.

    With a delta, e^epsilon bounds the probabilities of events, not the odds. Two given possibilities x, x', the
    likelihood ratio r(y) = Pr[M(x) = y] / Pr[M(x') = y], and the outputs S = {y: r(y) > 2 e^epsilon}: from
    Pr[M(x) in S] <= e^epsilon Pr[M(x') in S] + delta and Pr[M(x') in S] <= Pr[M(x) in S] / (2 e^epsilon) follows
    Pr[M(x) in S] <= 2 delta. The outputs with r(y) < 1 / (2 e^epsilon) have probability at most 2 delta under x' by the
    same argument, and so at most 2 delta / (2 e^epsilon) <= delta under x. So the odds move by more than a factor of
    2 e^epsilon, to either side, with probability at most 3 delta. (That they move by more than e^epsilon may well be
    more probable than delta: for Gaussian noise at epsilon 1 and delta 1e-6 it is 2e-5.)
    """
    thing = unit_name(g.unit)
    if g.notion is Notion.NONE:
        return f"This release carries no privacy guarantee: {g.void}."
    where = ""
    if g.adjacency is Adjacency.SAME_SPANS:
        where = (
            " This is for words inside the detected spans only, between texts in which the detector finds the same "
            "spans. All other text, with whatever the detector missed, is not protected at all."
        )
    if g.adjacency.keeps_punctuation:
        where = " Punctuation marks that are kept are copied: what they are and where they stand is not hidden at all."
    if g.notion in (Notion.PURE, Notion.APPROXIMATE):
        if g.adjacency.within_sets:
            where = f" Which set a word belongs to is not hidden at all.{where}"
        if g.adjacency is Adjacency.SAME_REDACTED:
            return (
                f"Whatever stood in the redacted places of one {thing}, seeing the output {_odds_bound(g, '')}. All "
                f"other text of the {thing}, with whatever the redaction missed, is not protected at all."
            )
        return f"Whatever one {thing} was, seeing the output {_odds_bound(g, f' ({g.adjacency.value})')}.{where}"
    assert g.metric is not None
    examples = [
        f"{odds(g.exponent(distance))} at {name} distance {shown(distance, 3)}"
        for name, distance, shown in (
            ("the typical", g.metric.typical, rounded_down),
            ("the largest", g.metric.diameter, rounded_up),
        )
        if distance is not None
    ]
    constant = f" + {rounded_up(g.offset + g.slack, 3)}" if g.offset + g.slack else ""
    bound = f"e^({rounded_up(g.epsilon)} x distance{constant})"
    bound += f": {', '.join(examples)}" if examples else ""
    if g.notion is Notion.UTILITY_OPTIMIZED_METRIC:
        share = f" ({g.sensitive_share:.1%} of the vocabulary)" if g.sensitive_share is not None else ""
        hidden = f"an output from the sensitive part multiplies the odds between any two words by at most {bound}"
        if g.delta:
            hidden = (
                f"no event in the sensitive part is more probable for one word than for another by more than {bound}"
            )
        return (
            f"A sensitive word{share} is hidden among the others: {hidden}{_plus_delta(g)}. A common word may stay "
            f"as it is, and whoever sees one in the output knows that it stood there.{where}"
        )
    if g.delta:
        return (
            f"No event is more probable for one {thing} than for another by more than a factor of {bound}"
            f"{_plus_delta(g)}.{where}"
        )
    return f"Seeing the output multiplies the odds between any two {thing}s by at most {bound}.{where}"


def _odds_bound(g: Guarantee, neighbors: str) -> str:
    """What plain differential privacy says about odds, without and with a delta."""
    if not g.delta:
        return f"multiplies the odds between any two possibilities{neighbors} by at most {odds(g.exponent())}"
    event = f"no event is more than {odds(g.exponent())} times as probable under one of them as under the other"
    if TAIL * g.delta >= 1:
        return f"tells two possibilities{neighbors} apart in so far as {event}{_plus_delta(g)}"
    factor = odds(g.exponent() + ODDS_MARGIN)
    return (
        f"multiplies the odds between two given possibilities{neighbors} by at most {factor}, "
        f"except with probability {rounded_up(TAIL * g.delta, 3)}; {event}{_plus_delta(g)}"
    )


def _plus_delta(g: Guarantee) -> str:
    return f", plus {rounded_up(g.delta, 3)} on every probability" if g.delta else ""


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
    """What the numbers of `totals` bound: odds, or with a delta the probabilities of events."""
    return "any event at most so many times as probable" if g.delta else "odds change by at most"


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
    if g.unit is not Unit.TOKEN:
        return
    lengths: dict[int, str] = {20: "a text of 20 words", 200: "a text of 200 words"}
    if facts is not None and facts.longest_row > 0:
        lengths = {facts.longest_row: f"the longest row here, {facts.longest_row:,} words"}
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
    """What a whole row adds up to, one sentence each, where several columns of it are rewritten."""
    if len(facts.columns) < 2:
        return []
    return [
        f"For {what}, in {len(facts.columns):,} columns together: by at most {_exponent_text(exponent)}"
        + (f" ({note})." if note else ".")
        for what, exponent, note in row_totals(g, facts)
    ]


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


def _rows(g: Guarantee) -> Iterator[tuple[str, str]]:
    yield "mechanism", g.mechanism
    yield "kind of promise", notion_text(g.notion)
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
    if g.unit is Unit.TOKEN or facts.units != facts.documents:  # else the texts are what is counted
        yield "words released", f"{facts.units:,} (longest text {facts.longest_document:,})"
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


def _lists(c: Content) -> Iterator[tuple[str, list[str]]]:
    for title, items in (
        ("Not covered", c.not_covered),
        ("Assumed", c.assumptions),
        ("Learned from", c.provenance),
    ):
        if items:
            yield title, items


def _provenance_text(p: Any) -> str:
    origin = "public" if p.public else f"private, paid by {p.paid_by}"
    return f"{p.name}: {p.source} ({origin})"


def _bound_text(exponent: float, note: str) -> str:
    return f"{_exponent_text(exponent)}{f' ({note})' if note else ''}"


def _exponent_text(exponent: float) -> str:
    return "any factor" if math.isinf(exponent) else f"e^{rounded_up(exponent, 4)} = {odds(exponent)}"


def _cell(value: str) -> str:
    return value.replace("|", "\\|").replace("\n", " ")


def _html_table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in rows)
    return f"<table>{cells}</table>"


def _jsonable(data: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in data.items()}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


_STYLE = (
    ":root{color-scheme:light dark;--ok:#1a7f37;--warn:#b54708;--bad:#b42318;--line:#8884}"
    "body{font:16px/1.5 system-ui,sans-serif;margin:0}main{max-width:52rem;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.4rem;border-left:.4rem solid var(--ok);padding-left:.6rem}"
    ".weak h1{border-color:var(--warn)}.nominal h1,.void h1{border-color:var(--bad)}.void h1{color:var(--bad)}"
    "h2{font-size:1.05rem;margin-top:1.6rem}"
    ".sentence{font-size:1.1rem}table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid var(--line)}"
    "th{font-weight:600;white-space:nowrap}td.strong,td.moderate{color:var(--ok)}"
    "td.weak{color:var(--warn)}td.nominal{color:var(--bad)}"
    "footer{margin-top:2rem;opacity:.7;font-size:.9rem}"
)


# The schema of the JSON form ----------------------------------------------------------------------------------------


def json_schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of `Card.to_json`."""
    from tacit.guarantee import Adjacency, ExclusionKind, MetricKind, Model, ProvenanceKind, VoidReason

    number_or_null = {"type": ["number", "null"], "minimum": 0}
    strings = {"type": "array", "items": {"type": "string"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tacit privacy card",
        "type": "object",
        "required": ["card_version", "tacit_version", "sentence", "guarantee", "release", "totals"],
        "additionalProperties": False,
        "properties": {
            "card_version": {"const": CARD_VERSION},
            "tacit_version": {"type": "string"},
            "sentence": {"type": "string", "minLength": 20},
            "in_words": {
                "type": "array",
                "items": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
            },
            "totals": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["what", "exponent", "note"],
                    "properties": {
                        "what": {"type": "string"},
                        "exponent": number_or_null,
                        "note": {"type": "string"},
                    },
                },
            },
            "guarantee": {
                "type": "object",
                "required": [
                    "notion",
                    "epsilon",
                    "delta",
                    "offset",
                    "slack",
                    "model",
                    "unit",
                    "adjacency",
                    "metric",
                    "domain",
                    "sensitive_share",
                    "mechanism",
                    "parameters",
                    "not_covered",
                    "not_covered_kinds",
                    "assumptions",
                    "provenance",
                    "history",
                    "void",
                    "void_reason",
                ],
                "additionalProperties": False,
                "properties": {
                    "notion": {"enum": [n.value for n in Notion]},
                    "epsilon": number_or_null,
                    "delta": {"type": "number", "minimum": 0, "maximum": 1},
                    "offset": {"type": "number", "minimum": 0},
                    "slack": {"type": "number", "minimum": 0},
                    "model": {"enum": [m.value for m in Model]},
                    "unit": {"enum": [u.value for u in Unit]},
                    "adjacency": {"enum": [a.value for a in Adjacency]},
                    "metric": {
                        "type": ["object", "null"],
                        "required": ["name", "diameter", "typical", "fingerprint", "summed", "kind"],
                        "properties": {
                            "name": {"type": "string"},
                            "diameter": number_or_null,
                            "typical": number_or_null,
                            "fingerprint": {"type": ["string", "null"]},
                            "summed": {"type": "integer", "minimum": 1},
                            "kind": {"enum": [kind.value for kind in MetricKind]},
                        },
                    },
                    "domain": {"type": ["string", "null"]},
                    "sensitive_share": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
                    "mechanism": {"type": "string"},
                    "parameters": {"type": "object"},
                    "not_covered": strings,
                    "not_covered_kinds": {"type": "array", "items": {"enum": [kind.value for kind in ExclusionKind]}},
                    "assumptions": strings,
                    "provenance": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name", "source", "public", "paid_by", "kind"],
                            "properties": {
                                "name": {"type": "string"},
                                "source": {"type": "string"},
                                "public": {"type": "boolean"},
                                "paid_by": {"type": ["string", "null"]},
                                "kind": {"enum": [kind.value for kind in ProvenanceKind]},
                            },
                        },
                    },
                    "history": strings,
                    "void": {"type": ["string", "null"]},
                    "void_reason": {"enum": [*(reason.value for reason in VoidReason), None]},
                },
                "if": {"properties": {"notion": {"const": "none"}}},
                "then": {
                    "properties": {
                        "void": {"type": "string"},
                        "void_reason": {"type": "string"},
                        "epsilon": {"type": "null"},
                    }
                },
                "else": {
                    "properties": {
                        "void": {"type": "null"},
                        "void_reason": {"type": "null"},
                        "epsilon": {"type": "number"},
                    }
                },
            },
            "release": {
                "type": ["object", "null"],
                "required": [
                    "rows",
                    "documents",
                    "units",
                    "longest_document",
                    "longest_row",
                    "columns",
                    "kept_columns",
                    "dropped_columns",
                    "output",
                    "command",
                    "created",
                    "digest",
                ],
                "properties": {
                    "rows": {"type": "integer", "minimum": 0},
                    "documents": {"type": "integer", "minimum": 0},
                    "units": {"type": "integer", "minimum": 0},
                    "columns": strings,
                    "kept_columns": strings,
                    "randomized_columns": strings,
                    "dropped_columns": {"type": "integer", "minimum": 0},
                    "digest": {"type": "string", "pattern": "^([0-9a-f]{64})?$"},
                    "configuration": {"type": "object"},
                },
            },
        },
    }
