"""How the list of common words was made: `python -m tacit.matching.common_words_build`.

The 200 words (and the marks ? and !) that stand in most sentences of the pools that come with Tacit, each pool counted
alike, and the mean and the fourth root of the covariance of their occurrences in 40,000 of these sentences.
"""

from __future__ import annotations

from collections import Counter

from tacit.matching.common_words import occurrences, save_common_words, tokens_of
from tacit.matching.geometry import fitted_geometry
from tacit.matching.pool import load_pool
from tacit.noise.source import public_generator

POOLS = ("general", "encyclopedia")
WORDS = 200
SENTENCES = 20_000
"""Of each pool."""


def main() -> None:
    """Write the list of common words into the assets of the package."""
    generator = public_generator(2)
    sentences: list[str] = []
    for name in POOLS:
        pool = load_pool(name).sentences
        sentences += [pool[place] for place in generator.permutation(len(pool))[:SENTENCES]]
    counts = Counter(token for sentence in sentences for token in set(tokens_of(sentence)))
    words = sorted(counts, key=lambda word: (-counts[word], word))[:WORDS]
    save_common_words(words, fitted_geometry(occurrences(sentences, words)))


if __name__ == "__main__":
    main()
