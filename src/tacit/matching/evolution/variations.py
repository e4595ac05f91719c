"""New sentences from good ones, without any model.

    replaced     a word gives way to one that fits the label, where both neighbors are known beside it, or one is and
                 the two words are alike by public word vectors
    filled       a frame of our own with words that fit the label

Both are functions of public sentences, public vectors and the release. Recombining the beginning of a sentence with the
end of another that shares a word was tried as well: learners became worse (`docs/matching.md`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats32
from tacit.matching.evolution.phrases import END, START, PublicPhrases, joined, tokens_of
from tacit.vectors.load import load_vectors

REPLACED, FILLED, WRITTEN = "replaced", "filled", "written"
ALIKE = 0.55
"""The cosine from which two words may stand in one place where only one neighbor is known."""
FRAMES = (
    "Tell me about the {a}.", "I have a question about the {a}.", "This is about the {a} and the {b}.",
    "What about the {a}?", "I need to know about the {a} and the {b}.", "Let us talk about the {a}.",
    "It was all about the {a} and the {b}.", "They talked about the {a} and the {b}.", "Is it the {a} or the {b}?",
    "I would like to know more about the {a}.", "There is something about the {a}.", "How is the {a}?",
    "He told me about the {a}.", "It is the {a}, not the {b}.", "I am thinking about the {a} and the {b}.",
    "Please look at the {a}.",
)  # fmt: skip


@dataclass(frozen=True)
class Candidate:
    """A sentence that is tried for a label.

    text     the sentence
    label    the place of its label
    origins  places of the public sentences that it was made from
    way      how it was made; empty for a public sentence as it is
    word     the word of the label that came in, if one did
    least    the fit that it must exceed
    """

    text: str
    label: int
    origins: tuple[int, ...] = ()
    way: str = ""
    word: str = ""
    least: float = float("-inf")


@dataclass(frozen=True)
class Parent:
    """A good sentence of a label, with its fit."""

    text: str
    fit: float
    origins: tuple[int, ...]


class WordVectors:
    """Directions of public words, by which words that may stand for each other are known."""

    def __init__(self) -> None:
        table = load_vectors("default")
        vectors = table.vectors - table.vectors.mean(axis=0)
        self._vectors: Floats32 = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        self._places = {word: place for place, word in enumerate(table.words)}

    def alike(self, first: str, second: str) -> bool:
        places = self._places.get(first), self._places.get(second)
        if places[0] is None or places[1] is None:
            return False
        return float(self._vectors[places[0]] @ self._vectors[places[1]]) >= ALIKE


def replaced(
    parents: Sequence[Parent], label: int, words: Sequence[str], phrases: PublicPhrases, vectors: WordVectors
) -> Iterator[Candidate]:
    """Every parent with one word replaced by one of the label."""
    wanted = set(words)
    for parent in parents:
        tokens = tokens_of(parent.text)
        marked = [START, *(token.lower() for token in tokens), END]
        absent = sorted(wanted.difference(marked))
        for place, token in enumerate(tokens):
            before, old, after = marked[place : place + 3]
            if not token.isalpha() or old in wanted:
                continue
            for word in absent:
                known = phrases.seen(before, word) + phrases.seen(word, after)
                if known == 2 or (known == 1 and vectors.alike(old, word)):
                    text = joined([*tokens[:place], word, *tokens[place + 1 :]])
                    yield Candidate(text, label, parent.origins, REPLACED, word, parent.fit)


def filled(label: int, words: Sequence[str], phrases: PublicPhrases) -> Iterator[Candidate]:
    """Frames with words of the label that public text uses as nouns."""
    ends = [word for word in words if phrases.seen(word, ".") or phrases.seen(word, "?")]
    nouns = [word for word in ends if phrases.seen("the", word)]
    for frame in FRAMES:
        for place, word in enumerate(nouns):
            second = nouns[(place + 1) % len(nouns)]
            if "{b}" not in frame or second != word:
                yield Candidate(frame.format(a=word, b=second), label, (), FILLED, word)
