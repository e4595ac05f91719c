"""The answers that a cell holds: one text, or several that all count as right, as data for question answering has them.

    Normandy                                             a text is the answer; nothing, that there is none
    ["France", "in France"]                              a JSON list of texts
    [{"text": "France", "start": 159}]                   objects with their place in the context (`start` or
                                                         `answer_start`), as SQuAD has them
    {"text": ["France"], "answer_start": [159]}          the same by column, as the library datasets has them

Anything else, however much it looks like one of these, is the text of an answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

STARTS = ("start", "answer_start")


@dataclass(frozen=True)
class GoldAnswer:
    """A right answer, and where it begins in its context, if that is known."""

    text: str
    start: int | None = None

    def place_in(self, context: str) -> int:
        """Where the answer begins: where its start says, if it stands there, or first; -1 if it does not occur."""
        if self.start is not None and self.start >= 0 and context.startswith(self.text, self.start):
            return self.start
        return context.find(self.text)


def gold_answers(cell: str) -> list[GoldAnswer]:
    """All right answers of a cell, without empty ones; none if the question has no answer."""
    answers = _listed(cell) if cell[:1] in ("[", "{") and cell[-1:] in ("]", "}") else None
    return [answer for answer in (answers if answers is not None else [GoldAnswer(cell)]) if answer.text]


def _listed(cell: str) -> list[GoldAnswer] | None:
    try:
        value = json.loads(cell)
    except ValueError:
        return None
    if isinstance(value, dict):
        value = _by_column(value)
    if not isinstance(value, list):
        return None
    answers = [_of_item(item) for item in value]
    known = [answer for answer in answers if answer is not None]
    return known if len(known) == len(answers) else None


def _by_column(value: dict[str, object]) -> list[dict[str, object]] | None:
    texts = value.get("text")
    starts = next((value[name] for name in STARTS if name in value), None)
    if not isinstance(texts, list) or not set(value) <= {"text", *STARTS}:
        return None
    if not isinstance(starts, list) or len(starts) != len(texts):
        starts = [None] * len(texts)
    return [{"text": text, "start": start} for text, start in zip(texts, starts, strict=True)]


def _of_item(item: object) -> GoldAnswer | None:
    if isinstance(item, str):
        return GoldAnswer(item)
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        return None
    start = next((item[name] for name in STARTS if name in item), None)
    return GoldAnswer(item["text"], start if type(start) is int else None)
