"""The origin of a folder of weights: which text it has read, and what that text was promised.

A model folder that Tacit made carries its card (`card.json`) and, if its text was declared public, the name of that
text (`task.json`). Whoever uses such a folder asks here, so that no room can take weights for public that are not:

* no card: from elsewhere, assumed to be made from public text; whoever uses it says so on the card;
* a private card: paid by its own budget;
* a card that is void because its text was declared public: public;
* a void card of any other reason, whatever was declared beside it: the weights may repeat what they have read, and no
  promise can be made with them.

The record of a rewriting model (`tacit.json`) may also tell of private text; without a card nothing is known of it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.card import Card
from tacit.errors import BadInputError, NoGuaranteeError, TacitError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Provenance, ProvenanceKind, Unit, VoidReason
from tacit.rounding import rounded_up

CARD = "card.json"
SETTINGS = "task.json"
RECORD = "tacit.json"
VOCABULARY_CARD = "vocabulary-card.json"


@dataclass(frozen=True)
class Lineage:
    """promise: the card of the weights; public: the text they were trained on, if it was declared public and so was
    everything before it; vocabulary: the card of a vocabulary that was learned privately."""

    promise: Guarantee | None = None
    public: str | None = None
    vocabulary: Guarantee | None = None

    @property
    def unpaid(self) -> str | None:
        """Why nothing may be promised with these weights; None if something may."""
        if self.promise is None or self.promise.is_private or self.public is not None:
            return None
        return self.promise.void

    @property
    def paid(self) -> Guarantee | None:
        """The promise of weights that were learned from private text and paid for."""
        return self.promise if self.promise is not None and self.promise.is_private else None

    def provenance(self, name: str, source: str) -> Provenance:
        """The line of a card that uses the weights; weights that nothing can be promised with are refused."""
        if self.unpaid is not None:
            raise NoGuaranteeError(
                "model-has-no-guarantee",
                "{name} has no guarantee ({reason}), so whatever is made with it may repeat what it has read: take "
                "a model of public text, or train it with an epsilon",
                name=source,
                reason=self.unpaid,
            )
        if self.paid is not None:
            return Provenance(name, source, public=False, paid_by=own_budget(self.paid))
        if self.public is not None:
            return Provenance(
                name,
                f"{source}, trained on {self.public}, which was declared public",
                kind=ProvenanceKind.DECLARED_PUBLIC,
            )
        return Provenance(name, source)


def lineage_of(folder: str | Path) -> Lineage:
    """The lineage that a folder declares; empty if it is a hub name or was not made by Tacit."""
    place = Path(folder).expanduser()
    promise = _guarantee(place / CARD) or _without_card(place / RECORD)
    return Lineage(promise, _public(place / SETTINGS, promise), _guarantee(place / VOCABULARY_CARD))


def own_budget(promise: Guarantee) -> str:
    """The budget that paid for weights, in the words of a card."""
    return f"a budget of its own: {described(promise)}"


def described(promise: Guarantee) -> str:
    return (
        f"epsilon {rounded_up(promise.epsilon, 4)}, delta {rounded_up(promise.delta, 3)} for one "
        f"{promise.unit.value}, between {promise.adjacency.value}"
    )


def read_card(path: Path) -> Card:
    try:
        return Card.of_file(path)
    except (TacitError, ValueError, KeyError, TypeError) as error:
        raise BadInputError(
            "not-a-card", "{path} is not a privacy card: {reason}", path=path, reason=str(error)
        ) from error


def _guarantee(path: Path) -> Guarantee | None:
    return read_card(path).guarantee if path.is_file() else None


def _without_card(record: Path) -> Guarantee | None:
    """A rewriting model that was made from private weights: its record names them, and nobody can count with that."""
    if not record.is_file() or _json(record).get("private") is None:
        return None
    return Guarantee(
        notion=Notion.NONE,
        epsilon=math.inf,
        model=Model.CENTRAL,
        unit=Unit.RECORD,
        adjacency=Adjacency.ADD_REMOVE,
        mechanism="a rewriting model",
        void="it was made from weights that have read private text, and its folder has no card",
        void_reason=VoidReason.NO_CARD,
    )


def _public(settings: Path, promise: Guarantee | None) -> str | None:
    """The declared name of the text; it counts for nothing where the card tells of anything else that was read."""
    if not settings.is_file() or (promise is not None and not _reads_public_text_alone(promise)):
        return None
    public = _json(settings).get("public")
    return None if public is None else str(public)


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInputError("damaged-file", "{path} is damaged: copy the whole folder again", path=path) from error
    return content if isinstance(content, dict) else {}


def _reads_public_text_alone(promise: Guarantee) -> bool:
    """Whether a card leaves it possible that everything was public. A void card does so only if it is void because the
    text was declared public: one that is void for any other reason tells of text that was not. Weights that a budget
    has paid for have read private text, whatever was declared later."""
    if any(item.kind is ProvenanceKind.PAID for item in promise.provenance):
        return False
    return promise.is_private or promise.void_reason is VoidReason.DECLARED_PUBLIC
