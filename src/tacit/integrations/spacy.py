"""A spaCy component that puts a rewritten text, and its privacy card, beside each document.

    nlp = spacy.blank("en")
    nlp.add_pipe("tacit_dp", config={"mechanism": "santext+", "epsilon": 2.0})
    doc = nlp("I paid Maria in Leeds.")
    doc._.private_text               # what may be shared
    print(doc._.privacy.to_text())   # what was promised, and what it adds up to for this text

The whole text is rewritten, with Tacit's own tokens; nothing depends on what other components found. The guarantee is
that of the mechanism. The document itself still holds the original: `doc.text`, its tokens, and every file it is saved
to are private. Running the pipeline again draws again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from tacit.card import Card, ReleaseFacts
from tacit.errors import require
from tacit.guarantee import Guarantee
from tacit.integrations.loading import loaded, settings_of
from tacit.noise.source import new_source

_language = require("spacy.language", extra="spacy", purpose="the spaCy component")
_tokens = require("spacy.tokens", extra="spacy", purpose="the spaCy component")

NAME = "tacit_dp"
EXAMPLE = 'nlp.add_pipe("tacit_dp", config={"epsilon": 2.0})'
NOT_COVERED = "the document that carries the rewritten text: its words, annotations and saved files are the original"


class PrivateText:
    """The component. It holds its settings; the mechanism is loaded once in each process that uses it."""

    def __init__(self, mechanism: str, epsilon: float | None, options: Mapping[str, Any]) -> None:
        self.mechanism = mechanism
        self.settings = settings_of(epsilon, options, example=EXAMPLE)
        self.guarantee = loaded(mechanism, self.settings).guarantee().also_not_covered(NOT_COVERED)
        # Documents are saved as plain data, so they carry the promise as such; all of them share this one.
        self._promise = self.guarantee.to_dict()

    def __call__(self, doc: Any) -> Any:
        self._rewrite([doc])
        return doc

    def pipe(self, docs: Iterable[Any], *, batch_size: int = 1000) -> Iterator[Any]:
        """Documents in batches: a word is worked out once however often it stands in a batch."""
        stream = iter(docs)
        while batch := list(islice(stream, batch_size)):
            self._rewrite(batch)
            yield from batch

    def _rewrite(self, docs: list[Any]) -> None:
        mechanism = loaded(self.mechanism, self.settings)
        result = mechanism.rewrite_texts([doc.text for doc in docs], new_source(mechanism.seed))
        for doc, text, units in zip(docs, result.texts, result.units, strict=True):
            doc._.private_text = text
            doc.user_data[NAME] = {"guarantee": self._promise, "units": int(units)}


def make_component(nlp: Any, name: str, mechanism: str, epsilon: float | None, options: dict[str, Any]) -> PrivateText:
    """The component that `nlp.add_pipe("tacit_dp", config={…})` adds."""
    return PrivateText(mechanism, epsilon, options)


def privacy_of(doc: Any) -> Card | None:
    """The card of one rewritten document, also after it was saved and loaded; None if it was not rewritten."""
    stored = doc.user_data.get(NAME)
    if stored is None:
        return None
    units = stored["units"]
    facts = ReleaseFacts(rows=1, documents=1, units=units, longest_document=units, longest_row=units)
    return Card(Guarantee.from_dict(stored["guarantee"]), facts)


_language.Language.factory(
    NAME,
    default_config={"mechanism": "santext", "epsilon": None, "options": {}},
    assigns=["doc._.private_text", "doc._.privacy"],
    func=make_component,
)
_tokens.Doc.set_extension("private_text", default=None)
_tokens.Doc.set_extension("privacy", getter=privacy_of)
