"""Public priors of words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from tacit.arrays import Floats
from tacit.errors import BadInputError, require
from tacit.text.tokens import CLITICS, is_punctuation, split

# Shares of all tokens in WikiText-2 (train), cut by Tacit's rule: frequency lists have no marks and clitics.
MARKS = {
    ",": 0.0488, ".": 0.0381, '"': 0.0135, "-": 0.0101, "'s": 0.0067, "(": 0.0057, ")": 0.0057, "'": 0.0022,
    ";": 0.0020, ":": 0.0018, "--": 0.0006, "/": 0.0006, "%": 0.0004, "$": 0.0004, "...": 0.0004, "&": 0.0002,
    "!": 0.0002, "?": 0.0001, "n't": 0.0001, "'re": 0.0001, "'m": 0.0001, "'ve": 0.0001, "'ll": 0.0001, "'d": 0.0001,
}  # fmt: skip
OTHER_MARK = 1e-5


def frequency_prior(words: Sequence[str], *, language: str = "en") -> Floats:
    """Public word frequencies (wordfreq) over a vocabulary; every word keeps a positive chance."""
    wordfreq = require("wordfreq", extra="default", purpose="a public prior of words")
    known = wordfreq.get_frequency_dict(language)
    smallest = 1e-9
    weights = [
        MARKS.get(word, OTHER_MARK) if word in CLITICS or is_punctuation(word) else known.get(word, smallest)
        for word in words
    ]
    return normalized(np.array(weights))


def corpus_prior(words: Sequence[str], texts: Iterable[str]) -> Floats:
    """Counts of a public text over a vocabulary, with half a count for every word."""
    counts = Counter(token for text in texts for token in split(text))
    if not counts:
        raise BadInputError("no-words", "the public text for the prior is empty: give one with words in it")
    return normalized(np.array([counts[word] + 0.5 for word in words]))


def normalized(weights: Floats) -> Floats:
    total: Floats = weights / weights.sum()
    return total
