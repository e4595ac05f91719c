"""The questions of the guide: at most five, each with an option that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Secret(StrEnum):
    """The kinds of secrets: one word, one text, all texts of one person."""

    WORD = "word"
    TEXT = "text"
    PERSON = "person"


class Reader(StrEnum):
    """Those who may see the originals."""

    CURATOR = "curator"
    NOBODY = "nobody"


class Purpose(StrEnum):
    """The uses of a result."""

    SHARE = "share"
    CLASSIFIER = "classifier"
    COLLECT = "collect"
    TOPICS = "topics"


@dataclass(frozen=True)
class PlainQuestion:
    """A question in plain words.

    fields    the fields of the configuration that answer it
    sentence  what is asked
    choices   the answers that can be given, each with what it means; none where a number or a file is asked for
    """

    fields: tuple[str, ...]
    sentence: str
    choices: Mapping[str, str]


QUESTIONS: Final = (
    PlainQuestion(
        ("protect",),
        "What is one secret?",
        {
            Secret.WORD: "which word was written, in a text that may be shown otherwise",
            Secret.TEXT: "everything that one text says, and whose it is",
            Secret.PERSON: "everything that one person wrote, in all of their texts",
        },
    ),
    PlainQuestion(
        ("seen_by",),
        "Who may see the originals?",
        {
            Reader.CURATOR: "somebody who holds the whole file and is trusted with it, such as you",
            Reader.NOBODY: "only the author: every text is protected before it leaves its author",
        },
    ),
    PlainQuestion(
        ("purpose",),
        "What will the result be used for?",
        {
            Purpose.SHARE: "a corpus with labels that others may have",
            Purpose.CLASSIFIER: "a model that labels texts",
            Purpose.COLLECT: "texts that come from many users or places, added up over time",
            Purpose.TOPICS: "what the texts are about, and how often",
        },
    ),
    PlainQuestion(
        ("private_rows", "rows_per_person"), "How many rows are there, and how many of one person at most?", {}
    ),
    PlainQuestion(("public_text",), "Is there a file of public text of the same kind?", {}),
)
"""All questions, in their order."""
