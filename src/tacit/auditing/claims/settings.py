"""How thorough an audit of a mechanism is, and which public words it looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tacit.auditing.claims.exact import (
    TOLERANCE,
)
from tacit.auditing.claims.sampling import CONFIDENCE
from tacit.errors import BadInputError
from tacit.progress import StepProgress

SAMPLES = 20_000


@dataclass(frozen=True)
class ClaimAuditSettings:
    """Settings of an audit: how thorough it is.

    words        "all", a number of words (a public random choice), a file with words, "closest:K"; None: what fits
    samples      how many samples of each input; None: only where there is no exact law
    """

    words: str | None = None
    samples: int | None = None
    confidence: float = CONFIDENCE
    tolerance: float = TOLERANCE
    seed: int | None = None
    progress: Callable[[str], StepProgress] | None = None

    def bar(self, what: str) -> StepProgress | None:
        return None if self.progress is None else self.progress(what)


def listed(path: str) -> list[str]:
    """The words of a file, one per line."""
    place = Path(path)
    if not place.is_file():
        raise BadInputError(
            "no-such-words",
            "{option.words} takes all, a number, closest:K or a file of words, and there is no file '{path}'",
            path=path,
        )
    try:
        lines = place.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise BadInputError(
            "unreadable-word-list",
            "{path} cannot be read as UTF-8 text: save the words as plain text, one per line",
            path=path,
        ) from None
    words = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if len(words) < 2:
        raise BadInputError(
            "too-few-words", "{path} holds fewer than two different words: a privacy claim compares two", path=path
        )
    return words
