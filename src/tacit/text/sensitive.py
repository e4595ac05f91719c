"""Which words are sensitive: from public frequencies, from a list the user gives, or from detectors.

The first two are functions of the word alone, known to everyone, so they cost nothing. A detector that reads the
private text decides by context; what it misses is treated as common, and the card says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BadInputError, BadParameterError, require
from tacit.text.tokens import CLITICS, is_punctuation, normalize, split

Flags = list[list[bool]]
Detector = Callable[[Sequence[str]], Flags]


def rarest_words(words: Sequence[str], share: float, *, language: str = "en") -> NDArray[np.bool_]:
    """The `share` of the vocabulary that is least frequent in public text (wordfreq), ties by vocabulary order.

    Frequencies come from a public list, never from the text that is rewritten: counting that would be a release.
    The list has no punctuation and no clitics, which count as the most frequent; anything with a digit counts as the
    least frequent, because numbers identify people.
    """
    if not 0.0 < share <= 1.0:
        raise BadParameterError(
            "impossible-share", "the sensitive share must be above 0 and at most 1, not {share}", share=share
        )
    sensitive = np.ones(len(words), dtype=bool)
    if share == 1.0:
        return sensitive
    wordfreq = require("wordfreq", extra="default", purpose="choosing sensitive words by public frequency")
    # Written as wordfreq itself asks for it: its memory of loaded lists tells the two spellings apart.
    known = wordfreq.get_frequency_dict(language, "best")

    def look_up(word: str) -> float:
        # Most words are in the list as they stand; the slow look-up knows how to put the others together.
        return float(known.get(word) or wordfreq.word_frequency(word, language))

    frequency = np.array([_frequency(word, look_up) for word in words])
    common = len(words) - round(share * len(words))
    order = np.argsort(-frequency, kind="stable")
    sensitive[order[:common]] = False
    return sensitive


def _frequency(word: str, look_up: Callable[[str], float]) -> float:
    if word.isalpha():
        return look_up(word)
    if any(character.isdigit() for character in word):
        return 0.0
    if word in CLITICS or is_punctuation(word):
        return 1.0
    return look_up(word)


def listed_words(words: Sequence[str], path: str | Path) -> NDArray[np.bool_]:
    """Sensitive words from a text file, one word or phrase per line; each of its tokens counts."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise BadInputError(
            "not-utf-8", "the word list {path} is not UTF-8 (byte {byte})", path=path, byte=error.start
        ) from error
    except OSError as error:
        raise BadInputError(
            "unreadable-word-list", "cannot read the word list {path}: {reason}", path=path, reason=error.strerror
        ) from error
    listed = {token for line in lines for token in split(line)}
    if not listed:
        raise BadInputError(
            "word-list-is-empty", "the word list {path} is empty: put one sensitive word on each line", path=path
        )
    return np.array([word in listed for word in words])


# Detectors ----------------------------------------------------------------------------------------------------------

_PATTERNS = (
    re.compile(r"\d"),
    re.compile(r"@"),
    re.compile(r"^https?://"),
    re.compile(r"^(?:mr|mrs|ms|dr|prof)$"),
)


def pattern_detector(texts: Sequence[str]) -> Flags:
    """Numbers, codes, mail and web addresses, the word after a title: by the shape of the token itself."""
    flags = []
    for text in texts:
        tokens = split(text)
        shape = [any(pattern.search(token) for pattern in _PATTERNS) for token in tokens]
        titled = [i > 0 and _PATTERNS[3].search(tokens[i - 1]) is not None for i in range(len(tokens))]
        flags.append([a or b for a, b in zip(shape, titled, strict=True)])
    return flags


def spacy_pipeline(name: str) -> Any:
    """A spaCy pipeline that finds named entities, by the name of its package or its folder."""
    spacy = require("spacy", extra="detect", purpose="finding named entities")
    try:
        return spacy.load(name)
    except OSError as error:
        raise BadParameterError(
            "no-such-pipeline",
            "spaCy has no pipeline '{pipeline}': give a folder, or install it (python -m spacy download {pipeline})",
            pipeline=name,
        ) from error


def spacy_detector(model: str = "en_core_web_sm") -> Detector:
    """Named entities of a spaCy pipeline (a package name or a folder)."""
    pipeline = spacy_pipeline(model)

    def detect(texts: Sequence[str]) -> Flags:
        return [_flag_strings(text, [entity.text for entity in doc.ents])
                for text, doc in zip(texts, pipeline.pipe(texts), strict=True)]  # fmt: skip

    return detect


def _flag_strings(text: str, strings: Sequence[str]) -> list[bool]:
    """Tokens of a text that lie in one of the strings a detector found in it."""
    tokens = split(text)
    flags = [False] * len(tokens)
    for string in strings:
        wanted = split(normalize(string))
        size = len(wanted)
        for start in range(len(tokens) - size + 1):
            if size and tokens[start : start + size] == wanted:
                flags[start : start + size] = [True] * size
    return flags


def detector(name: str) -> Detector | None:
    """A detector by name: "none", "patterns", "spacy" or "spacy:PIPELINE"."""
    if name == "none":
        return None
    if name == "patterns":
        return pattern_detector
    kind, _, model = name.partition(":")
    if kind == "spacy":
        return spacy_detector(model) if model else spacy_detector()
    raise BadParameterError(
        "unknown-detector",
        "detector '{name}' does not exist: choose none, patterns, spacy or spacy:PIPELINE",
        name=name,
    )
