"""A card in five lines, for places where the whole card would be too long. The last line names public
sources without their details; everything else is said in full."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tacit.card.content import content
from tacit.card.sentence import plain_sentence
from tacit.card.strength import bound_text, totals
from tacit.card_words import promise_text
from tacit.guarantee import Provenance

if TYPE_CHECKING:
    from tacit.card.card import Card


def five_lines(card: Card) -> list[tuple[str, str]]:
    """Promise, meaning, what is not covered, what is assumed, what was learned from: each with its name."""
    promised = card.guarantee
    if not promised.is_private:
        return [("promise", plain_sentence(promised))]
    words = content(promised, card.facts, card.version)
    verdict = "" if card.verdict is None else f": {card.verdict.sentence}"
    _, exponent, note = max(totals(promised, card.facts), key=lambda line: line[1])
    return [
        ("promise", f"{promise_text(promised)}{verdict}"),
        ("meaning", f"{words.heading}: {bound_text(exponent, note)}, between {promised.adjacency.value}"),
        ("not covered", "; ".join(words.not_covered) or "nothing is listed"),
        ("assumed", "; ".join(words.assumptions) or "nothing"),
        ("learned from", _origins(promised.provenance) or "nothing"),
    ]


def _origins(provenance: Sequence[Provenance]) -> str:
    """Where everything comes from: what is public by its name, what is private in full."""
    public: dict[str, list[str]] = {}
    private = []
    for each in provenance:
        if each.public:
            public.setdefault(each.name, []).append(re.split(r"[,:(]", each.source)[0].strip())
        else:
            private.append(f"{each.name}: {each.source} (private, paid by {each.paid_by})")
    return "; ".join([*(f"{name} ({', '.join(sources)}; public)" for name, sources in public.items()), *private])
