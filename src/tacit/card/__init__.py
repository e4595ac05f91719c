"""The privacy card: a guarantee written out for machines (JSON) and for people (terminal, Markdown, HTML).

Every renderer reads the same `Content`, so that no format can say more than another. Bounds are rounded up.
"""

from __future__ import annotations

from tacit.card.card import Card, for_file
from tacit.card.content import SECOND, Content
from tacit.card.facts import ReleaseFacts
from tacit.card.schema import json_schema
from tacit.card.sentence import ODDS_MARGIN, TAIL, plain_sentence
from tacit.card.strength import (
    Verdict,
    bound_heading,
    odds,
    row_sentences,
    row_totals,
    strength,
    totals,
)
from tacit.card.versions import CARD_VERSION, READABLE_VERSIONS

__all__ = [
    "CARD_VERSION",
    "ODDS_MARGIN",
    "READABLE_VERSIONS",
    "SECOND",
    "TAIL",
    "Card",
    "Content",
    "ReleaseFacts",
    "Verdict",
    "bound_heading",
    "for_file",
    "json_schema",
    "odds",
    "plain_sentence",
    "row_sentences",
    "row_totals",
    "strength",
    "totals",
]
