"""Redaction: a placeholder for each sensitive place of a text, by a fixed rule that reads one record."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import BadInputError, BadParameterError
from tacit.text.sensitive import Detector, Flags, listed_words
from tacit.text.tokens import normalize, split
from tacit.training.tasks import Row

PLACEHOLDER = "___"
Span = tuple[int, int]


@dataclass(frozen=True)
class Redacted:
    """Rows with placeholders, and how much was replaced: for the eyes of the person who trains."""

    rows: list[dict[str, str]]
    tokens: int
    removed: int
    touched: int

    @property
    def share(self) -> float:
        return self.removed / self.tokens if self.tokens else 0.0


def redact_rows(
    rows: Sequence[Row], columns: Sequence[str], detector: Detector, *, placeholder: str = PLACEHOLDER
) -> Redacted:
    """Replace each run of sensitive tokens in these columns by one placeholder, which hides how long it was."""
    if split(placeholder) == []:
        raise BadParameterError("empty-placeholder", "a placeholder has at least one character that is not white space")
    made = [dict(row) for row in rows]
    touched: set[int] = set()
    tokens = removed = 0
    for column in columns:
        texts = [row[column] for row in rows]
        for place, (text, flags) in enumerate(zip(texts, _checked(texts, detector(texts)), strict=True)):
            tokens, removed = tokens + len(flags), removed + sum(flags)
            if any(flags):
                touched.add(place)
                made[place][column] = redact_text(text, flagged_spans(text, flags), placeholder)
    return Redacted(made, tokens, removed, len(touched))


def _checked(texts: Sequence[str], flags: Flags) -> Flags:
    if len(flags) != len(texts):
        raise BadInputError(
            "detector-flags-do-not-align",
            "the detector gave flags for {flags:,} of {texts:,} texts",
            flags=len(flags),
            texts=len(texts),
        )
    return flags


def redact_text(text: str, spans: Sequence[Span], placeholder: str = PLACEHOLDER) -> str:
    """The text with a placeholder for each span of characters."""
    pieces, end = [], 0
    for start, stop in sorted(spans):
        pieces += [text[end:start], placeholder] if start >= end else []
        end = max(end, stop)
    return "".join([*pieces, text[end:]])


def flagged_spans(text: str, flags: Sequence[bool]) -> list[Span]:
    """Where the flagged tokens stand in the text; neighbors make one span, with the white space between them."""
    places = token_places(text)
    if len(places) != len(flags):
        raise BadInputError(
            "detector-flags-do-not-align",
            "the detector gave {flags} flags for a text of {tokens} tokens",
            flags=len(flags),
            tokens=len(places),
        )
    spans: list[Span] = []
    before = False
    for (start, stop), flagged in zip(places, flags, strict=True):
        if flagged and before:
            spans[-1] = (spans[-1][0], stop)
        elif flagged:
            spans.append((start, stop))
        before = flagged
    return spans


def token_places(text: str) -> list[Span]:
    """Where each token of `split` stands in the original text, whose case and quotes `split` changes."""
    pieces = [normalize(character) for character in text]
    origin = [place for place, piece in enumerate(pieces) for _ in piece]
    straight = "".join(pieces)
    places, cursor = [], 0
    for token in split(text):
        # Every character that is not white space is in some token, in order.
        while straight[cursor].isspace():
            cursor += 1
        end = cursor + len(token)
        places.append((origin[cursor], origin[end - 1] + 1))
        cursor = end
    return places


def list_digest(path: str | Path) -> str:
    """Tells one word list from another. It stays in private folders: a digest of a list of names gives it away."""
    return f"a word list with the digest {hashlib.blake2b(Path(path).read_bytes(), digest_size=16).hexdigest()}"


def list_detector(path: str | Path) -> Detector:
    """Sensitive is what stands in a file, one word or phrase per line; each of its words counts."""

    def detect(texts: Sequence[str]) -> Flags:
        tokens = [split(text) for text in texts]
        words = sorted({token for row in tokens for token in row})
        known = {word for word, listed in zip(words, listed_words(words, path), strict=True) if listed}
        return [[token in known for token in row] for row in tokens]

    return detect
