"""How usual a sequence of words is in public text: pairs and triples of neighboring words, counted.

The likelihood of a word is that of the longest of the three that was seen before it, the triple, the pair or the word
alone ("stupid backoff", Brants et al. 2007). A new sentence must be at least as usual as half of the public sentences
are in the eyes of the others: a public sentence is judged without its own counts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

BACKOFF = 0.4
MOST_SENTENCES = 200_000
"""Of larger pools so many sentences are counted, evenly spaced."""
SAMPLE = 1_000
USUAL_QUANTILE = 0.5
START, END = "<s>", "</s>"

_TOKEN = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")
_NO_SPACE_AFTER = frozenset("([{$£€#“‘-/")
_SPACE_BEFORE = frozenset("([{$£€#“‘&")


def tokens_of(sentence: str) -> list[str]:
    """Words and marks of a sentence.

    >>> tokens_of("Don't go, please!")
    ["Don't", 'go', ',', 'please', '!']
    """
    return _TOKEN.findall(sentence)


def joined(tokens: Sequence[str]) -> str:
    """A sentence of words and marks, which begins with a capital letter.

    >>> joined(["don't", "go", ",", "please", "!"])
    "Don't go, please!"
    """
    parts: list[str] = []
    for place, token in enumerate(tokens):
        spaced = token[0].isalnum() or token in _SPACE_BEFORE
        if place and spaced and tokens[place - 1] not in _NO_SPACE_AFTER:
            parts.append(" ")
        parts.append(token)
    sentence = "".join(parts)
    return sentence[:1].upper() + sentence[1:]


class PublicPhrases:
    """Counts of words, pairs and triples in public sentences, in lower case."""

    def __init__(self, sentences: Sequence[str]) -> None:
        step = max(1, len(sentences) // MOST_SENTENCES)
        self._sample = sentences[:: max(1, len(sentences) // SAMPLE)][:SAMPLE]
        self.words: Counter[str] = Counter()
        self._pairs: Counter[tuple[str, str]] = Counter()
        self._triples: Counter[tuple[str, str, str]] = Counter()
        for sentence in sentences[::step]:
            marked = [START, *(token.lower() for token in tokens_of(sentence)), END]
            self.words.update(marked)
            self._pairs.update(pairwise(marked))
            self._triples.update(zip(marked, marked[1:], marked[2:], strict=False))
        self._total = max(1, sum(self.words.values()))

    def seen(self, first: str, second: str) -> bool:
        """Whether two words stand side by side somewhere in public text."""
        return (first, second) in self._pairs

    def likelihood(self, tokens: Sequence[str], *, own: bool = False) -> float:
        """The mean log-likelihood of a token; with `own` the sentence is one of those that were counted, and its own
        counts are left out."""
        less = 1 if own else 0
        marked = [START, *(token.lower() for token in tokens), END]
        total, before = 0.0, ""
        for first, second in pairwise(marked):
            triple = self._triples[before, first, second] - less if before else 0
            if triple > 0:
                chance = triple / max(1, self._pairs[before, first] - less)
            elif (pair := self._pairs[first, second] - less) > 0:
                chance = BACKOFF * pair / max(1, self.words[first] - less)
            else:
                chance = BACKOFF**2 * (max(0, self.words[second] - less) + 0.1) / self._total
            total += math.log(chance)
            before = first
        return total / (len(marked) - 1)

    @cached_property
    def usual(self) -> float:
        """The likelihood that half of the public sentences reach."""
        values = [self.likelihood(tokens_of(sentence), own=True) for sentence in self._sample]
        return float(np.quantile(values, USUAL_QUANTILE))

    def reads_well(self, tokens: Sequence[str]) -> bool:
        """Whether a sentence is as usual as half of the public ones."""
        return self.likelihood(tokens) >= self.usual
