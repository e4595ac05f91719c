"""Words that can tell something about a topic, by public lists alone."""

from __future__ import annotations

from functools import lru_cache

from tacit.matching.common_words import known_common_words
from tacit.matching.words import WEIGHT_STEPS, load_vocabulary, words_of

COMMON_RARITY = 3.5
"""Words that stand in more than 1 of 33 public sentences (e^-3.5) say nothing about a topic, and do not count."""
LISTED_RARITY = 5.0
"""The same for words of a public list of very common ones, which holds some that are not (film, city, war)."""
UNKNOWN = 1 << 30


@lru_cache(maxsize=1)
def _everywhere() -> frozenset[str]:
    return frozenset(known_common_words().words)


def rarity(word: str) -> int | None:
    """How rare a word is in public text, as a whole number; None for one that says nothing about a topic."""
    vocabulary = load_vocabulary()
    place = vocabulary.places.get(word)
    weight = UNKNOWN if place is None else int(vocabulary.weights[place])
    common = weight <= (LISTED_RARITY if word in _everywhere() else COMMON_RARITY) * WEIGHT_STEPS
    return None if common or len(word) < 2 or word.isdigit() else weight


def telling_words(text: str, most: int | None = None) -> list[str]:
    """The words of a text that may count: not those that stand everywhere; the most frequent in public text first,
    since a word that others use too is more likely to be shown, and at most so many. A public function of the text
    alone."""
    rare = {word: weight for word in words_of(text) if (weight := rarity(word)) is not None}
    return sorted(rare, key=lambda word: (rare[word], word))[:most]


@lru_cache(maxsize=4)
def public_words(count: int) -> dict[str, int]:
    """The first words of the public vocabulary that can tell something, with their places."""
    telling = [word for word in load_vocabulary().words if rarity(word) is not None]
    return {word: place for place, word in enumerate(telling[:count])}
