"""A card in five lines, for places where the whole card would be too long. What a line says, it says in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.card.content import content
from tacit.card.sentence import plain_sentence
from tacit.card.strength import bound_text, totals
from tacit.card_words import promise_text

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
        ("learned from", "; ".join(words.provenance) or "nothing"),
    ]
