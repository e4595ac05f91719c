"""Releases whose card says "nominal": refused to a key that is not to have them, before any noise is drawn.

A card puts what a whole text is promised into a class of strength (`tacit.card.strength`); the last class is the one in
which the formal bound alone no longer protects. A text for which no bound is proven at all is in no better class.
"""

from __future__ import annotations

import math

from tacit.card import strength
from tacit.engines.job import RewriteJob
from tacit.guarantee import Guarantee, Unit
from tacit.serve.errors import ServiceError
from tacit.serve.rewriting import composed, document_promise

NOMINAL = strength(math.inf)


def is_nominal(guarantee: Guarantee, tokens: int, draws: int = 1) -> bool:
    """Whether the card of a text of so many tokens, drawn so often, says "nominal"."""
    whole, _ = document_promise(composed(guarantee, draws), tokens)
    return whole is None or not whole.is_private or strength(whole.exponent()) == NOMINAL


def job_is_nominal(work: RewriteJob, longest_row: int, texts_in_a_row: int) -> bool:
    """The same for the longest row of a file; the texts of a row are about the same person, so they add up."""
    promised = work.promise()
    if promised.unit is Unit.DOCUMENT and texts_in_a_row > 1:
        promised = promised.for_group(texts_in_a_row)
    return is_nominal(promised, longest_row)


def refusal() -> ServiceError:
    return ServiceError(
        403,
        "this key is refused releases whose guarantee for a whole text is nominal, so nothing was drawn: use a smaller "
        "epsilon, fewer draws or shorter texts, or a mechanism for whole documents",
        "nominal",
    )
