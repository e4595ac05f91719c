"""Names of labels as words, the way a person would say them."""

from __future__ import annotations

import re


def spoken_label(label: str) -> str:
    """A label as words; nothing for one that says nothing, such as a number.

    >>> spoken_label("report_lost_card"), spoken_label("PlayMusic"), spoken_label("topic 12"), spoken_label("3")
    ('report lost card', 'play music', '', '')
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", label)
    words = [word.lower() for word in re.findall(r"[^\W\d_]+", spaced)]
    return "" if words in ([], ["topic"]) or max(map(len, words)) < 3 else " ".join(words)
