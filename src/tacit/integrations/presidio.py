"""An operator for Microsoft Presidio: detected spans are rewritten word by word under differential privacy.

    engine = AnonymizerEngine()
    engine.add_anonymizer(TacitDP)
    settings = {"mechanism": "santext", "epsilon": 2.0}
    result = engine.anonymize(text, found, {"PERSON": OperatorConfig("tacit_dp", settings)})
    print(operator_card(settings, text, found).to_text())

What is promised is narrow, and `operator_guarantee` says it. Let S(x) be the spans that the detector finds in x: their
kinds, their places in the text around them, and how many words each has. The engine releases x with the words inside
S(x) replaced by independent draws, and everything else as it is. For two texts that differ in words inside spans and
for which S is the same, the exponents of these words add up, as for a whole text. For any other two texts there is no
bound at all: what stands outside a span is released word for word, and *which* spans there are is a function of the
private text that nothing hides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tacit.card import Card, ReleaseFacts
from tacit.catalog import find
from tacit.errors import BadParameterError, require
from tacit.guarantee import Adjacency, Guarantee
from tacit.integrations.loading import canonical, loaded_from, settings_of
from tacit.mechanism import Mechanism
from tacit.noise.source import new_source

_operators = require("presidio_anonymizer.operators", extra="presidio", purpose="the Presidio operator")

NAME = "tacit_dp"
DEFAULT_MECHANISM = "santext"
EXAMPLE = 'OperatorConfig("tacit_dp", {"epsilon": 2.0})'
NOT_COVERED = (
    "everything outside the detected spans, which is copied as it is, and everything that the detector missed",
    "which spans the detector found: it reads the private text, and their places, lengths and kinds are visible",
    "a name that stands in several places is drawn in each of them: its exponents add up",
)


class TacitDP(_operators.Operator):  # type: ignore[misc,name-defined]
    """The operator `tacit_dp`.

    mechanism   a word-level mechanism that treats all words alike ("santext", the default, "santext+", "tem" …)
    epsilon     the budget of each word; there is no default
    options     its other parameters, for example {"p": 0.2}
    """

    def operate(self, text: str, params: Mapping[str, Any] | None = None) -> str:
        mechanism = operator_mechanism(params or {})
        # A fresh stream for every span: nothing is kept that a fork of a server could copy.
        return mechanism.rewrite_texts([text], new_source(mechanism.seed)).texts[0]

    def validate(self, params: Mapping[str, Any] | None = None) -> None:
        operator_mechanism(params or {})

    def operator_name(self) -> str:
        return NAME

    def operator_type(self) -> Any:
        return _operators.OperatorType.Anonymize


def operator_mechanism(params: Mapping[str, Any]) -> Mechanism:
    """The mechanism behind the parameters of the operator; loaded once for all spans of a process."""
    return _mechanism_and_promise(params)[0]


def operator_guarantee(params: Mapping[str, Any]) -> Guarantee:
    """The guarantee of one word inside a detected span. It does not convert to a promise for the whole text."""
    return _mechanism_and_promise(params)[1]


def operator_card(params: Mapping[str, Any], text: str = "", spans: Iterable[Any] = ()) -> Card:
    """The card of the operator; with the original text and the spans it was given there, also what they add up to.

    Words are counted in the original, as the mechanism counts them. Spans that overlap count twice, which is safe.
    """
    mechanism, promised = _mechanism_and_promise(params)
    words = sum(mechanism.count_units([text[span.start : span.end] for span in spans]))
    facts = ReleaseFacts(rows=1, documents=1, units=words, longest_document=words, longest_row=words)
    return Card(promised, facts if words else None)


def _mechanism_and_promise(params: Mapping[str, Any]) -> tuple[Mechanism, Guarantee]:
    # The engine adds the type of the entity to the parameters it was given.
    unknown = params.keys() - {"mechanism", "epsilon", "options", "entity_type"}
    if unknown:
        raise BadParameterError(
            "unknown-parameter",
            "{name} has no parameter '{parameter}': it has mechanism, epsilon, and options for all others, for "
            'example {{"epsilon": 2.0, "options": {{"limit": 10000}}}}',
            name=NAME,
            parameter=min(unknown),
        )
    settings = settings_of(params.get("epsilon"), params.get("options"), example=EXAMPLE)
    return _checked(str(params.get("mechanism", DEFAULT_MECHANISM)), canonical(settings))


@lru_cache(maxsize=8)
def _checked(name: str, settings: str) -> tuple[Mechanism, Guarantee]:
    """Only mechanisms for which the promise inside a span is proven; checked once, because every span asks."""
    if find(name).level != "word":
        raise BadParameterError(
            "mechanism-for-documents",
            "{operator} rewrites spans word by word, and {mechanism} rewrites whole documents: choose a word-level "
            "mechanism such as santext, or rewrite the whole text with 'tacit rewrite'",
            operator=NAME,
            mechanism=name,
        )
    mechanism = loaded_from(name, settings)
    promised = mechanism.guarantee()
    if promised.adjacency is not Adjacency.ANY_TWO:
        raise BadParameterError(
            "adjacency-not-proven",
            "{name} with these options hides a word only among '{adjacency}', and inside detected spans nothing is "
            "proven about that: use santext, tem, or santext+ without a detector",
            name=name,
            adjacency=promised.adjacency.value,
        )
    return mechanism, replace(promised, adjacency=Adjacency.SAME_SPANS).also_not_covered(*NOT_COVERED)
