"""Documents of several public sentences: as long as the release says, each of one label, its sentences near each other.

For every label so many sentences are drawn as its documents need (`tacit.matching.drawing`), so that the sentences of a
label match the sketch as they do when each stands alone. They are then dealt out: a document begins with any sentence
that is left, and goes on with that one of `CANDIDATES` others that is nearest to what it has, in a few public
directions. All of it is post-processing of the release.

A document repeats what its label is like several times over, so its sentences need not be as typical as one that
stands alone: they are drawn with a smaller power of p(label | sentence). Chosen with the other constants here on 20
Newsgroups, drug reviews and Reuters (`docs/matching.md`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from tacit.arrays import Floats, Floats32, Ids, Integers
from tacit.matching.documents import TextLengths
from tacit.matching.drawing import SHARPNESS, DrawnRows, drawn_rows
from tacit.matching.pool import LONGEST

CANDIDATES = 16
SHARPNESS_OF_DOCUMENTS = 3.0
SPARE = 1.1
"""Sentences that are drawn beyond the expected number, because documents end between two sentences."""
MORE, MOST_DEALS = 1.3, 12
"""Where the sentences did not suffice for all documents, so many times as many are drawn, so often at most."""
DIRECTIONS = 32
LARGEST_PART = 0.1
"""Of the sentences of the pools, the part that one label may use before sentences are repeated."""
CLOSING = frozenset(".!?…:;\"'”’)]")


@dataclass(frozen=True)
class PublicSentences:
    """The sentences of the pools as composing knows them.

    characters   (sentences,): the length of each
    topics       (sentences, directions): where each lies; no directions where every text is one sentence
    """

    characters: Integers
    topics: Floats32


@dataclass(frozen=True)
class DrawnDocuments:
    """Documents of one label, each as the places of its sentences, with the mean logarithm of the weights that these
    were drawn by."""

    documents: Sequence[Ids]
    weights: Floats

    def __len__(self) -> int:
        return len(self.documents)


def drawn_documents(
    scores: Floats,
    domain: Floats,
    rows: int,
    lengths: TextLengths,
    public: PublicSentences,
    generator: np.random.Generator,
    most_repeats: int = 1,
) -> DrawnDocuments:
    """So many documents of one label, as long as the pool has enough sentences.

    scores         log p(label | sentence), (sentences,)
    most_repeats   how often a sentence may be used if every document is one sentence; documents of several may repeat
                   them as soon as they need more than a small part of the pool
    """
    if rows == 0:
        return DrawnDocuments([], np.zeros(0))
    if lengths.one_sentence:
        drawn = drawn_rows(scores[:, None], domain, np.array([rows]), generator, most_repeats=most_repeats)
        return DrawnDocuments(list(drawn.sentences[:, None]), drawn.weights)
    flatter = scores * (SHARPNESS_OF_DOCUMENTS / SHARPNESS)

    def draw(count: int) -> DrawnRows:
        repeats = max(most_repeats, math.ceil(count / (LARGEST_PART * len(scores))))
        return drawn_rows(flatter[:, None], domain, np.array([count]), generator, most_repeats=repeats)

    def dealt(drawn: DrawnRows) -> list[Ids]:
        deck = _Deck(drawn.sentences, public, generator)
        each = (deck.document(goal, counted=lengths.sentences is not None) for goal in goals.tolist())
        return [document for document in each if len(document)]

    if lengths.sentences is None:
        goals = lengths.drawn_characters(rows, generator)
        drawn = draw(rows)
        for _ in range(2):  # the more sentences are drawn, the shorter or longer they may be
            drawn = draw(_needed(goals, public.characters[drawn.sentences]))
    else:
        goals = np.full(rows, lengths.sentences)
        drawn = draw(rows * lengths.sentences)
    documents = dealt(drawn)
    for _ in range(MOST_DEALS):  # few documents may need more than is to be expected
        if len(documents) == rows:
            break
        drawn = draw(math.ceil(MORE * len(drawn)) + 1)
        documents = dealt(drawn)
    return DrawnDocuments(
        [drawn.sentences[document] for document in documents],
        np.array([float(drawn.weights[document].mean()) for document in documents]),
    )


def _needed(goals: Integers, characters: Integers) -> int:
    """How many sentences documents of so many characters need, from sentences that are about this long."""
    several = goals[goals > 0]
    in_several = SPARE * float(several.sum()) / (float(characters.mean()) + 1)
    return int(len(goals) + max(0.0, in_several - len(several)))


class _Deck:
    """Drawn sentences of one label, each of which is dealt out once."""

    def __init__(self, sentences: Ids, public: PublicSentences, generator: np.random.Generator) -> None:
        self._sentences = sentences
        self._characters = public.characters
        self._topics = public.topics
        self._generator = generator
        self._places = np.arange(len(sentences))
        self._left = len(sentences)

    def document(self, goal: int, *, counted: bool) -> Ids:
        """The places of the sentences of one document of so many characters (`counted`: sentences); empty if none is
        left."""
        if self._left == 0:
            return np.zeros(0, dtype=np.int64)
        chosen = [self._take(int(self._generator.integers(self._left)))]
        used = {int(self._sentences[chosen[0]])}
        characters = int(self._characters[self._sentences[chosen[0]]])
        center = self._topics[self._sentences[chosen[0]]].copy()
        while self._left and (not counted or len(chosen) < goal):
            offered = self._generator.integers(self._left, size=CANDIDATES)
            sentences = self._sentences[self._places[offered]]
            likeness = self._topics[sentences] @ center
            likeness[[int(sentence) in used for sentence in sentences]] = -np.inf
            best = int(likeness.argmax())
            longer = characters + 1 + int(self._characters[sentences[best]])
            # A document ends where another sentence would take it farther from its length than it is.
            if likeness[best] == -np.inf or (not counted and longer - goal > goal - characters):
                break
            chosen.append(self._take(int(offered[best])))
            used.add(int(sentences[best]))
            characters, center = longer, center + self._topics[sentences[best]]
        return np.array(chosen)

    def _take(self, position: int) -> int:
        """The place at a position, which the last one then fills."""
        place = int(self._places[position])
        self._left -= 1
        self._places[position] = self._places[self._left]
        return place


# Words --------------------------------------------------------------------------------------------------------------


def joined(sentences: Sequence[str]) -> str:
    """Sentences as one text; one that has no end mark gets a period where another follows.

    >>> joined(["It is late.", "who goes home", "Nobody."])
    'It is late. who goes home. Nobody.'
    """
    *before, last = sentences
    return " ".join([*(text if text[-1:] in CLOSING else f"{text}." for text in before), last])


def parts_of(text: str, public: Set[str]) -> list[str] | None:
    """The public sentences that a text was joined of; None if it is not made of such.

    >>> parts_of("It is late. who goes home. Nobody.", {"It is late.", "who goes home", "Nobody."})
    ['It is late.', 'who goes home', 'Nobody.']
    """
    reached: dict[int, list[str]] = {0: []}
    for start in [0, *(mark.end() for mark in re.finditer(" ", text))]:
        if start not in reached:
            continue
        for end in [*(mark.start() for mark in re.finditer(" ", text[start : start + LONGEST + 2])), len(text) - start]:
            sentence, following = text[start : start + end], start + end + 1
            if sentence in public or (sentence[-1:] == "." and (sentence := sentence[:-1]) in public):
                reached.setdefault(following, [*reached[start], sentence])
    return reached.get(len(text) + 1)


def public_directions(features: Floats32) -> Floats32:
    """The directions (features, few) in which public sentences differ most."""
    apart = features - features.mean(axis=0)
    _, vectors = np.linalg.eigh((apart.T @ apart).astype(np.float64))
    return np.asarray(vectors[:, ::-1][:, :DIRECTIONS], dtype=np.float32)
