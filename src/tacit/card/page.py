"""The card as an HTML page."""

from __future__ import annotations

from tacit.card.content import SECOND, Content
from tacit.card.strength import Verdict
from tacit.templates import rendered


def as_page(content: Content, worst: Verdict | None) -> str:
    """The card as one HTML page without anything to load."""
    return rendered("card.html", card=content, second=SECOND, kind="void" if worst is None else worst)
