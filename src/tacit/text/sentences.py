"""Where a sentence ends: one public rule for pools and for mechanisms whose secret is a sentence."""

from __future__ import annotations

import re

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W\d_a-z])")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text: cut after an end mark, before a capital letter.

    >>> split_sentences("It is late. We go home! e.g. now.")
    ['It is late.', 'We go home! e.g. now.']
    """
    return [part for part in _SENTENCE_END.split(text) if part]
